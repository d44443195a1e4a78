//! Verdicts for people.

use std::fmt::Write as _;

use guard::{Finding, Obstacle, Reason, Verdict};
use model::{Domain, Nanos};
use telemetry::KernelReading;

use super::account::{Kind, Sum, finding, permille, sorted, sums, verdict};
use super::found::{Found, Seat};
use crate::run::report::{cut, readable};

const NAME: usize = 60;

pub fn process(found: &Found) -> String {
    let reading = &found.reading;
    let ended = if found.is_alive { "" } else { " (ended)" };
    let mut page = format!("process {}{ended}  {}\n", reading.pid, cut(&reading.program, NAME));
    page.extend(found.seat.as_ref().map(meaning));
    if reading.kernels.is_empty() {
        page.push_str("  no kernels yet\n");
        return page;
    }
    page.push_str(&list(&reading.kernels));
    page.push('\n');
    page.push_str(&totals(&reading.kernels));
    page
}

/// What verdicts mean where a process sits. In the isolated domain nothing is stopped between blocks, whatever is said of it.
fn meaning(seat: &Seat) -> String {
    let Seat { domain, reason, .. } = seat;
    let verdicts = match domain.parse() {
        Ok(Domain::Shared) => "",
        _ => "; verdicts matter in the shared domain only",
    };
    format!("  in the {domain} domain it {}{verdicts}\n", reason.trim_start_matches("it "))
}

fn list(kernels: &[KernelReading]) -> String {
    let whole = Sum::of(kernels).gpu_ns;
    let mut page = String::new();
    let mut line = |cells: [&str; 7]| {
        let [share, launches, guarded, cut, stops, verdict, kernel] = cells;
        writeln!(page, "{share:>10}{launches:>10}{guarded:>10}{cut:>8}{stops:>11}  {verdict:30}{kernel}")
            .expect("a string takes everything");
    };
    line(["GPU time", "launches", "guarded", "cut", "stops in", "verdict", "kernel"]);
    for kernel in sorted(kernels) {
        line([
            &share(kernel.gpu_ns(), whole),
            &kernel.total().to_string(),
            &kernel.guarded.to_string(),
            &kernel.cut.to_string(),
            &certificate(kernel),
            &word(kernel),
            &cut(&readable(&kernel.name), NAME),
        ]);
    }
    page
}

fn word(kernel: &KernelReading) -> String {
    let words = Kind::of(kernel).words();
    match (verdict(kernel), finding(kernel)) {
        (Some(Verdict::Refuse(reason)), _) => format!("refuse: {}", reason.name()),
        (_, Some(Finding::Equal { .. })) => format!("{words}, verified"),
        (_, Some(Finding::Unknown(_))) => format!("{words}, not verified"),
        (_, Some(Finding::Differs) | None) => words.to_owned(),
    }
}

/// The promise; of a kernel that is held as a whole there is none.
fn certificate(kernel: &KernelReading) -> String {
    match (Kind::of(kernel), kernel.certificate_ns) {
        (Kind::Refuse | Kind::Unknown, _) | (_, 0) => "–".to_owned(),
        (_, time) => Nanos(time).to_string(),
    }
}

fn share(part: Option<u64>, whole: u64) -> String {
    match part.and_then(|part| permille(part, whole)) {
        Some(share) => format!("{}.{} %", share / 10, share % 10),
        None => "–".to_owned(),
    }
}

/// What the kernels of each kind come to, and why some are refused.
pub fn totals(kernels: &[KernelReading]) -> String {
    let whole = Sum::of(kernels);
    let mut page = format!("  {:16}{:>16}{:>20}{:>10}\n", "verdict", "kernels", "launches", "GPU time");
    for (kind, sum) in sums(kernels) {
        let counted = |part: u64, whole: u64| format!("{part} {:>7}", share(Some(part), whole));
        writeln!(
            page,
            "  {:16}{:>16}{:>20}{:>10}",
            kind.words(),
            counted(sum.kernels, whole.kernels),
            counted(sum.launches, whole.launches),
            share(Some(sum.gpu_ns), whole.gpu_ns),
        )
        .expect("a string takes everything");
    }
    for &reason in Reason::ALL {
        page.push_str(&refusals(kernels, reason));
    }
    page.push_str(&trials(kernels));
    page
}

/// In words, what stands in the way of some kernels.
fn refusals(kernels: &[KernelReading], reason: Reason) -> String {
    let refused = kernels.iter().filter(|kernel| verdict(kernel) == Some(Verdict::Refuse(reason)));
    match Sum::of(refused).kernels {
        0 => String::new(),
        count => format!("  {} refused: {}\n", some(count), reason.sentence()),
    }
}

fn some(kernels: u64) -> String {
    format!("{kernels} {}", if kernels == 1 { "kernel" } else { "kernels" })
}

/// In words, what came of holding kernels against their originals. Those that differ are among the refused.
fn trials(kernels: &[KernelReading]) -> String {
    let mut page = String::new();
    let cuts = kernels.iter().filter_map(|kernel| match finding(kernel) {
        Some(Finding::Equal { cuts }) => Some(u64::from(cuts)),
        _ => None,
    });
    let (verified, cuts) = cuts.fold((0, 0), |(verified, sum), cuts| (verified + 1, sum + cuts));
    if verified > 0 {
        writeln!(page, "  {} verified, cut {cuts} times", some(verified)).expect("a string takes everything");
    }
    for obstacle in Obstacle::ALL {
        let met = |kernel: &&KernelReading| finding(kernel) == Some(Finding::Unknown(obstacle));
        let count = Sum::of(kernels.iter().filter(met)).kernels;
        if count > 0 {
            writeln!(page, "  {} not verified: {}", some(count), obstacle.sentence())
                .expect("a string takes everything");
        }
    }
    page
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use guard::Rule;

    fn kernel(name: &str, verdict: Option<Verdict>, launches: u64) -> KernelReading {
        let (name, verdict) = (name.to_owned(), verdict.map(Verdict::number));
        KernelReading { name, launches, verdict, ..KernelReading::default() }
    }

    /// One of each kind.
    pub fn kernels() -> Vec<KernelReading> {
        let gemm = KernelReading {
            guarded: 900,
            cut: 12,
            samples: 3,
            sampled_ns: 300_000,
            block_ns: 50_000,
            certificate_ns: 95_000,
            ..kernel("gemm", Some(Verdict::Guard(Rule::Plain)), 1000)
        };
        let scan = KernelReading {
            guarded: 50,
            samples: 1,
            sampled_ns: 10_000,
            certificate_ns: 24_500,
            ..kernel("scan", Some(Verdict::Guard(Rule::Ordered)), 50)
        };
        let barrier = KernelReading {
            samples: 2,
            sampled_ns: 8_000,
            certificate_ns: 26_000,
            ..kernel("barrier", Some(Verdict::Refuse(Reason::Cooperative)), 10)
        };
        vec![kernel("memory", None, 7), scan, gemm, barrier]
    }

    #[test]
    fn kernels_are_listed_with_what_becomes_of_them() {
        let expected = [
            "  GPU time  launches   guarded     cut   stops in  verdict                       kernel",
            "    99.5 %      1000       900      12      95 µs  guard                         gemm",
            "     0.5 %        50        50       0    24.5 µs  ordered guard                 scan",
            "     0.0 %        10         0       0          –  refuse: cooperative           barrier",
            "         –         7         0       0          –  not looked at                 memory",
        ];
        assert_eq!(list(&kernels()).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn verdicts_say_what_they_mean_in_the_domain() {
        let seat = |domain: &str, reason: &str| Seat {
            domain: domain.to_owned(),
            rung: String::new(),
            reason: reason.to_owned(),
        };
        assert_eq!(
            meaning(&seat("isolated", "is stopped in the middle of a kernel")),
            "  in the isolated domain it is stopped in the middle of a kernel; verdicts matter in the shared domain only\n"
        );
        assert_eq!(
            meaning(&seat("shared", "is stopped between the blocks of a kernel")),
            "  in the shared domain it is stopped between the blocks of a kernel\n"
        );
        assert!(meaning(&seat("shared", "it has not said how")).contains(" it has not said how"));
    }

    #[test]
    fn trials_are_told_kernel_by_kernel_and_in_all() {
        let tried = |kernel: KernelReading, finding: Finding| KernelReading {
            finding: Some(finding.number()),
            ..kernel
        };
        let [_, scan, gemm, _] = kernels().try_into().expect("four kernels");
        let kernels = [
            tried(gemm.clone(), Finding::Equal { cuts: 5 }),
            tried(gemm, Finding::Equal { cuts: 2 }),
            tried(scan, Finding::Unknown(Obstacle::TooLarge)),
            tried(kernel("wrong", Some(Verdict::Refuse(Reason::Differs)), 1), Finding::Differs),
        ];
        let words: Vec<_> = kernels.iter().map(word).collect();
        assert_eq!(
            words,
            ["guard, verified", "guard, verified", "ordered guard, not verified", "refuse: differs"]
        );
        let lines =
            ["  2 kernels verified, cut 7 times", "  1 kernel not verified: it reaches too much memory"];
        assert!(trials(&kernels).lines().eq(lines), "{}", trials(&kernels));
    }

    #[test]
    fn totals_say_what_share_can_be_stopped_and_why_the_rest_cannot() {
        let expected = [
            "  verdict                  kernels            launches  GPU time",
            "  guard                  1  25.0 %        1000  93.7 %    99.5 %",
            "  ordered guard          1  25.0 %          50   4.7 %     0.5 %",
            "  refuse                 1  25.0 %          10   0.9 %     0.0 %",
            "  not looked at          1  25.0 %           7   0.7 %     0.0 %",
            "  1 kernel refused: cooperative: all its blocks must be on the GPU at once",
        ];
        assert_eq!(totals(&kernels()).lines().collect::<Vec<_>>(), expected);
    }
}
