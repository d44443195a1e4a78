//! What timed launches have shown since it was last written down, added up for each kernel in each shape.

use std::collections::BTreeMap;
use std::ptr;

use cuda_abi::CUdevice;
use guard::Reason;
use model::{Geometry, Kernel, ModuleHash, Nanos, Rung};
use profile::{Batch, Certificate, Error, Record, Spans, Word};

use super::sighting::Sighting;
use crate::frames::Frame;

/// A kernel as this process knows it, on one of its GPUs. Frames are never used again, so an address is a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    device: CUdevice,
    frame: usize,
    geometry: Geometry,
    rung: Rung,
}

struct Sum {
    frame: &'static Frame,
    /// The times of launches and of their blocks that are not in the record yet: to count one costs more than to keep it.
    fresh: Vec<(Nanos, Nanos)>,
    /// What was promised last.
    promised: Nanos,
    record: Record,
}

#[derive(Default)]
pub struct Tally {
    sums: BTreeMap<Key, Sum>,
    /// In which shape each kernel was last seen: what is known of the kernel and not of a launch is told of that one.
    latest: BTreeMap<usize, (&'static Frame, Key)>,
}

/// Kernels in one shape of which something is kept at once. More are lost until it is written down.
const MOST: usize = 4096;
/// Fresh times of one.
const MOST_FRESH: usize = 256;

impl Tally {
    pub fn add(&mut self, sighting: &Sighting) {
        let Sighting { frame, device, geometry, rung, .. } = *sighting;
        let key = Key { device, frame: ptr::from_ref(frame).addr(), geometry, rung };
        let known = self.sums.contains_key(&key) || self.sums.len() < MOST;
        if !known || kernel(frame, &key).is_none() {
            return;
        }
        if self.latest.len() < MOST || self.latest.contains_key(&key.frame) {
            self.latest.insert(key.frame, (frame, key));
        }
        let sum = self.sums.entry(key).or_insert_with(|| Sum::new(frame));
        sum.record.launches += u64::from(sighting.stands_for);
        sum.promised = sighting.certificate;
        sum.fresh.push((sighting.launch, sighting.block));
        if sum.fresh.len() >= MOST_FRESH {
            sum.count();
        }
    }

    /// A kernel was demoted. If it was never timed there is no shape to tell that of; the guard's own list has it.
    pub fn demoted(&mut self, frame: &'static Frame, reason: Reason, now: Nanos) {
        let key = self.latest.get(&ptr::from_ref(frame).addr()).map(|(_, key)| *key);
        if let (Some(key), Some(word)) = (key, Word::new(reason.name())) {
            self.sums.entry(key).or_insert_with(|| Sum::new(frame)).record.demote(word, now);
        }
    }

    /// Adds what was counted beside the timed launches: launches that none of them stands for, and stops.
    pub fn add_counts(&mut self) {
        for &(frame, key) in self.latest.values() {
            let launches = u64::from(frame.place.stand_for_rest());
            let (stops, broken) = frame.place.take_stops();
            if launches + stops > 0 {
                let record = &mut self.sums.entry(key).or_insert_with(|| Sum::new(frame)).record;
                record.launches += launches;
                record.stops += stops;
                record.broken += broken;
            }
        }
    }

    /// The GPU of what is to be written down next.
    pub fn first_device(&self) -> Option<CUdevice> {
        self.sums.first_key_value().map(|(key, _)| key.device)
    }

    /// As much about a GPU as one batch holds, and of how many sums that is.
    pub fn batch(&mut self, device: CUdevice, now: Nanos) -> (Batch, usize) {
        let mut batch = Batch::new();
        let mut added = 0;
        for (key, sum) in self.sums.iter_mut().take_while(|(key, _)| key.device == device) {
            sum.count();
            sum.record.last_seen = now;
            let promised = Some(sum.promised).filter(|promised| *promised > Nanos::ZERO);
            sum.record.certificate = promised.map(|latency| Certificate { latency, since: now });
            let kernel = kernel(sum.frame, key).expect("others are not added");
            // One that cannot be kept at all is passed over.
            if matches!(batch.add(&kernel, None, &sum.record), Err(Error::Full)) && added > 0 {
                break;
            }
            added += 1;
        }
        (batch, added)
    }

    /// The first so many are written down.
    pub fn forget(&mut self, sums: usize) {
        (0..sums).for_each(|_| drop(self.sums.pop_first()));
    }

    /// What was seen on a GPU is of no use.
    pub fn forget_device(&mut self, device: CUdevice) {
        self.sums.retain(|key, _| key.device != device);
    }
}

impl Sum {
    fn new(frame: &'static Frame) -> Sum {
        Sum { frame, fresh: Vec::new(), promised: Nanos::ZERO, record: Record::default() }
    }

    fn count(&mut self) {
        let spans = |which: fn(&(Nanos, Nanos)) -> Nanos| self.fresh.iter().map(which).collect::<Spans>();
        let (launches, blocks) = (spans(|fresh| fresh.0), spans(|fresh| fresh.1));
        self.record.duration.merge(&launches);
        self.record.block.merge(&blocks);
        self.fresh.clear();
    }
}

/// `None` for one that could not be told from others: of code that was not seen, or with a name that is no text.
fn kernel(frame: &'static Frame, key: &Key) -> Option<Kernel<&'static str>> {
    let (module, name) = identity(frame)?;
    Some(Kernel { module, name, geometry: key.geometry, rung: key.rung })
}

/// Which code a frame is of, and its name there.
pub fn identity(frame: &'static Frame) -> Option<(ModuleHash, &'static str)> {
    let module = Some(ModuleHash(frame.module.image.hash)).filter(|hash| *hash != ModuleHash::default())?;
    Some((module, std::str::from_utf8(frame.name).ok()?))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::frames::{Frames, Image, Module, Of};
    use model::Dim3;
    use profile::Profile;

    /// A kernel of a module with this hash.
    pub fn frame(hash: u128, name: &std::ffi::CStr) -> &'static Frame {
        let frames = Frames::new(false).unwrap();
        frames.loaded(1, Module::new(Image { hash, ..Image::UNKNOWN })).unwrap();
        frames.found(2, Of::Module, 1, name).unwrap();
        frames.function(2).unwrap()
    }

    pub fn sighting(frame: &'static Frame, blocks: u32, micros: u64) -> Sighting {
        let geometry = Geometry { grid: Dim3::new(blocks, 1, 1), block: Dim3::ONE, shared_bytes: 0 };
        Sighting {
            frame,
            device: 0,
            geometry,
            rung: Rung::Guard,
            stands_for: 32,
            launch: Nanos::from_micros(micros),
            block: Nanos::from_micros(micros / 2),
            certificate: Nanos::from_micros(micros),
        }
    }

    fn read(batch: &Batch) -> Vec<(u32, Record)> {
        let mut profile = Profile::default();
        profile.take_in(batch);
        profile.iter().map(|(key, record)| (key.kernel.geometry.grid.x, record.clone())).collect()
    }

    #[test]
    fn what_was_seen_is_added_up_for_each_shape() {
        let (mut tally, gemm) = (Tally::default(), frame(7, c"gemm"));
        for round in 1..=MOST_FRESH as u64 + 5 {
            tally.add(&sighting(gemm, 1, 10));
            tally.add(&sighting(gemm, 9, 100 + round));
        }
        let (batch, sums) = tally.batch(0, Nanos(1));
        let [(1, small), (9, large)] = &read(&batch)[..] else { panic!("{sums}") };
        let seen = MOST_FRESH as u64 + 5;
        for record in [small, large] {
            assert_eq!((record.duration.seen(), record.block.seen()), (seen, seen));
            assert_eq!((record.launches, record.last_seen), (32 * seen, Nanos(1)));
        }
        assert!(small.block.quantile(990).unwrap() < Nanos::from_micros(6));
        let last = Nanos::from_micros(100 + seen);
        assert_eq!(large.certificate, Some(Certificate { latency: last, since: Nanos(1) }));
        tally.forget(sums);
        assert_eq!((tally.first_device(), tally.batch(0, Nanos(2)).1), (None, 0), "said once");
    }

    #[test]
    fn launches_between_the_timed_ones_and_stops_are_told_of_the_last_shape() {
        let (mut tally, gemm) = (Tally::default(), frame(7, c"gemm"));
        let timed = (0..40).filter(|_| gemm.place.count_launch().is_some()).count();
        assert_eq!(timed, 40, "nobody has said which is next");
        gemm.place.count_stop(false);
        tally.add_counts();
        assert_eq!(tally.first_device(), None, "nobody knows in which shape");
        tally.add(&sighting(gemm, 1, 10));
        tally.add(&sighting(gemm, 9, 10));
        gemm.place.count_stop(true);
        tally.add_counts();
        tally.demoted(gemm, Reason::BrokeCertificate, Nanos(5));
        tally.demoted(frame(7, c"other"), Reason::BrokeCertificate, Nanos(5));
        let read = read(&tally.batch(0, Nanos(9)).0);
        let [(1, small), (9, large)] = &read[..] else { panic!("{read:?}") };
        assert_eq!((small.launches, small.stops, small.broken), (32, 0, 0));
        assert_eq!((large.launches, large.stops, large.broken), (32 + 40, 2, 1));
        assert_eq!(large.demotions.keys().map(Word::as_str).collect::<Vec<_>>(), ["broke-certificate"]);
    }

    #[test]
    fn what_cannot_be_told_from_others_is_not_kept_and_there_is_a_bound() {
        let mut tally = Tally::default();
        tally.add(&sighting(frame(0, c"of unknown code"), 1, 10));
        tally.add(&sighting(frame(7, c"\xff"), 1, 10));
        assert_eq!(tally.first_device(), None);
        let gemm = frame(7, c"gemm");
        (0..MOST as u32 + 10).for_each(|blocks| tally.add(&sighting(gemm, blocks, 10)));
        let mut written = 0;
        while let (_, sums @ 1..) = tally.batch(0, Nanos(1)) {
            tally.forget(sums);
            written += sums;
        }
        assert_eq!(written, MOST);
    }

    #[test]
    fn gpus_are_told_apart() {
        let (mut tally, gemm) = (Tally::default(), frame(7, c"gemm"));
        for device in [1, 0, 1] {
            tally.add(&Sighting { device, ..sighting(gemm, 1, 10) });
        }
        assert_eq!((tally.first_device(), tally.batch(0, Nanos(1)).1), (Some(0), 1));
        tally.forget_device(0);
        assert_eq!((tally.first_device(), tally.batch(1, Nanos(1)).1), (Some(1), 1));
    }
}
