//! Any bytes as a profile, as a batch of records and as a record: what is read can be kept, and reads the same again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use profile::{Batch, Damage, Platform, Profile, Reading};
use xxhash_rust::xxh3::xxh3_64_with_seed;

// A record has a sum, which no bytes have by chance, so the input is also put into a frame that is right.
fuzz_target!(|data: &[u8]| {
    let _ = Reading::of(data, &Platform::new("NVIDIA H200", "580.159.04", "0.1.0"));
    look(data);
    let mut frame = b"\xebbF1".to_vec();
    frame.extend((data.len() as u32).to_le_bytes());
    frame.extend(xxh3_64_with_seed(data, data.len() as u64).to_le_bytes());
    frame.extend(data);
    look(&frame);
});

fn look(bytes: &[u8]) {
    let (batch, damage) = Batch::read(bytes);
    assert_eq!(batch.as_bytes().len() + damage.bytes, bytes.len());
    assert_eq!(Batch::read(batch.as_bytes()), (batch.clone(), Damage::default()));
    let mut profile = Profile::default();
    profile.take_in(&batch);
    assert!(profile.len() <= batch.len());
    let mut again = Batch::new();
    for (key, record) in profile.iter() {
        assert!(!key.kernel.name.contains(model::text::is_hidden));
        let spans = [&record.duration, &record.block, &record.gap];
        assert!(spans.iter().all(|spans| spans.quantile(100) <= spans.quantile(990)));
        again.add(&key.kernel.borrowed(), key.site, record).expect("what was in a batch fits into one");
    }
    let mut same = Profile::default();
    same.take_in(&again);
    assert_eq!(same, profile);
}
