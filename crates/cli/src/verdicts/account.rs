//! Kernels and their verdicts, added up.

use guard::{Finding, Rule, Verdict};
use telemetry::KernelReading;

/// The verdict in a ledger; `None` where nobody has looked at the kernel, or a newer ebb has.
pub fn verdict(kernel: &KernelReading) -> Option<Verdict> {
    kernel.verdict.and_then(Verdict::from_number)
}

/// What trials have shown of a kernel's twin; `None` where there were none.
pub fn finding(kernel: &KernelReading) -> Option<Finding> {
    kernel.finding.and_then(Finding::from_number)
}

/// Kernels of which the same may be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Guard,
    Ordered,
    Refuse,
    Unknown,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Guard, Kind::Ordered, Kind::Refuse, Kind::Unknown];

    pub fn of(kernel: &KernelReading) -> Kind {
        match verdict(kernel) {
            Some(Verdict::Guard(Rule::Plain)) => Kind::Guard,
            Some(Verdict::Guard(Rule::Ordered)) => Kind::Ordered,
            Some(Verdict::Refuse(_)) => Kind::Refuse,
            None => Kind::Unknown,
        }
    }

    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Guard => "guard",
            Kind::Ordered => "ordered",
            Kind::Refuse => "refuse",
            Kind::Unknown => "unknown",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Guard => "guard",
            Kind::Ordered => "ordered guard",
            Kind::Refuse => "refuse",
            Kind::Unknown => "not looked at",
        }
    }
}

/// So many kernels, and what they come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub kernels: u64,
    /// Runs in graphs count too.
    pub launches: u64,
    pub guarded: u64,
    pub cut: u64,
    /// As far as it is known.
    pub gpu_ns: u64,
}

impl Sum {
    fn add(&mut self, kernel: &KernelReading) {
        self.kernels += 1;
        self.launches = self.launches.saturating_add(kernel.total());
        self.guarded = self.guarded.saturating_add(kernel.guarded);
        self.cut = self.cut.saturating_add(kernel.cut);
        self.gpu_ns = self.gpu_ns.saturating_add(kernel.gpu_ns().unwrap_or(0));
    }

    pub fn of<'a>(kernels: impl IntoIterator<Item = &'a KernelReading>) -> Sum {
        let mut sum = Sum::default();
        kernels.into_iter().for_each(|kernel| sum.add(kernel));
        sum
    }
}

/// What the kernels of each kind come to; kinds that there are none of are left out.
pub fn sums(kernels: &[KernelReading]) -> Vec<(Kind, Sum)> {
    let sum = |kind| (kind, Sum::of(kernels.iter().filter(|kernel| Kind::of(kernel) == kind)));
    Kind::ALL.into_iter().map(sum).filter(|(_, sum)| sum.kernels > 0).collect()
}

/// A part of a whole in thousandths; `None` of nothing.
pub fn permille(part: u64, whole: u64) -> Option<u64> {
    let share = (u128::from(part) * 1000 + u128::from(whole) / 2).checked_div(u128::from(whole))?;
    Some(u64::try_from(share).unwrap_or(u64::MAX))
}

/// Those that keep the GPU busy longest first; of the rest, the most launched.
pub fn sorted(kernels: &[KernelReading]) -> Vec<&KernelReading> {
    let mut sorted: Vec<_> = kernels.iter().collect();
    sorted.sort_by_key(|kernel| std::cmp::Reverse((kernel.gpu_ns(), kernel.total())));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdicts::text::tests::kernels;

    #[test]
    fn kernels_of_one_kind_are_added_up() {
        let sums = sums(&kernels());
        let kinds: Vec<_> = sums.iter().map(|(kind, _)| kind.name()).collect();
        assert_eq!(kinds, ["guard", "ordered", "refuse", "unknown"]);
        let total = sums.iter().map(|(_, sum)| sum.launches).sum::<u64>();
        assert_eq!(total, kernels().iter().map(KernelReading::total).sum::<u64>());
    }

    #[test]
    fn the_busiest_come_first() {
        let kernels = kernels();
        let names: Vec<_> = sorted(&kernels).iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["gemm", "scan", "barrier", "memory"]);
    }

    #[test]
    fn shares_are_rounded_and_nothing_has_none() {
        assert_eq!(permille(1, 3), Some(333));
        assert_eq!(permille(u64::MAX, u64::MAX), Some(1000));
        assert_eq!(permille(0, 0), None);
    }
}
