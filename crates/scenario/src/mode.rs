//! On what a scenario runs, and in which ways its tenants share it.

use std::fmt;
use std::str::FromStr;

use model::UnknownWord;
use serde::{Deserialize, Serialize};

/// What the tenants run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Device {
    /// A card, behind NVIDIA's driver.
    Gpu,
    /// The software GPU, which replays what was recorded on a card.
    Soft,
}

/// A way to share the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Each tenant by itself: what all others are compared with.
    Alone,
    /// The latency tenants together, without best-effort ones: what they cost each other.
    LatencyOnly,
    /// Separate processes, as the driver shares a GPU between them by default.
    Timeslice,
    /// NVIDIA's multi-process service.
    Mps,
    /// The same, with client and stream priorities for latency tenants.
    MpsPriority,
    /// All tenants in one process, with stream priorities.
    Streams,
    /// ebb's isolated domain.
    EbbIsolated,
    /// ebb's shared domain.
    EbbShared,
    /// XSched at its level 1.
    Xsched,
    /// XSched with its timeslice lever.
    XschedTimeslice,
    /// HAMi-core.
    Hami,
    /// nvshare.
    Nvshare,
}

impl Device {
    pub const ALL: [Device; 2] = [Device::Gpu, Device::Soft];

    pub fn name(self) -> &'static str {
        match self {
            Device::Gpu => "gpu",
            Device::Soft => "soft",
        }
    }
}

impl Mode {
    /// In the order in which tables show them.
    pub const ALL: [Mode; 12] = [
        Mode::Alone,
        Mode::LatencyOnly,
        Mode::Timeslice,
        Mode::Mps,
        Mode::MpsPriority,
        Mode::Streams,
        Mode::EbbIsolated,
        Mode::EbbShared,
        Mode::Xsched,
        Mode::XschedTimeslice,
        Mode::Hami,
        Mode::Nvshare,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mode::Alone => "alone",
            Mode::LatencyOnly => "latency-only",
            Mode::Timeslice => "timeslice",
            Mode::Mps => "mps",
            Mode::MpsPriority => "mps-priority",
            Mode::Streams => "streams",
            Mode::EbbIsolated => "ebb-isolated",
            Mode::EbbShared => "ebb-shared",
            Mode::Xsched => "xsched",
            Mode::XschedTimeslice => "xsched-timeslice",
            Mode::Hami => "hami",
            Mode::Nvshare => "nvshare",
        }
    }

    /// Whether whoever has a device has it.
    pub fn is_at_hand(self) -> bool {
        !self.is_rival()
    }

    /// Whether ebb decides in it, by one of its policies.
    pub fn is_ebb(self) -> bool {
        matches!(self, Mode::EbbIsolated | Mode::EbbShared)
    }

    /// Whether it is somebody else's product, which a user must have built.
    pub fn is_rival(self) -> bool {
        matches!(self, Mode::Xsched | Mode::XschedTimeslice | Mode::Hami | Mode::Nvshare)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Device {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Device, UnknownWord> {
        let found = Device::ALL.into_iter().find(|device| device.name() == word);
        found.ok_or_else(|| UnknownWord { word: word.to_owned(), expected: "gpu, soft" })
    }
}

impl FromStr for Mode {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Mode, UnknownWord> {
        let found = Mode::ALL.into_iter().find(|mode| mode.name() == word);
        found.ok_or_else(|| UnknownWord { word: word.to_owned(), expected: MODES })
    }
}

const MODES: &str = "alone, latency-only, timeslice, mps, mps-priority, streams, ebb-isolated, ebb-shared, xsched, \
                     xsched-timeslice, hami, nvshare";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_are_those_of_the_files() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(serde_json::to_string(&mode).unwrap(), format!("\"{mode}\""));
        }
        for device in Device::ALL {
            assert_eq!(device.to_string().parse(), Ok(device));
        }
    }

    #[test]
    fn an_unknown_mode_is_told_all_known_ones() {
        let error = "fast".parse::<Mode>().unwrap_err().to_string();
        let known = Mode::ALL.map(Mode::name).join(", ");
        assert_eq!(error, format!("`fast` is not one of {known}"));
    }
}
