//! Profiles: which kernels a request or an iteration of a workload consists of, as they were seen on a card.
//!
//! A profile is data that is committed (`profiles/`), and what a tenant on the software GPU replays and a simulator computes with: how many kernels,
//! when the host hands each of them over, how many blocks it has, how many of them fit on an SM, how long a block takes.
//! It comes from a file, so every number in it is an allegation until it is checked, and its size is bounded.
//!
//! * `text`: a profile as it is written, one kernel to a line
//! * `name`: workloads by their names
//! * the table of those that are built in, made by `build.rs` from the folder

mod name;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

pub use name::{named, workload};

use crate::Error;

include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

const SCHEMA: u32 = 1;
/// Larger than the largest model's profile by far, and small enough to be read by mistake.
const MOST_BYTES: u64 = 16 << 20;
const MOST_PARTS: usize = 8;
const MOST_TIMES: u32 = 4096;
const MOST_KERNELS: usize = 50_000;
const MOST_BLOCKS: u32 = i32::MAX as u32;
const MOST_SMS: u32 = 1024;
const MOST_PER_SM: u32 = 32;
const MOST_THREADS: u32 = 1024;
/// A minute.
const LONGEST_US: f64 = 60e6;

/// What was recorded of a workload.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub schema: u32,
    /// `Workload::id` of what was recorded.
    pub workload: String,
    /// Where, when and how.
    #[serde(default)]
    pub recorded: BTreeMap<String, String>,
    /// SMs of the card it was recorded on.
    pub sms: u32,
    /// What a request does, one after another, with a synchronisation after each.
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub name: String,
    /// How often it is repeated: once, or for every token but the first.
    pub times: u32,
    /// How long the host takes for it, from its begin.
    pub host_us: f64,
    pub kernels: Vec<Kernel>,
}

/// One kernel; in files the five numbers in this order.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Kernel {
    /// When the host handed it over, from the part's begin.
    pub at_us: f64,
    pub blocks: u32,
    pub threads: u32,
    /// How many of its blocks fit on one SM.
    pub per_sm: u32,
    /// The kernel's time over its waves.
    pub block_us: f64,
}

impl Profile {
    /// Reads a profile and checks every number of it; `origin` is what errors call it.
    pub fn parse(text: &str, origin: &str) -> Result<Profile, Error> {
        let wrong = |reason: String| Error::Profile { origin: origin.to_owned(), reason };
        let profile: Profile = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        profile.check().map_err(wrong)?;
        Ok(profile)
    }

    /// The file of this workload in a folder, if it is there.
    pub fn in_folder(folder: &Path, workload: &str) -> Result<Option<Profile>, Error> {
        let path = folder.join(format!("{workload}.json"));
        let origin = path.display().to_string();
        let wrong = |reason: String| Error::Profile { origin: origin.clone(), reason };
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(wrong(error.to_string())),
            Ok(facts) if !facts.is_file() => return Err(wrong("this is no file".to_owned())),
            Ok(facts) if facts.len() > MOST_BYTES => {
                return Err(wrong(format!("{} bytes are more than a profile has", facts.len())));
            }
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(&path).map_err(|error| wrong(error.to_string()))?;
        let profile = Profile::parse(&text, &origin)?;
        if profile.workload != workload {
            return Err(wrong(format!("this is a profile of {}", profile.workload)));
        }
        Ok(Some(profile))
    }

    /// The one that came with this program.
    pub fn built_in(workload: &str) -> Result<Profile, Error> {
        match BUILT_IN.iter().find(|(name, _)| *name == workload) {
            Some((name, text)) => Profile::parse(text, name),
            None => Err(Error::NoProfile { workload: workload.to_owned() }),
        }
    }

    /// The names of those that came with this program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    fn check(&self) -> Result<(), String> {
        if self.schema != SCHEMA {
            return Err(format!("its schema is {}, and {SCHEMA} is understood", self.schema));
        }
        within("sms", self.sms, MOST_SMS)?;
        if self.parts.is_empty() || self.parts.len() > MOST_PARTS {
            return Err(format!("it has {} parts, not 1 to {MOST_PARTS}", self.parts.len()));
        }
        self.parts.iter().try_for_each(|part| {
            part.check().map_err(|reason| format!("in the part `{}`, {reason}", part.name.escape_debug()))
        })
    }
}

impl Part {
    fn check(&self) -> Result<(), String> {
        within("times", self.times, MOST_TIMES)?;
        lasts("host_us", self.host_us)?;
        if self.kernels.is_empty() || self.kernels.len() > MOST_KERNELS {
            return Err(format!("there are {} kernels, not 1 to {MOST_KERNELS}", self.kernels.len()));
        }
        let mut last = 0.0;
        for (number, kernel) in self.kernels.iter().enumerate() {
            kernel.check().map_err(|reason| format!("kernel {number}: {reason}"))?;
            if kernel.at_us < last {
                return Err(format!("kernel {number}: it is handed over before the one ahead of it"));
            }
            last = kernel.at_us;
        }
        Ok(())
    }
}

impl Kernel {
    fn check(&self) -> Result<(), String> {
        lasts("at_us", self.at_us)?;
        lasts("block_us", self.block_us)?;
        within("blocks", self.blocks, MOST_BLOCKS)?;
        within("threads", self.threads, MOST_THREADS)?;
        within("per_sm", self.per_sm, MOST_PER_SM)
    }

    /// How many times its blocks fill a card of so many SMs.
    pub fn waves(&self, sms: u32) -> u32 {
        self.blocks.div_ceil(self.per_sm.saturating_mul(sms).max(1))
    }
}

fn within(name: &str, value: u32, most: u32) -> Result<(), String> {
    if (1..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} is {value}, not between 1 and {most}"))
    }
}

/// Infinities and what is no number are in no range.
fn lasts(name: &str, us: f64) -> Result<(), String> {
    if (0.0..=LONGEST_US).contains(&us) {
        Ok(())
    } else {
        Err(format!("{name} is {us}, not between 0 and {LONGEST_US}"))
    }
}

#[cfg(test)]
mod tests;
