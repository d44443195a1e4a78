//! What there is: profiles of all platforms, and what the guard has found out.

use anyhow::{Result, bail};
use installation::memory;
use model::{Kernel, Site};
use profile::{Damage, Demoted, Platform, Profile, Record, Store};

#[derive(Debug, Default)]
pub struct Kept {
    pub platforms: Vec<Known>,
    /// By the guard, on whatever platform.
    pub demoted: Vec<Demoted>,
    /// What is wrong with some of it, in sentences.
    pub remarks: Vec<String>,
    /// Where all of it lies.
    pub folder: String,
}

/// A platform and its kernels.
#[derive(Debug)]
pub struct Known {
    pub platform: Platform,
    pub bytes: u64,
    pub damage: Damage,
    /// Those that keep the GPU busy longest first.
    pub kernels: Vec<KnownKernel>,
}

/// A kernel: wherever it is launched, and where in a sequence.
#[derive(Clone, Debug)]
pub struct KnownKernel {
    pub kernel: Kernel,
    /// Wherever it is launched; where that was not recorded, the sum of its sites.
    pub anywhere: Record,
    pub is_recorded: bool,
    pub sites: Vec<(Site, Record)>,
}

impl Kept {
    pub fn read(store: &Store, gpu: Option<&str>) -> Result<Kept> {
        let mut kept = Kept { folder: store.folder().display().to_string(), ..Kept::default() };
        let mut others = Vec::new();
        for found in store.platforms()? {
            let Some(platform) = found.platform else {
                let path = found.path.display();
                kept.remarks.push(format!("{path} is no profile that this ebb can read, and is passed over"));
                continue;
            };
            if !gpu.is_none_or(|gpu| contains(platform.gpu(), gpu)) {
                others.push(platform.gpu().to_owned());
                continue;
            }
            let reading = store.read(&platform)?;
            kept.remarks.extend(reading.trouble.as_ref().map(ToString::to_string));
            let known = Known::new(platform, found.bytes, &reading.profile, reading.damage);
            if reading.trouble.is_none() {
                kept.platforms.push(known);
            }
        }
        if let (Some(gpu), true, false) = (gpu, kept.platforms.is_empty(), others.is_empty()) {
            others.dedup();
            bail!("there is no profile of a GPU with `{gpu}` in its name, but of {}", others.join(", "));
        }
        kept.demoted = memory::folder().map(|folder| profile::demoted(&folder)).unwrap_or_default();
        Ok(kept)
    }
}

/// Whether a name has these letters in it, large or small.
pub fn contains(name: &str, part: &str) -> bool {
    name.to_lowercase().contains(&part.to_lowercase())
}

impl Known {
    pub fn new(platform: Platform, bytes: u64, profile: &Profile, damage: Damage) -> Known {
        let mut kernels: Vec<KnownKernel> = Vec::new();
        for (key, record) in profile.iter() {
            // Records of one kernel follow each other, that for all places first.
            if kernels.last().is_none_or(|last| last.kernel != key.kernel) {
                kernels.push(KnownKernel::new(key.kernel.clone()));
            }
            let last = kernels.last_mut().expect("there is one, or it was just put there");
            last.add(key.site, record);
        }
        kernels.sort_by_key(|kernel| std::cmp::Reverse((kernel.busy(), kernel.anywhere.launches)));
        Known { platform, bytes, damage, kernels }
    }
}

impl KnownKernel {
    fn new(kernel: Kernel) -> KnownKernel {
        KnownKernel { kernel, anywhere: Record::default(), is_recorded: false, sites: Vec::new() }
    }

    fn add(&mut self, site: Option<Site>, record: &Record) {
        match site {
            None => (self.anywhere, self.is_recorded) = (record.clone(), true),
            Some(site) => {
                if !self.is_recorded {
                    self.anywhere.merge(record);
                }
                self.sites.push((site, record.clone()));
            }
        }
    }

    /// What was recorded, apart from sums.
    pub fn records(&self) -> impl Iterator<Item = (Option<Site>, &Record)> {
        let anywhere = self.is_recorded.then_some((None, &self.anywhere));
        anywhere.into_iter().chain(self.sites.iter().map(|(site, record)| (Some(*site), record)))
    }

    /// About how long it kept the GPU busy, in nanoseconds.
    fn busy(&self) -> u128 {
        let time = self.anywhere.duration.quantile(500).map_or(0, |time| time.0);
        u128::from(time) * u128::from(self.anywhere.launches)
    }
}
