//! Kernels for tests.

#![allow(dead_code, reason = "every test file uses a part of this")]

use model::{Dim3, Geometry, Kernel, ModuleHash, Nanos, Rung};
use profile::{Batch, Key, Platform, Profile, Record};

pub fn platform() -> Platform {
    Platform::new("NVIDIA H200", "580.159.04", "0.1.0")
}

pub fn key(name: &str) -> Key {
    let geometry = Geometry { grid: Dim3::new(64, 1, 1), block: Dim3::new(256, 1, 1), shared_bytes: 0 };
    Key {
        kernel: Kernel { module: ModuleHash(7), name: name.to_owned(), geometry, rung: Rung::Hold },
        site: None,
    }
}

/// That each of these was launched once.
pub fn batch(names: &[&str]) -> Batch {
    let duration = [Nanos::from_micros(20)].into_iter().collect();
    let record =
        Record { duration, launches: 1, last_seen: Nanos(1_794_700_800_000_000_000), ..Record::default() };
    let mut batch = Batch::new();
    for name in names {
        batch.add(&key(name).kernel.borrowed(), None, &record).unwrap();
    }
    batch
}

/// How many launches a batch tells of.
pub fn seen(batch: &Batch) -> u64 {
    let mut profile = Profile::default();
    profile.take_in(batch);
    profile.iter().map(|(_, record)| record.launches).sum()
}
