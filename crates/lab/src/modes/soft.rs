//! The software GPU: private cards, one for the modes in which contexts take turns and one for those in which all run
//! at once.
//!
//! A scenario is slowed down for the software GPU, so that a few cores can keep pace. The card is slowed down with it:
//! its slices and the cost of a switch are stretched by the same factor, or sharing would look cheaper than it is. Each
//! factor has its own pair of cards.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use model::Domain;
use softgpu::card::Defaults;

use super::{Absence, Environment};

/// What the settings of a card accept, in microseconds.
const LONGEST_SLICE: f64 = 10_000_000.0;
const LONGEST_SWITCH: f64 = 1_000_000.0;

/// One of the cards.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    /// All contexts at once.
    pub shared: bool,
    pub slowdown: f64,
}

pub struct Soft {
    driver: PathBuf,
    runtime: PathBuf,
}

impl Soft {
    pub fn new(driver: &Path, folder: &Path) -> Result<Soft, Absence> {
        let runtime = folder.join("soft");
        let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(&runtime);
        made.map_err(|error| Absence(format!("{}: {error}", runtime.display())))?;
        Ok(Soft { driver: driver.to_owned(), runtime })
    }

    pub fn environment(&self, card: Card) -> Environment {
        let Defaults { sms, memory_bytes, timeslice, switch_cost, .. } = Defaults::default();
        let domain = if card.shared { Domain::Shared } else { Domain::Isolated };
        let stretched =
            |micros: f64, most: f64| ((micros * card.slowdown).round().min(most) as u64).to_string();
        let name = format!("{domain}-x{}", card.slowdown);
        let library = self.driver.parent().unwrap_or(Path::new("/"));
        let settings: [(&str, OsString); 12] = [
            ("EBB_RUNTIME_DIR", self.runtime.clone().into()),
            // How long kernels take here is what a scenario says, and nothing to remember.
            ("EBB_PROFILES", "off".into()),
            ("EBB_GUARD_CACHE", "off".into()),
            ("EBB_DRIVER", self.driver.clone().into()),
            ("LD_LIBRARY_PATH", library.into()),
            ("EBB_SOFTGPU", name.replace('.', "-").into()),
            // Cards of the lab lie in its own folder.
            ("EBB_SOFTGPU_DIR", "".into()),
            ("EBB_SOFTGPU_SMS", sms.to_string().into()),
            ("EBB_SOFTGPU_MEMORY_MIB", (memory_bytes >> 20).to_string().into()),
            ("EBB_SOFTGPU_DOMAIN", domain.to_string().into()),
            ("EBB_SOFTGPU_TIMESLICE_US", stretched(timeslice.as_micros_f64(), LONGEST_SLICE).into()),
            ("EBB_SOFTGPU_SWITCH_US", stretched(switch_cost.as_micros_f64(), LONGEST_SWITCH).into()),
        ];
        settings.into_iter().map(|(name, value)| (name.into(), Some(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_as_slow_as_its_scenario_and_cards_do_not_mix() {
        let folder = tempfile::tempdir().unwrap();
        let soft = Soft::new(Path::new("/d/libcuda.so.1"), folder.path()).unwrap();
        let value = |card: Card, name: &str| {
            let environment = soft.environment(card);
            let found = environment.into_iter().find(|(variable, _)| variable == name).unwrap();
            found.1.unwrap().into_string().unwrap()
        };
        let slow = Card { shared: false, slowdown: 10.0 };
        assert_eq!(value(slow, "EBB_SOFTGPU_TIMESLICE_US"), "20480");
        assert_eq!(value(slow, "EBB_SOFTGPU_SWITCH_US"), "1500");
        assert_eq!(value(slow, "EBB_SOFTGPU_DOMAIN"), "isolated");
        let names = [slow, Card { shared: true, ..slow }, Card { slowdown: 2.5, ..slow }];
        let names = names.map(|card| value(card, "EBB_SOFTGPU"));
        assert_eq!(names, ["isolated-x10", "shared-x10", "isolated-x2-5"]);
    }
}
