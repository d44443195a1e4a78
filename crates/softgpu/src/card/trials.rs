//! Hostile input, and what must hold of whatever is read from it. Fuzzers call this, and tests with drawn input.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use model::Nanos;

use super::layout::{MAGIC, MAX_PROCESSES, MAX_SMS, Segment, VERSION};
use super::{Card, Defaults, now, survey};

const BYTES: usize = size_of::<Segment>();

/// Any bytes as a card's file: who looks at it is told of processes that live, and who attaches to it has a card that works.
///
/// A card is long, so the input is pieces of it: where each begins, how long it is, and what stands there; the beginning is right, or
/// nothing would be believed. Without pieces the input is the file.
pub fn card_file(data: &[u8]) {
    look_at(data);
    let mut bytes = vec![0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC.to_ne_bytes());
    bytes[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    let mut rest = data;
    while let Some(([a, b, c, length], more)) = rest.split_first_chunk::<4>() {
        // Half of them among the settings and the first words, where most is decided.
        let span = if c % 2 == 0 { 256 } else { BYTES - 12 };
        let place = 12 + (usize::from(*a) | usize::from(*b) << 8 | usize::from(*c) << 16) % span;
        let length = usize::from(*length).min(more.len()).min(BYTES - place);
        bytes[place..place + length].copy_from_slice(&more[..length]);
        rest = &more[length..];
    }
    look_at(&bytes);
    let folder = TrialFolder::new();
    let path = folder.0.join(format!("softgpu-trial.{VERSION}.card"));
    for file in [data, &bytes] {
        std::fs::write(&path, file).expect("there is room for a card");
        attach_to(&folder.0);
    }
}

fn look_at(bytes: &[u8]) {
    let Some(segment) = survey::segment_of(bytes) else { return };
    let Some(company) = survey::company(&segment) else { return };
    assert!(company.processes.len() <= MAX_PROCESSES);
    assert!(company.processes.iter().all(|process| Path::new(&format!("/proc/{}", process.pid)).exists()));
}

fn attach_to(folder: &Path) {
    let card = Card::attach_in(folder, "trial", Defaults::default()).expect("what nobody uses is made anew");
    assert!((1..=MAX_SMS as u32).contains(&card.properties().sms));
    assert_eq!(card.memory_used(), 0, "nobody has any");
    let (first, second) = (card.create_context(), card.create_context());
    let (Ok(first), Ok(second)) = (first, second) else { panic!("an empty card has room for contexts") };
    assert_ne!(first.id, second.id);
    for context in [&first, &second] {
        card.set_runnable(context, true);
    }
    for later in [0, 1, 1_000_000_000] {
        card.arbitrate_if_due(now() + Nanos(later));
        let _ = (card.turn(&first), card.turn(&second), card.next_arbitration());
    }
    card.destroy_context(&first);
    card.destroy_context(&second);
    assert_eq!(survey::survey(folder).first().map_or(0, |card| card.processes.len()), 0);
}

/// A folder that goes with the trial.
struct TrialFolder(PathBuf);

impl TrialFolder {
    fn new() -> TrialFolder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ebb-trial-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        TrialFolder(path)
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_that_are_all_used_begin_again() {
        // The settings, and everything among the first words, at its highest.
        let mut data = Vec::new();
        for place in [0u8, 100, 200] {
            data.extend([place, 0, 0, 100]);
            data.extend([0xff; 100]);
        }
        card_file(&data);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_card_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            card_file(&bytes);
        }
    }
}
