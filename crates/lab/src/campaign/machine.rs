//! Where a campaign is run, for its record.

use std::collections::BTreeMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use results::record::{Build, Device, Host, Machine, SCHEMA};

/// What is known before any worker has said anything.
pub fn machine(ebb: Build, device: Device, command: Vec<String>) -> Machine {
    Machine { schema: SCHEMA, at: now(), ebb, host: host(), device, libraries: BTreeMap::new(), command }
}

fn host() -> Host {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let field = |text: &str, name: &str| -> Option<String> {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default();
    let kib: f64 = memory.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0.0);
    Host {
        cpu: field(&cpus, "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        cores: std::thread::available_parallelism()
            .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        memory_gib: (kib / 1024.0 / 1024.0 * 10.0).round() / 10.0,
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
    }
}

/// RFC 3339 in UTC, to the second.
pub fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    written(since.as_secs())
}

fn written(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The date so many days after 1970-01-01. Years are counted from March, so that the leap day is the last of a year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        assert_eq!(written(0), "1970-01-01T00:00:00Z");
        assert_eq!(written(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(written(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(written(1_795_000_000), "2026-11-18T11:06:40Z");
    }

    #[test]
    fn this_machine_says_something_about_itself() {
        let Host { cpu, cores, memory_gib, kernel } = host();
        assert!(!cpu.is_empty() && cores > 0 && memory_gib > 0.0 && !kernel.is_empty());
    }
}
