//! `domain = "auto"`: which domain a daemon chooses by itself.
//!
//! A daemon has one domain for all its GPUs and for as long as it lives, and it must have one before its first tenant comes. At
//! that moment it knows the machine, and what earlier runs have left of their kernels. It does not know who will come, nor
//! how much delay that tenant could bear. So it asks what can be answered: would nearly all of the work that was seen here leave the
//! GPU clearly sooner, between blocks, than by a switch of contexts? *Clearly* is half the time. If so, whoever comes is better
//! served in the shared domain; if not, or if nothing is known, the isolated one is safer and loses little.
//!
//! Only what was stopped between blocks before, or could only be held, says anything about that: what ran by turns in the isolated
//! domain was never tried. To write `auto` is to agree that a fault of one tenant may become everybody's, for the tenants of
//! one user. The machine's daemon may have tenants of several, who have not agreed to anything with each other.

use std::path::Path;

use model::{Domain, Nanos, Rung};
use policy::domain::{Because, Circumstances, Profile, choose};
use profile::{Record, Store};

use crate::{Configuration, Scope};

/// What a switch of contexts takes.
const SWITCH: Nanos = Nanos::from_micros(200);
/// What is to be reached, if a shared fate is to be worth it.
const CLEARLY_LESS: Nanos = Nanos::from_micros(100);
/// Of a thousand blocks, so many may be longer.
const NEARLY_ALL: u32 = 990;

/// What is chosen, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub domain: Domain,
    pub because: Because,
}

/// What suits a daemon with this configuration on this machine, whose MPS is or would be in that folder.
pub fn choice(configuration: &Configuration, own: &Path) -> Choice {
    let machine = installation::Machine::here();
    let module = machine.kernel_module();
    let needs_mps = configuration.mps.unwrap_or(module.is_some());
    let can_share = !needs_mps || mps::find().is_ok() && mps::foreign_to(own).is_none();
    let known = |text: Vec<u8>| switch::driver::judge(&text).is_ok();
    // The software GPU lets everybody set slices.
    let switch = module.is_none() || std::fs::read(switch::driver::VERSION_FILE).is_ok_and(known);
    let profile = Store::of_this_user().map(|store| seen(&store, module.as_deref())).unwrap_or_default();
    judge(configuration.ceilings.scope, can_share, switch, &profile)
}

fn judge(scope: Scope, can_share: bool, switch: bool, profile: &Profile) -> Choice {
    let around = Circumstances {
        slack: Some(CLEARLY_LESS),
        switch: switch.then_some(SWITCH),
        can_share,
        may_share: scope == Scope::User,
    };
    let chosen = choose(profile, &around);
    Choice { domain: chosen.domain, because: chosen.because }
}

/// What is known of best-effort work on this driver, from all GPUs. A store that cannot be read knows nothing.
fn seen(store: &Store, driver: Option<&str>) -> Profile {
    let here = |platform: &profile::Platform| {
        platform.ebb() == env!("CARGO_PKG_VERSION") && driver.is_none_or(|driver| platform.driver() == driver)
    };
    let platforms = store.platforms().unwrap_or_default().into_iter().filter_map(|found| found.platform);
    let mut sum = Sum::default();
    for platform in platforms.filter(here) {
        let Ok(reading) = store.read(&platform) else { continue };
        // A kernel has a record for all places together, besides those of single ones.
        let whole = reading.profile.iter().filter(|(key, _)| key.site.is_none());
        whole.for_each(|(key, record)| sum.add(key.kernel.rung, record));
    }
    sum.profile()
}

/// GPU time, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    seen: u128,
    guarded: u128,
    long_blocks: u128,
}

impl Sum {
    fn add(&mut self, rung: Rung, record: &Record) {
        if !matches!(rung, Rung::Guard | Rung::Hold) {
            return;
        }
        let time = record.duration.quantile(500).unwrap_or_default();
        let time = u128::from(time.0) * u128::from(record.launches);
        self.seen += time;
        if rung == Rung::Guard && record.demotions.is_empty() {
            self.guarded += time;
        }
        // A block of which nothing is known may last as long as its kernel.
        let block = record.block.quantile(NEARLY_ALL).or_else(|| record.duration.quantile(NEARLY_ALL));
        if block.is_none_or(|block| block > CLEARLY_LESS) {
            self.long_blocks += time;
        }
    }

    fn profile(&self) -> Profile {
        let share = |part: u128| u32::try_from(part * 1_000 / self.seen.max(1)).unwrap_or(1_000);
        Profile {
            seen: Nanos(u64::try_from(self.seen).unwrap_or(u64::MAX)),
            guarded: share(self.guarded),
            long_blocks: share(self.long_blocks),
            // Of such kernels it is only known that they are held.
            cooperative: 0,
            graphs: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use forecast::Sketch;
    use model::{Dim3, Geometry, Kernel, ModuleHash};
    use profile::{Batch, Platform, Spans};

    use super::*;

    fn us(micros: u64) -> Nanos {
        Nanos::from_micros(micros)
    }

    fn spans(span: Nanos) -> Spans {
        let mut sketch = Sketch::remembering(4096);
        (0..100).for_each(|_| sketch.observe(span));
        Spans::from(&sketch)
    }

    fn kernel(name: &str, rung: Rung) -> Kernel {
        let one = Dim3 { x: 1, y: 1, z: 1 };
        let geometry = Geometry { grid: one, block: one, shared_bytes: 0 };
        Kernel { module: ModuleHash(7), name: name.to_owned(), geometry, rung }
    }

    fn record(duration: Nanos, block: Nanos, launches: u64) -> Record {
        Record { duration: spans(duration), block: spans(block), launches, ..Record::default() }
    }

    /// What is chosen by one who has kept these records.
    fn chosen(records: &[(Kernel, Record)]) -> (Domain, Because) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("profiles"));
        let mut batch = Batch::default();
        for (Kernel { module, name, geometry, rung }, record) in records {
            let kernel = Kernel { module: *module, name: name.as_str(), geometry: *geometry, rung: *rung };
            batch.add(&kernel, None, record).unwrap();
        }
        store.append(&Platform::here("NVIDIA H200", "580.159.04"), &batch).unwrap();
        let profile = seen(&store, Some("580.159.04"));
        assert_eq!(seen(&store, Some("570.1")), Profile::default(), "another driver is another machine");
        let choice = judge(Scope::User, true, true, &profile);
        (choice.domain, choice.because)
    }

    #[test]
    fn short_blocks_that_were_guarded_before_are_shared() {
        let short = (kernel("short", Rung::Guard), record(us(500), us(30), 2_000));
        assert_eq!(chosen(std::slice::from_ref(&short)), (Domain::Shared, Because::GuardIsFaster));
        let latency = (kernel("serve", Rung::None), record(us(900), us(900), 90_000));
        let turns = (kernel("turns", Rung::Switch), record(us(900), us(900), 90_000));
        let both = [short.clone(), latency, turns];
        assert_eq!(
            chosen(&both),
            (Domain::Shared, Because::GuardIsFaster),
            "who is not stopped so is not asked"
        );
        let long = (kernel("long", Rung::Guard), record(us(500), us(400), 100));
        assert_eq!(chosen(&[short.clone(), long]), (Domain::Isolated, Because::LongBlocks));
        let held = (kernel("held", Rung::Hold), record(us(90), us(90), 1_000));
        assert_eq!(chosen(&[short, held]), (Domain::Isolated, Because::Unguarded));
    }

    #[test]
    fn what_is_not_known_or_not_agreed_to_stays_isolated() {
        let little = (kernel("short", Rung::Guard), record(us(500), us(30), 10));
        assert_eq!(chosen(&[little]), (Domain::Isolated, Because::NotSeenEnough));
        let good = Profile { seen: Nanos::MAX, guarded: 1_000, ..Profile::default() };
        let because = |scope, can_share, switch| judge(scope, can_share, switch, &good).because;
        assert_eq!(because(Scope::User, true, true), Because::GuardIsFaster);
        assert_eq!(because(Scope::User, true, false), Because::NoSwitch);
        assert_eq!(because(Scope::User, false, true), Because::NotAvailable);
        assert_eq!(because(Scope::Machine, true, true), Because::NotAllowed);
    }
}
