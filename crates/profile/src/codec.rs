//! A record as bytes, and back.
//!
//! Hashes and moments have their full width; all else is small as a rule and is written as a *short number*: seven bits to a
//! byte, the lowest first, the highest bit set in all but the last. So an ordinary record takes a few hundred bytes.
//!
//! What is read is checked: a number that does not fit, a name that is no text, a byte too many make it no record. Nothing is
//! allocated that is larger than the bytes at hand.

use std::collections::BTreeMap;

use model::{Dim3, Geometry, Kernel, ModuleHash, Nanos, Rung, Site};

use crate::Spans;
use crate::record::{Certificate, Demotion, Key, Record, Word};

/// What kind of payload it is. There may be others one day; a reader passes over those it does not know.
const RECORD: u8 = 1;

/// Of a kernel's name. Templates of libraries have names of a few thousand letters.
pub(crate) const LONGEST_NAME: usize = 4096;

/// What a payload says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Payload {
    Record(Box<(Key, Record)>),
    /// Of a kind that is not known here.
    Other,
}

/// `None` if the kernel has a name that cannot be kept.
pub(crate) fn write(kernel: &Kernel<&str>, site: Option<Site>, record: &Record) -> Option<Vec<u8>> {
    let mut bytes = vec![RECORD];
    write_kernel(&mut bytes, kernel)?;
    bytes.push(u8::from(site.is_some()));
    bytes.extend(site.into_iter().flat_map(|site| site.0.to_le_bytes()));
    bytes.extend(record.last_seen.0.to_le_bytes());
    for count in [record.launches, record.stops, record.broken] {
        short(&mut bytes, count);
    }
    bytes.push(u8::from(record.certificate.is_some()));
    if let Some(Certificate { latency, since }) = record.certificate {
        short(&mut bytes, latency.0);
        bytes.extend(since.0.to_le_bytes());
    }
    short(&mut bytes, record.demotions.len() as u64);
    for (reason, demotion) in &record.demotions {
        text(&mut bytes, reason.as_str());
        short(&mut bytes, demotion.count);
        bytes.extend(demotion.last.0.to_le_bytes());
    }
    for spans in [&record.duration, &record.block, &record.gap] {
        write_spans(&mut bytes, spans);
    }
    Some(bytes)
}

fn write_kernel(bytes: &mut Vec<u8>, kernel: &Kernel<&str>) -> Option<()> {
    let name = Some(kernel.name).filter(|name| is_name(name))?;
    bytes.extend(kernel.module.0.to_le_bytes());
    bytes.push(kernel.rung.number());
    let Geometry { grid, block, shared_bytes } = kernel.geometry;
    for number in [grid.x, grid.y, grid.z, block.x, block.y, block.z, shared_bytes] {
        short(bytes, u64::from(number));
    }
    text(bytes, name);
    Some(())
}

/// Names are shown to people, so nothing that controls a terminal is one.
fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len()) && !name.contains(model::text::is_hidden)
}

/// Each bucket by its distance from the one before.
fn write_spans(bytes: &mut Vec<u8>, spans: &Spans) {
    short(bytes, spans.seen());
    short(bytes, spans.buckets().len() as u64);
    let mut next = 0;
    for &(bucket, count) in spans.buckets() {
        short(bytes, u64::from(bucket) - next);
        short(bytes, u64::from(count));
        next = u64::from(bucket) + 1;
    }
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    short(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

fn short(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// `None` for anything but what [`write`] gave, or a later version of it.
pub(crate) fn read(payload: &[u8]) -> Option<Payload> {
    let (&kind, rest) = payload.split_first()?;
    if kind != RECORD {
        return Some(Payload::Other);
    }
    let mut rest = Rest(rest);
    let kernel = rest.kernel()?;
    let site = if rest.flag()? { Some(Site(rest.word()?)) } else { None };
    let last_seen = Nanos(rest.word()?);
    let [launches, stops, broken] = [rest.short()?, rest.short()?, rest.short()?];
    let certificate = if rest.flag()? { Some(rest.certificate()?) } else { None };
    let demotions = rest.demotions()?;
    let [duration, block, gap] = [rest.spans()?, rest.spans()?, rest.spans()?];
    let record = Record { duration, block, gap, launches, stops, broken, certificate, demotions, last_seen };
    rest.0.is_empty().then(|| Payload::Record(Box::new((Key { kernel, site }, record))))
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn word(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.chunk()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn short(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.chunk()?;
            let part = u64::from(byte & 0x7f);
            // Of the tenth byte one bit is left.
            number |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn half(&mut self) -> Option<u32> {
        self.short().and_then(|number| u32::try_from(number).ok())
    }

    fn text(&mut self, longest: usize) -> Option<&'a str> {
        let length = usize::try_from(self.short()?).ok().filter(|&length| length <= longest)?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn dim3(&mut self) -> Option<Dim3> {
        Some(Dim3::new(self.half()?, self.half()?, self.half()?))
    }

    fn kernel(&mut self) -> Option<Kernel> {
        let module = ModuleHash(u128::from_le_bytes(self.chunk()?));
        let [rung] = self.chunk()?;
        let rung = Rung::from_number(rung)?;
        let geometry = Geometry { grid: self.dim3()?, block: self.dim3()?, shared_bytes: self.half()? };
        let name = self.text(LONGEST_NAME).filter(|name| is_name(name))?.to_owned();
        Some(Kernel { module, name, geometry, rung })
    }

    fn certificate(&mut self) -> Option<Certificate> {
        Some(Certificate { latency: Nanos(self.short()?), since: Nanos(self.word()?) })
    }

    fn demotions(&mut self) -> Option<BTreeMap<Word, Demotion>> {
        let count = usize::try_from(self.short()?).ok().filter(|&count| count <= Record::MOST_DEMOTIONS)?;
        let mut demotions = BTreeMap::new();
        for _ in 0..count {
            let reason = Word::new(self.text(Word::LONGEST)?)?;
            let demotion = Demotion { count: self.short()?, last: Nanos(self.word()?) };
            demotions.insert(reason, demotion);
        }
        (demotions.len() == count).then_some(demotions)
    }

    fn spans(&mut self) -> Option<Spans> {
        let [seen, count] = [self.short()?, self.short()?];
        let mut buckets = Vec::new();
        let mut next = 0_u64;
        for _ in 0..count {
            let bucket = next.checked_add(self.short()?)?;
            let count = self.short().and_then(|count| u16::try_from(count).ok())?;
            buckets.push((u16::try_from(bucket).ok()?, count));
            next = bucket + 1;
        }
        Spans::of(seen, buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{keys, records};
    use proptest::prelude::*;

    fn written(key: &Key, record: &Record) -> Vec<u8> {
        write(&key.kernel.borrowed(), key.site, record).unwrap()
    }

    #[test]
    fn short_numbers_are_short_and_none_is_too_large() {
        for (number, length) in [(0, 1), (127, 1), (128, 2), (u64::from(u32::MAX), 5), (u64::MAX, 10)] {
            let mut bytes = Vec::new();
            short(&mut bytes, number);
            assert_eq!((bytes.len(), Rest(&bytes).short()), (length, Some(number)));
        }
        let mut endless = [0xff; 10];
        assert_eq!(Rest(&endless).short(), None);
        endless[9] = 0x02;
        assert_eq!(Rest(&endless).short(), None, "65 bits");
    }

    #[test]
    fn names_that_cannot_be_kept_are_refused() {
        let (key, record) = crate::examples::gemm();
        let named = |name: &str| write(&Kernel { name, ..key.kernel.borrowed() }, None, &record);
        let [longest, longer] = ["x".repeat(LONGEST_NAME), "x".repeat(LONGEST_NAME + 1)];
        assert!(named(&longest).is_some() && named("ünïcode<1, 2>").is_some());
        assert!(named(&longer).is_none() && named("").is_none() && named("a\nb").is_none());
    }

    #[test]
    fn what_a_later_ebb_writes_beside_records_is_passed_over() {
        assert_eq!(read(&[2, 1, 2, 3]), Some(Payload::Other));
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn no_beginning_of_a_record_is_one() {
        let (key, record) = crate::examples::gemm();
        let bytes = written(&key, &record);
        assert!((1..bytes.len()).all(|cut| read(&bytes[..cut]).is_none()));
        assert_eq!(read(&[&bytes[..], &[0]].concat()), None, "nor with more behind");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(key in keys(), record in records()) {
            let bytes = written(&key, &record);
            prop_assert_eq!(read(&bytes), Some(Payload::Record(Box::new((key, record)))));
        }

        #[test]
        fn no_bytes_are_too_odd(key in keys(), record in records(), at: prop::sample::Index, odd: Vec<u8>) {
            let mut bytes = written(&key, &record);
            let at = at.index(bytes.len());
            for (place, byte) in bytes[at..].iter_mut().zip(&odd) {
                *place = *byte;
            }
            for bytes in [&bytes[..], &odd] {
                if let Some(Payload::Record(read_once)) = read(bytes) {
                    let again = written(&read_once.0, &read_once.1);
                    prop_assert_eq!(read(&again), Some(Payload::Record(read_once)));
                }
            }
        }
    }
}
