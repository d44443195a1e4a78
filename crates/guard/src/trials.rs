//! Hostile input, and what must hold of whatever is read from it. Fuzzers call this, and tests with drawn input.

use xxhash_rust::xxh3::xxh3_128;

use crate::demotion::Demotion;
use crate::kept;

/// Any bytes as a rewritten image on disk: what is read can be kept, and reads the same again.
pub fn kept_image(data: &[u8]) {
    look(data);
    // No bytes have their sum by chance, so the input is also given one that is right.
    look(&[&b"ebbtwin2"[..], &xxh3_128(data).to_le_bytes(), data].concat());
}

fn look(bytes: &[u8]) {
    let Some(rewritten) = kept::read(bytes) else { return };
    assert!(rewritten.image.len() <= bytes.len() && rewritten.kernels.len() <= bytes.len());
    for kernel in &rewritten.kernels {
        let ends = kernel.parameters.iter().map(|parameter| parameter.offset.checked_add(parameter.size));
        assert!(ends.chain([Some(kernel.control_offset)]).all(|end| end.is_some_and(|end| end <= 1 << 15)));
    }
    assert_eq!(kept::write(&rewritten), bytes, "there is one way to write it");
}

/// Any bytes as the file of demotions: what a line says is said again by the line that is written of it.
pub fn demotions(data: &[u8]) {
    for line in String::from_utf8_lossy(data).lines() {
        let Some(read) = Demotion::parse(line) else { continue };
        let written = read.to_string();
        assert_eq!(written.lines().count(), 1);
        assert!(!written.contains(char::is_control));
        assert_eq!(Demotion::parse(&written), Some(read));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Kernel, Parameter, Reason, Rewritten, Rule, Verdict};

    fn image() -> Vec<u8> {
        let parameters = vec![Parameter { offset: 0, size: 8 }, Parameter { offset: 8, size: 4 }];
        let kernel = |name: &str, verdict| Kernel {
            name: name.to_owned(),
            verdict,
            parameters: parameters.clone(),
            control_offset: 16,
            overlaps: true,
        };
        let kernels =
            vec![kernel("add", Verdict::Guard(Rule::Plain)), kernel("all", Verdict::Refuse(Reason::Nccl))];
        kept::write(&Rewritten { image: b"\x7fELF".to_vec(), kernels })
    }

    proptest! {
        #[test]
        fn no_kept_image_is_too_odd(at in 0usize..200, odd in proptest::collection::vec(any::<u8>(), 0..12)) {
            let mut bytes = image();
            let at = at % bytes.len();
            let end = (at + odd.len()).min(bytes.len());
            bytes.splice(at..end, odd);
            kept_image(&bytes);
            // Behind the magic and the sum.
            kept_image(bytes.get(24..).unwrap_or_default());
        }

        #[test]
        fn no_demotion_is_too_odd(
            key in "[+0-9a-fA-F]{31,33}",
            word in prop_oneof![Just("ordered"), Just("waits-for-others"), Just("nccl"), Just("x")],
            seconds in "[+0-9]{0,22}",
            name in "\\PC*|.*",
        ) {
            demotions(format!("{key} {word} {seconds} {name}\n").as_bytes());
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            kept_image(&bytes);
            demotions(&bytes);
        }
    }
}
