//! Records for tests, one and many.

use model::{Dim3, Geometry, Kernel, ModuleHash, Nanos, Rung, Site};
use proptest::prelude::*;

use crate::Spans;
use crate::record::{Certificate, Demotion, Key, Record, Word};

/// 2026-11-15.
const NOW: u64 = 1_794_700_800_000_000_000;

/// An ordinary kernel, seen a few times.
pub fn gemm() -> (Key, Record) {
    let mut record = Record { launches: 1000, stops: 12, last_seen: Nanos(NOW), ..Record::default() };
    let times = [300, 310, 320, 350, 900];
    record.duration = times.into_iter().map(Nanos::from_micros).collect();
    record.block = times.into_iter().map(|time| Nanos::from_micros(time / 6)).collect();
    record.gap = times.into_iter().map(|_| Nanos::from_micros(4)).collect();
    record.certificate = Some(Certificate { latency: Nanos::from_micros(95), since: Nanos(NOW) });
    (kernel("gemm"), record)
}

/// A kernel of this name, wherever it is launched.
pub fn kernel(name: &str) -> Key {
    let geometry = Geometry { grid: Dim3::new(8, 4, 1), block: Dim3::new(128, 1, 1), shared_bytes: 49_152 };
    let kernel = Kernel { module: ModuleHash(7 << 100), name: name.to_owned(), geometry, rung: Rung::Guard };
    Key { kernel, site: None }
}

pub fn keys() -> impl Strategy<Value = Key> {
    let dim3 = || any::<[u32; 3]>().prop_map(|[x, y, z]| Dim3::new(x, y, z));
    let geometry = (dim3(), dim3(), any::<u32>());
    let geometry = geometry.prop_map(|(grid, block, shared_bytes)| Geometry { grid, block, shared_bytes });
    let rung = prop::sample::select(&Rung::ALL[..]);
    // Some letters are seen by nobody, and are in no name.
    let name = "\\PC{1,60}".prop_map(|name: String| model::text::printable(&name));
    let parts = (any::<u128>(), name, geometry, rung, any::<Option<u64>>());
    parts.prop_map(|(module, name, geometry, rung, site)| {
        let kernel = Kernel { module: ModuleHash(module), name, geometry, rung };
        Key { kernel, site: site.map(Site) }
    })
}

fn spans() -> impl Strategy<Value = Spans> {
    let times = prop::collection::vec((0_u32..48, any::<u64>()), 0..20);
    times.prop_map(|times| times.into_iter().map(|(bits, time)| Nanos(time & ((1 << bits) - 1))).collect())
}

pub fn records() -> impl Strategy<Value = Record> {
    let words = ["ordered", "differs", "nccl", "broke-certificate"].map(|word| Word::new(word).unwrap());
    let demotion =
        (0..u64::MAX / 8, any::<u64>()).prop_map(|(count, last)| Demotion { count, last: Nanos(last) });
    let demotions = prop::collection::btree_map(prop::sample::select(words.to_vec()), demotion, 0..4);
    let certificate = any::<Option<(u64, u64)>>().prop_map(|pair| {
        pair.map(|(latency, since)| Certificate { latency: Nanos(latency), since: Nanos(since) })
    });
    let spans = (spans(), spans(), spans());
    let counts = (0..u64::MAX / 8, 0..u64::MAX / 8, 0..u64::MAX / 8, any::<u64>());
    (spans, counts, certificate, demotions).prop_map(|(spans, counts, certificate, demotions)| {
        let (duration, block, gap) = spans;
        let (launches, stops, broken, last_seen) = counts;
        let last_seen = Nanos(last_seen);
        Record { duration, block, gap, launches, stops, broken, certificate, demotions, last_seen }
    })
}
