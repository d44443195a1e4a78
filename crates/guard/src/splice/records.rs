//! The compiler's records about a kernel, told of its prologue.

use crate::Control;
use cubin::Error;
use cubin::info::{BYTE, LONG, Record, append, attribute, records};

/// In the older record of a parameter, below its size: that it lies in a constant bank, and in no other space.
const IN_CONSTANT_BANK: u32 = 0x1f000;

/// What there is to tell.
pub(super) struct News<'a> {
    pub control_offset: u32,
    /// The number of the control words among the parameters.
    pub ordinal: u16,
    /// How many named barriers the prologue needs, where records count them.
    pub barriers: Option<u8>,
    /// Where the prologue's `EXIT`s are.
    pub exits: &'a [u32],
}

/// The records in `info` with the news. None where a record would become longer than it can say, or is not as it should
/// be.
pub(super) fn retell(info: &[u8], news: &News<'_>) -> Option<Vec<u8>> {
    let list = records(info).collect::<Result<Vec<_>, Error>>().ok()?;
    let mut teller = Teller { out: Vec::with_capacity(info.len() + 64), news, exits_told: false };
    teller.add_barriers(&list);
    let first_parameter = list.iter().position(|record| is_parameter(record.attribute));
    for (index, record) in list.iter().enumerate() {
        // The last parameter comes first.
        if Some(index) == first_parameter {
            teller.add_parameter(record.attribute);
        }
        teller.retell(record)?;
    }
    if !teller.exits_told {
        append(&mut teller.out, LONG, attribute::EXIT_INSTR_OFFSETS, &places(news.exits));
    }
    Some(teller.out)
}

struct Teller<'a> {
    out: Vec<u8>,
    news: &'a News<'a>,
    exits_told: bool,
}

impl Teller<'_> {
    /// A kernel without barriers has no record of their number, and a driver gives it none.
    fn add_barriers(&mut self, list: &[Record<'_>]) {
        let told = list.iter().any(|record| record.attribute == attribute::NUM_BARRIERS);
        if let (false, Some(barriers)) = (told, self.news.barriers) {
            append(&mut self.out, BYTE, attribute::NUM_BARRIERS, &[barriers, 0]);
        }
    }

    fn add_parameter(&mut self, form: u8) {
        let word = match form {
            attribute::KPARAM_INFO => Control::SIZE << 18 | IN_CONSTANT_BANK,
            _ => Control::SIZE,
        };
        let mut value = vec![0; 4];
        value.extend_from_slice(&self.news.ordinal.to_le_bytes());
        value.extend_from_slice(&(self.news.control_offset as u16).to_le_bytes());
        value.extend_from_slice(&word.to_le_bytes());
        append(&mut self.out, LONG, form, &value);
    }

    fn retell(&mut self, record: &Record<'_>) -> Option<()> {
        let mut value = record.value.to_vec();
        let bytes = ((self.news.control_offset + Control::SIZE) as u16).to_le_bytes();
        match record.attribute {
            attribute::CBANK_PARAM_SIZE => value.get_mut(0..2)?.copy_from_slice(&bytes),
            attribute::PARAM_CBANK => value.get_mut(6..8)?.copy_from_slice(&bytes),
            attribute::NUM_BARRIERS => {
                let count = value.first_mut()?;
                *count = (*count).max(self.news.barriers.unwrap_or(0));
            }
            attribute::EXIT_INSTR_OFFSETS if !self.exits_told => {
                value.extend(places(self.news.exits));
                self.exits_told = true;
            }
            _ => {}
        }
        let fits = record.format == LONG && value.len() <= u16::MAX.into();
        if !fits && value.len() != record.value.len() {
            return None;
        }
        append(&mut self.out, record.format, record.attribute, &value);
        Some(())
    }
}

fn is_parameter(attribute: u8) -> bool {
    matches!(attribute, attribute::KPARAM_INFO | attribute::KPARAM_INFO_V2)
}

fn places(exits: &[u32]) -> Vec<u8> {
    exits.iter().flat_map(|exit| exit.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cubin::kernel::{Description, Parameter};

    const NEWS: News<'_> = News { control_offset: 16, ordinal: 2, barriers: Some(1), exits: &[0x300, 0x480] };

    fn record(format: u8, attribute: u8, value: &[u8]) -> Vec<u8> {
        let mut section = Vec::new();
        append(&mut section, format, attribute, value);
        section
    }

    /// A kernel with a pointer and an integer, as ptxas describes it.
    fn usual() -> Vec<u8> {
        [
            record(LONG, 0x37, &[0x82, 0, 0, 0]),
            record(LONG, 0x17, &[0, 0, 0, 0, 1, 0, 8, 0, 0, 0xf0, 0x11, 0]),
            record(LONG, 0x17, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0, 0x21, 0]),
            record(3, 0x1b, &[0xff, 0]),
            record(LONG, 0x1c, &[0xc0, 0, 0, 0]),
            record(3, 0x19, &[12, 0]),
            record(LONG, 0x0a, &[0x33, 0, 0, 0, 0x10, 2, 12, 0]),
        ]
        .concat()
    }

    #[test]
    fn a_kernel_gains_a_parameter_a_barrier_and_exits() {
        let told = retell(&usual(), &NEWS).expect("they are as they should be");
        let description = Description::read(&told).expect("they still are");
        let control = Parameter { ordinal: 2, offset: 16, size: 32 };
        assert_eq!(description.parameters.last(), Some(&control));
        assert_eq!(description.parameters.len(), 3);
        assert_eq!(description.parameter_bytes, Some(48));
        assert_eq!(description.parameter_base, Some(0x210));
        assert_eq!(description.barriers, Some(1));
        let exits = [0xc0, 0, 0, 0, 0, 3, 0, 0, 0x80, 4, 0, 0];
        let exits = record(LONG, 0x1c, &exits);
        assert!(told.windows(exits.len()).any(|window| window == exits));
    }

    #[test]
    fn everything_else_is_passed_on() {
        let told = retell(&usual(), &NEWS).expect("they are as they should be");
        for kept in [record(LONG, 0x37, &[0x82, 0, 0, 0]), record(3, 0x1b, &[0xff, 0])] {
            assert!(told.windows(kept.len()).any(|window| window == kept));
        }
    }

    #[test]
    fn large_parameters_are_told_of_in_the_newer_form() {
        let info = record(LONG, 0x45, &[0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 5]);
        let told = retell(&info, &News { ordinal: 1, ..NEWS }).expect("it is as it should be");
        let description = Description::read(&told).expect("it still is");
        let sizes: Vec<_> = description.parameters.iter().map(|parameter| parameter.size).collect();
        assert_eq!(sizes, [16, 32]);
    }

    #[test]
    fn barriers_are_not_counted_where_sections_count_them() {
        let told = retell(&usual(), &News { barriers: None, ..NEWS }).expect("they are as they should be");
        assert_eq!(Description::read(&told).expect("they still are").barriers, None);
    }

    #[test]
    fn more_barriers_than_needed_stay() {
        let info = [usual(), record(BYTE, 0x4c, &[3, 0])].concat();
        let told = retell(&info, &NEWS).expect("they are as they should be");
        assert_eq!(Description::read(&told).expect("they still are").barriers, Some(3));
    }

    #[test]
    fn records_that_cannot_be_changed_are_left() {
        for broken in [
            record(LONG, 0x0a, &[0, 0, 0, 0, 0, 0]),
            record(3, 0x1c, &[0, 0]),
            record(LONG, 0x1c, &vec![0; 65532]),
            vec![4, 0x17, 200, 0],
        ] {
            assert_eq!(retell(&broken, &NEWS), None);
        }
    }
}
