//! As much of protocol buffers as a trace takes: numbers, texts, and messages in messages.

/// A message under construction.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

const VARINT: u64 = 0;
const LENGTH: u64 = 2;

impl Message {
    pub fn number(&mut self, field: u32, value: u64) -> &mut Message {
        self.varint(u64::from(field) << 3 | VARINT);
        self.varint(value);
        self
    }

    pub fn text(&mut self, field: u32, text: &str) -> &mut Message {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(&mut self, field: u32, build: impl FnOnce(&mut Message)) -> &mut Message {
        let mut inner = Message::default();
        build(&mut inner);
        self.bytes(field, &inner.0)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Message {
        self.varint(u64::from(field) << 3 | LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Seven bits at a time, the lowest first.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

/// A reader for tests, which knows nothing of the writer.
#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Value {
        Number(u64),
        Bytes(Vec<u8>),
    }

    /// The fields of a message, in order.
    pub fn fields(mut bytes: &[u8]) -> Vec<(u32, Value)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = u32::try_from(key >> 3).unwrap();
            found.push(match key & 7 {
                0 => (field, Value::Number(varint(&mut bytes))),
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    let (text, rest) = bytes.split_at(length);
                    bytes = rest;
                    (field, Value::Bytes(text.to_vec()))
                }
                other => panic!("wire type {other} is not used"),
            });
        }
        found
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let (number, rest) = bytes.split_at(length);
        *bytes = rest;
        number.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
    }

    /// All values of a field.
    pub fn all(fields: &[(u32, Value)], field: u32) -> Vec<&Value> {
        fields.iter().filter(|(number, _)| *number == field).map(|(_, value)| value).collect()
    }

    impl Value {
        pub fn number(&self) -> u64 {
            let Value::Number(number) = self else { panic!("no number") };
            *number
        }

        pub fn bytes(&self) -> &[u8] {
            let Value::Bytes(bytes) = self else { panic!("no bytes") };
            bytes
        }

        pub fn text(&self) -> &str {
            std::str::from_utf8(self.bytes()).unwrap()
        }
    }

    #[test]
    fn a_number_is_as_the_specification_says() {
        let mut message = Message::default();
        message.number(1, 150).text(2, "testing");
        assert_eq!(message.into_bytes(), b"\x08\x96\x01\x12\x07testing");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, field in 1u32..1000, text in ".{0,300}") {
            let mut message = Message::default();
            message.number(field, number).message(field + 1, |inner| _ = inner.text(field, &text));
            let read = fields(&message.into_bytes());
            prop_assert_eq!(read[0].clone(), (field, Value::Number(number)));
            let inner = fields(read[1].1.bytes());
            prop_assert_eq!(inner[0].1.text(), text);
        }
    }
}
