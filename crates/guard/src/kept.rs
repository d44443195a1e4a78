//! The bytes of a rewritten image with its kernels, as they are kept on disk.
//!
//! A sum over everything, then the kernels, then the image. The sum finds what a disk or a crash has done; whoever can
//! write here on purpose can do worse. All the same nothing is believed: a length that does not fit is the end.

use xxhash_rust::xxh3::xxh3_128;

use crate::{Kernel, Parameter, Rewritten, Verdict};

const MAGIC: &[u8; 8] = b"ebbtwin2";
const SUM: usize = 16;
/// No kernel has more parameters.
const MOST_PARAMETERS: u32 = 8192;
/// Nor do its parameters have more bytes together; a launch makes room for them.
const MOST_BYTES: u32 = 1 << 15;

pub fn write(rewritten: &Rewritten) -> Vec<u8> {
    let mut body = Vec::with_capacity(rewritten.image.len() + 4096);
    number(&mut body, rewritten.kernels.len());
    for kernel in &rewritten.kernels {
        body.push(kernel.verdict.number());
        body.push(u8::from(kernel.overlaps));
        body.extend(kernel.control_offset.to_le_bytes());
        number(&mut body, kernel.parameters.len());
        for parameter in &kernel.parameters {
            body.extend(parameter.offset.to_le_bytes());
            body.extend(parameter.size.to_le_bytes());
        }
        number(&mut body, kernel.name.len());
        body.extend(kernel.name.as_bytes());
    }
    number(&mut body, rewritten.image.len());
    body.extend(&rewritten.image);
    [&MAGIC[..], &xxh3_128(&body).to_le_bytes(), &body].concat()
}

fn number(body: &mut Vec<u8>, number: usize) {
    let number = u32::try_from(number).expect("images are shorter than 4 GiB, and so is all in them");
    body.extend(number.to_le_bytes());
}

/// `None` for anything but what [`write`] gave.
pub fn read(bytes: &[u8]) -> Option<Rewritten> {
    let (sum, body) = bytes.strip_prefix(MAGIC)?.split_at_checked(SUM)?;
    if xxh3_128(body).to_le_bytes() != sum {
        return None;
    }
    let mut rest = Rest(body);
    let count = rest.number()?;
    let mut kernels = Vec::new();
    for _ in 0..count {
        kernels.push(rest.kernel()?);
    }
    let length = rest.number()?;
    let image = rest.take(length as usize)?.to_vec();
    rest.0.is_empty().then_some(Rewritten { image, kernels })
}

struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn kernel(&mut self) -> Option<Kernel> {
        let verdict = Verdict::from_number(*self.take(1)?.first()?)?;
        let overlaps = match self.take(1)? {
            [0] => false,
            [1] => true,
            _ => return None,
        };
        let control_offset = self.number()?;
        let count = self.number().filter(|&count| count <= MOST_PARAMETERS)?;
        let mut parameters = Vec::new();
        for _ in 0..count {
            let parameter = Parameter { offset: self.number()?, size: self.number()? };
            parameter.offset.checked_add(parameter.size).filter(|&end| end <= MOST_BYTES)?;
            parameters.push(parameter);
        }
        if control_offset > MOST_BYTES {
            return None;
        }
        let length = self.number()?;
        let name = std::str::from_utf8(self.take(length as usize)?).ok()?.to_owned();
        Some(Kernel { name, verdict, parameters, control_offset, overlaps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reason, Rule};

    fn example() -> Rewritten {
        let parameters = vec![Parameter { offset: 0, size: 8 }, Parameter { offset: 8, size: 4 }];
        let kernel = |name: &str, verdict| Kernel {
            name: name.to_owned(),
            verdict,
            parameters: parameters.clone(),
            control_offset: 16,
            overlaps: name == "scan",
        };
        let kernels = vec![
            kernel("add", Verdict::Guard(Rule::Plain)),
            kernel("scan", Verdict::Guard(Rule::Ordered)),
            kernel("all", Verdict::Refuse(Reason::Nccl)),
        ];
        Rewritten { image: b"\x7fELF and more".to_vec(), kernels }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(read(&write(&example())), Some(example()));
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let bytes = write(&example());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert_eq!(read(&changed), None, "byte {at}");
            assert_eq!(read(&bytes[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn parameters_that_no_kernel_has_are_refused() {
        for (offset, size) in [(MOST_BYTES, 1), (u32::MAX, u32::MAX), (0, MOST_BYTES + 1)] {
            let mut odd = example();
            odd.kernels[0].parameters[1] = Parameter { offset, size };
            assert_eq!(read(&write(&odd)), None, "{offset} {size}");
        }
        let mut odd = example();
        odd.kernels[0].control_offset = u32::MAX;
        assert_eq!(read(&write(&odd)), None);
    }

    #[test]
    fn lengths_that_are_lies_are_no_panic() {
        let body = &write(&example())[MAGIC.len() + SUM..];
        for at in 0..body.len().min(200) {
            let mut lies = body.to_vec();
            lies[at] = 0xff;
            let bytes = [&MAGIC[..], &xxh3_128(&lies).to_le_bytes(), &lies].concat();
            let _ = read(&bytes);
        }
    }
}
