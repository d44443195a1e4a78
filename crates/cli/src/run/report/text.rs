//! The report for people: what is zero is left out, and what must be known comes last, where the eye rests.

use std::fmt::Write as _;

use telemetry::{
    AllocationKind, CopyKind, Counter, KernelReading, LaunchKind, ModuleKind, Reading, StreamKind,
};

use super::Report;
use crate::run::supervise::End;
use crate::verdicts::text as verdicts;
use export::readable;

/// Where the second column begins.
const LABEL: usize = 20;
const NUMBER: usize = 12;
/// How much of a long list is shown; JSON has all of it.
const TOP_KERNELS: usize = 10;
const PROCESSES: usize = 20;
const NAME: usize = 60;

pub fn write(report: &Report) -> String {
    let mut page = Page::default();
    page.title(report);
    if !report.readings.is_empty() {
        page.processes(&report.readings);
        page.launches(report);
        page.memory(report);
        page.kernels(&report.kernels());
        page.verdicts(&report.kernels());
    }
    page.gap();
    for sentence in report.sentences() {
        page.line(&sentence);
    }
    page.text
}

#[derive(Default)]
struct Page {
    text: String,
    /// A new part begins with the next line, if there is one.
    gap: bool,
}

impl Page {
    fn line(&mut self, text: &str) {
        if std::mem::take(&mut self.gap) {
            self.text.push('\n');
        }
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    fn gap(&mut self) {
        self.gap = true;
    }

    /// A row with its label, unless it has nothing to say.
    fn row(&mut self, label: &str, text: &str) {
        if !text.is_empty() {
            self.line(&format!("  {label:LABEL$}{text}"));
        }
    }

    fn title(&mut self, report: &Report) {
        let command = cut(&report.command.join(" "), NAME);
        let end = match report.end {
            End::Exited(status) => format!("ended with status {status}"),
            End::Killed(signal) => format!("was ended by signal {signal}"),
        };
        self.line(&format!("ebb: `{command}` {end} after {:.3} s", report.lasted.as_secs_f64()));
    }

    fn processes(&mut self, readings: &[Reading]) {
        self.row("processes attached", &readings.len().to_string());
        for reading in readings.iter().take(PROCESSES) {
            let driver = match reading.driver_version {
                0 => "CUDA –".to_owned(),
                version => format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
            };
            let program = cut(&reading.program, NAME);
            self.line(&format!("  {:>LABEL$}  {driver:11}{program}", reading.pid));
        }
        if readings.len() > PROCESSES {
            self.row("", &format!("  and {} more", readings.len() - PROCESSES));
        }
        let mut drivers: Vec<&str> = readings.iter().map(|reading| reading.driver.as_str()).collect();
        drivers.retain(|driver| !driver.is_empty());
        drivers.sort_unstable();
        drivers.dedup();
        self.row("driver", &drivers.join(", "));
    }

    /// A table of kinds and streams, then the kernels that they come to.
    fn launches(&mut self, report: &Report) {
        self.gap();
        let cell = |kind, stream| report.total(Counter::launches(kind, stream));
        let row = |kind| StreamKind::ALL.map(|stream| cell(kind, stream));
        let used: Vec<_> = LaunchKind::ALL.into_iter().filter(|&kind| row(kind) != [0; 3]).collect();
        if !used.is_empty() {
            let streams = StreamKind::ALL.map(stream_name);
            self.columns("launches by stream", streams.iter().chain(&["total"]));
        }
        for kind in used {
            let numbers = row(kind);
            let total = numbers.iter().copied().fold(0, u64::saturating_add);
            let cells = numbers.iter().chain([&total]).map(u64::to_string);
            self.columns(launch_name(kind), cells);
        }
        let kernels = report.readings.iter().map(Reading::kernels_run).fold(0, u64::saturating_add);
        let in_graphs = report.total(Counter::KernelsInGraphs);
        let within = if in_graphs > 0 { format!(", {in_graphs} of them in graphs") } else { String::new() };
        self.row("kernels run", &format!("{kernels}{within}"));
        self.row("refused", &some(report.total(Counter::LaunchesRefused), "launches"));
    }

    fn columns(&mut self, label: &str, cells: impl Iterator<Item = impl std::fmt::Display>) {
        let mut row = String::new();
        for cell in cells {
            let _ = write!(row, "{cell:>NUMBER$}");
        }
        self.row(label, &row);
    }

    fn memory(&mut self, report: &Report) {
        self.gap();
        let total = |counter| report.total(counter);
        let modules = MODULES.map(|(kind, name)| some(total(Counter::modules(kind)), name));
        self.row("modules", &list(&modules));
        let sized = |(count, bytes), name: &str| match total(count) {
            0 => String::new(),
            times => format!("{name} {times} ({})", size(total(bytes))),
        };
        let allocated = ALLOCATIONS.map(|(kind, name)| sized(Counter::allocations(kind), name));
        self.row("allocations", &list(&allocated));
        let denied = some(total(Counter::AllocationsDenied), "by the limit of memory");
        let refused = some(total(Counter::AllocationsRefused), "allocations");
        self.row("refused", &list(&[refused, denied]));
        let copied = COPIES.map(|(kind, name)| sized(Counter::copies(kind), name));
        self.row("copies", &list(&copied));
        self.row("fills", sized((Counter::Fills, Counter::Filled), "").trim_start());
        let synchronised = SYNCHRONISATIONS.map(|(counter, name)| some(total(counter), name));
        self.row("synchronisations", &list(&synchronised));
    }

    fn kernels(&mut self, kernels: &[KernelReading]) {
        let graphs = kernels.iter().any(|kernel| kernel.in_graphs > 0);
        if kernels.is_empty() {
            return;
        }
        self.gap();
        let heads = if graphs { "    launches   in graphs" } else { "    launches" };
        self.line(&format!("{heads}  kernel"));
        for kernel in kernels.iter().take(TOP_KERNELS) {
            let mut row = format!("{:>NUMBER$}", kernel.launches);
            if graphs {
                let _ = write!(row, "{:>NUMBER$}", kernel.in_graphs);
            }
            self.line(&format!("{row}  {}", cut(&readable(&kernel.name), NAME)));
        }
        if kernels.len() > TOP_KERNELS {
            self.line(&format!("  and {} more", kernels.len() - TOP_KERNELS));
        }
    }

    /// Where kernels have been judged: what share of them can be stopped between their blocks.
    fn verdicts(&mut self, kernels: &[KernelReading]) {
        if kernels.iter().any(|kernel| kernel.verdict.is_some()) {
            self.gap();
            verdicts::totals(kernels).lines().for_each(|line| self.line(line));
        }
    }
}

const MODULES: [(ModuleKind, &str); 4] = [
    (ModuleKind::Ptx, "PTX"),
    (ModuleKind::Cubin, "cubin"),
    (ModuleKind::Fatbin, "fatbin"),
    (ModuleKind::Other, "other"),
];

const ALLOCATIONS: [(AllocationKind, &str); 5] = [
    (AllocationKind::Device, "device"),
    (AllocationKind::StreamOrdered, "stream-ordered"),
    (AllocationKind::Virtual, "virtual"),
    (AllocationKind::Managed, "managed"),
    (AllocationKind::Host, "host"),
];

const COPIES: [(CopyKind, &str); 4] = [
    (CopyKind::HostToDevice, "to device"),
    (CopyKind::DeviceToHost, "to host"),
    (CopyKind::DeviceToDevice, "on device"),
    (CopyKind::Other, "other"),
];

const SYNCHRONISATIONS: [(Counter, &str); 3] = [
    (Counter::ContextSynchronisations, "context"),
    (Counter::StreamSynchronisations, "stream"),
    (Counter::EventSynchronisations, "event"),
];

fn launch_name(kind: LaunchKind) -> &'static str {
    match kind {
        LaunchKind::Plain => "  plain",
        LaunchKind::Extended => "  with attributes",
        LaunchKind::Cooperative => "  cooperative",
        LaunchKind::Graph => "  graphs",
        LaunchKind::HostFunction => "  host functions",
    }
}

fn stream_name(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::Default => "default",
        StreamKind::PerThread => "per thread",
        StreamKind::Created => "created",
    }
}

fn some(count: u64, name: &str) -> String {
    if count == 0 { String::new() } else { format!("{name} {count}") }
}

fn list(parts: &[String]) -> String {
    let parts: Vec<_> = parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect();
    parts.join(", ")
}

fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.into_iter().find(|(one, _)| bytes >= *one) {
        Some((one, unit)) => format!("{:.1} {unit}", bytes as f64 / one as f64),
        None => format!("{bytes} bytes"),
    }
}

/// One line of at most so many characters.
pub fn cut(text: &str, length: usize) -> String {
    let text = model::text::on_one_line(text);
    let mut line = text.chars();
    let mut kept: String = line.by_ref().take(length).collect();
    if line.next().is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_in_the_largest_whole_unit() {
        for (bytes, said) in [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (3 << 29, "1.5 GiB")] {
            assert_eq!(size(bytes), said);
        }
        assert_eq!(size(u64::MAX), "16777216.0 TiB");
    }

    #[test]
    fn long_names_are_cut_where_letters_end() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(cut("a\nb", 3), "a b");
    }
}
