//! The text.
//!
//! Two formats that differ in little: OpenMetrics 1.0, and the text format of Prometheus that was there before it, for readers
//! that ask for neither. The values come from shared memory and not from counters of a library, so they are written here; the
//! format is small.

use std::fmt::{Display, Write as _};

use board::Snapshot;
use model::Nanos;

use crate::catalogue::{FAMILIES, Family, Kind};
use crate::{Gpu, Observation, Tenant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// The one that a reader understands who accepts this (a header of HTTP).
    pub fn for_reader(accepts: &str) -> Format {
        // Readers that prefer the older one and know both are as well served.
        if accepts.contains("application/openmetrics-text") {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Everything that is exported, written down.
pub fn text(observation: &Observation, format: Format) -> String {
    let subjects = Subjects::of(observation);
    let mut out = String::with_capacity(4096 * (1 + subjects.tenants.len()));
    for family in FAMILIES {
        head(family, format, &mut out);
        family.write(&subjects, &mut Samples { name: family.name, out: &mut out });
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn head(family: &Family, format: Format, out: &mut String) {
    let (name, kind) = match (format, family.kind) {
        (Format::OpenMetrics, kind) => (family.stem(), kind.name()),
        (Format::Prometheus, Kind::Info) => (family.name, Kind::Gauge.name()),
        (Format::Prometheus, kind) => (family.name, kind.name()),
    };
    say(out, format_args!("# TYPE {name} {kind}\n"));
    if let Some(unit) = family.unit().filter(|_| format == Format::OpenMetrics) {
        say(out, format_args!("# UNIT {name} {unit}\n"));
    }
    say(out, format_args!("# HELP {name} {}\n", family.help));
}

/// What series are about, each with its labels as they are written: they stand in many lines.
pub(crate) struct Subjects<'a> {
    pub observation: &'a Observation,
    pub gpus: Vec<(&'a Gpu, String)>,
    pub tenants: Vec<(&'a Tenant, String)>,
}

impl<'a> Subjects<'a> {
    fn of(observation: &'a Observation) -> Subjects<'a> {
        let gpus: Vec<_> = observation.gpus.iter().map(|gpu| (gpu, labels_of(gpu))).collect();
        let of_gpu = |(gpu, labels): &(&'a Gpu, String)| {
            let labels = labels.clone();
            gpu.tenants.iter().map(move |tenant| {
                let mut labels = labels.clone();
                label(&mut labels, "tenant", &tenant.name);
                label(&mut labels, "class", tenant.class);
                (tenant, labels)
            })
        };
        let tenants = gpus.iter().flat_map(of_gpu).collect();
        Subjects { observation, gpus, tenants }
    }
}

fn labels_of(gpu: &Gpu) -> String {
    let mut labels = String::new();
    // One that nobody counts has no number; an empty label is as good as none.
    label(&mut labels, "gpu", gpu.index.map(|index| index.to_string()).unwrap_or_default());
    label(&mut labels, "gpu_uuid", &gpu.uuid);
    labels
}

/// Appends a label to those that are there.
pub(crate) fn label(labels: &mut String, name: &str, value: impl Display) {
    let comma = if labels.is_empty() { "" } else { "," };
    say(labels, format_args!("{comma}{name}=\""));
    for character in value.to_string().chars() {
        match character {
            '\\' => labels.push_str("\\\\"),
            '"' => labels.push_str("\\\""),
            '\n' => labels.push_str("\\n"),
            other => labels.push(other),
        }
    }
    labels.push('"');
}

/// The lines of one family.
pub(crate) struct Samples<'a> {
    name: &'static str,
    out: &'a mut String,
}

impl Samples<'_> {
    pub fn value(&mut self, labels: &str, value: impl Display) {
        self.line("", labels, value);
    }

    /// With one label more.
    pub fn with(&mut self, labels: &str, name: &str, label_value: &str, value: impl Display) {
        let mut labels = labels.to_owned();
        label(&mut labels, name, label_value);
        self.line("", &labels, value);
    }

    pub fn histogram(&mut self, labels: &str, times: &Snapshot, bounds: &[(Nanos, &str)]) {
        let mut buckets = times.buckets().peekable();
        let mut below = 0u64;
        let mut with_bound = labels.to_owned();
        for (bound, written) in bounds {
            while let Some((_, count)) = buckets.next_if(|(end, _)| end <= bound) {
                below = below.saturating_add(count);
            }
            with_bound.truncate(labels.len());
            label(&mut with_bound, "le", written);
            self.line("_bucket", &with_bound, below);
        }
        with_bound.truncate(labels.len());
        label(&mut with_bound, "le", "+Inf");
        self.line("_bucket", &with_bound, times.count());
        self.line("_count", labels, times.count());
        self.line("_sum", labels, Seconds(times.sum()));
    }

    fn line(&mut self, suffix: &str, labels: &str, value: impl Display) {
        self.out.push_str(self.name);
        self.out.push_str(suffix);
        if !labels.is_empty() {
            say(self.out, format_args!("{{{labels}}}"));
        }
        say(self.out, format_args!(" {value}\n"));
    }
}

/// A time in seconds, with as many digits as it has.
pub(crate) struct Seconds(pub Nanos);

impl Display for Seconds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const SECOND: u64 = 1_000_000_000;
        let (whole, mut part, mut digits) = (self.0.0 / SECOND, self.0.0 % SECOND, 9);
        if part == 0 {
            return write!(formatter, "{whole}");
        }
        while part % 10 == 0 {
            part /= 10;
            digits -= 1;
        }
        write!(formatter, "{whole}.{part:0digits$}")
    }
}

fn say(out: &mut String, words: std::fmt::Arguments<'_>) {
    out.write_fmt(words).expect("there is always room in a string");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_the_digits_they_need() {
        let seconds = |nanos| Seconds(Nanos(nanos)).to_string();
        assert_eq!(seconds(0), "0");
        assert_eq!(seconds(3_000_000_000), "3");
        assert_eq!(seconds(1_500_000_000), "1.5");
        assert_eq!(seconds(1), "0.000000001");
        assert_eq!(seconds(u64::MAX), "18446744073.709551615");
    }

    #[test]
    fn what_would_end_a_label_is_escaped() {
        let mut labels = String::new();
        label(&mut labels, "a", "x\"y\\z\n");
        label(&mut labels, "b", 1);
        assert_eq!(labels, "a=\"x\\\"y\\\\z\\n\",b=\"1\"");
    }

    #[test]
    fn readers_say_which_format_they_want() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
        assert_eq!(Format::for_reader(prometheus), Format::OpenMetrics);
        assert_eq!(Format::for_reader("*/*"), Format::Prometheus);
        assert_eq!(Format::for_reader(""), Format::Prometheus);
    }
}
