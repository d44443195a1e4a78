//! A reader of JSON that accepts no more than JSON, for what `ebb` prints.

use std::ops::Index;

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(i128),
    Text(String),
    List(Vec<Value>),
    Object(Vec<(String, Value)>),
}

/// The value that a text is. Panics with the place if it is none.
pub fn parse(text: &str) -> Value {
    let mut reader = Reader { text, rest: text };
    let value = reader.value();
    reader.blank();
    reader.must(reader.rest.is_empty(), "the end");
    value
}

impl Value {
    pub fn number(&self) -> i128 {
        let Value::Number(number) = self else { panic!("{self:?} is no number") };
        *number
    }

    pub fn text(&self) -> &str {
        let Value::Text(text) = self else { panic!("{self:?} is no text") };
        text
    }

    pub fn items(&self) -> &[Value] {
        let Value::List(items) = self else { panic!("{self:?} is no list") };
        items
    }
}

impl Index<&str> for Value {
    type Output = Value;

    fn index(&self, key: &str) -> &Value {
        let Value::Object(members) = self else { panic!("{self:?} is no object") };
        let found = members.iter().find(|(name, _)| name == key);
        &found.unwrap_or_else(|| panic!("there is no {key} in {self:?}")).1
    }
}

struct Reader<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Reader<'_> {
    fn must(&self, truth: bool, wanted: &str) {
        let at = self.text.len() - self.rest.len();
        assert!(truth, "{wanted} is wanted at byte {at} of {}", self.text);
    }

    fn blank(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, token: &str) -> bool {
        self.blank();
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn value(&mut self) -> Value {
        for (word, value) in
            [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))]
        {
            if self.take(word) {
                return value;
            }
        }
        if self.take("[") {
            return Value::List(self.until("]", Reader::value));
        }
        if self.take("{") {
            return Value::Object(self.until("}", Reader::member));
        }
        if self.rest.starts_with('"') { Value::Text(self.string()) } else { self.number() }
    }

    fn until<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let mut items = Vec::new();
        if self.take(close) {
            return items;
        }
        loop {
            items.push(item(self));
            if self.take(close) {
                return items;
            }
            let comma = self.take(",");
            self.must(comma, "a comma");
        }
    }

    fn member(&mut self) -> (String, Value) {
        let key = self.string();
        let colon = self.take(":");
        self.must(colon, "a colon");
        (key, self.value())
    }

    fn number(&mut self) -> Value {
        let end = self.rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(self.rest.len());
        let number = self.rest[..end].parse();
        self.must(number.is_ok(), "a whole number");
        self.rest = &self.rest[end..];
        Value::Number(number.unwrap())
    }

    fn string(&mut self) -> String {
        let quote = self.take("\"");
        self.must(quote, "a quote");
        let mut text = String::new();
        loop {
            let character = self.rest.chars().next();
            self.must(character.is_some_and(|c| c >= ' '), "a character or a quote");
            let character = character.unwrap();
            self.rest = &self.rest[character.len_utf8()..];
            match character {
                '"' => return text,
                '\\' => text.push(self.escape()),
                other => text.push(other),
            }
        }
    }

    fn escape(&mut self) -> char {
        for (letter, meaning) in [('"', '"'), ('\\', '\\'), ('n', '\n')] {
            if let Some(rest) = self.rest.strip_prefix(letter) {
                self.rest = rest;
                return meaning;
            }
        }
        let code = self.rest.strip_prefix('u').and_then(|rest| u32::from_str_radix(rest.get(..4)?, 16).ok());
        self.must(code.is_some(), "an escape that ebb writes");
        self.rest = &self.rest[5..];
        char::from_u32(code.unwrap()).unwrap()
    }
}
