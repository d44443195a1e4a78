//! How long kernels of a latency tenant wait for what others have on the card.
//!
//! What a kernel meets is drawn, and a draw depends on the tenant, the job and the kernel, not on the moment. So the waits of a job
//! are found once, all of them in one go, however often the job is walked through afterwards. Half of the time that a world
//! under MPS takes is spent here, so what does not depend on the job is prepared: which kernels may have to wait at all, for which
//! sorts of others, and what lies where in a best-effort job.

use std::cell::OnceCell;

use crate::draw::{Group, Item, Source, below};
use crate::score::Score;

/// A best-effort tenant's job, as it is met by others: which kernel is under way after so much work.
#[derive(Debug)]
pub(super) struct Strip {
    total: f64,
    /// For each part of `1 << shift` of work, what lies there.
    parts: Vec<Part>,
    shift: u32,
    /// The work done at the end of each kernel.
    ends: Vec<u64>,
    /// Which of `sorts` each kernel is.
    kernels: Vec<u32>,
    /// By share. A job has many kernels, but few that differ.
    sorts: Vec<Met>,
}

/// The kernel with which a part of a strip begins: where it ends, its sort, and that of the one behind it.
#[derive(Clone, Copy, Debug)]
struct Part {
    end: u64,
    sort: u32,
    next: u32,
}

/// In place of the next one's sort: there are more than two in this part.
const MANY: u32 = u32::MAX;

/// What of a kernel matters to whoever meets it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Met {
    share: f64,
    residue: u64,
    /// What has to be waited for, at most.
    span: u64,
}

/// Parts per kernel, so that few have to be looked at in one.
const PARTS: u64 = 2;

impl Strip {
    /// `fifo`: whole kernels are waited for, and not their running blocks.
    pub fn new(score: &Score, fifo: bool) -> Strip {
        let ends = &score.work[1..];
        let (kernels, sorts) = sorted(score, fifo);
        let shift = (score.total() / (score.kernels() as u64 * PARTS)).max(1).ilog2();
        let mut kernel = 0;
        let parts = (0..=score.total() >> shift).map(|part| {
            while kernel + 1 < ends.len() && ends[kernel] <= part << shift {
                kernel += 1;
            }
            let last = (kernel + 1).min(ends.len() - 1);
            let many = ends[last] < (part + 1) << shift && last + 1 < ends.len();
            Part { end: ends[kernel], sort: kernels[kernel], next: if many { MANY } else { kernels[last] } }
        });
        let parts = parts.collect();
        Strip { total: score.total() as f64, parts, shift, ends: ends.to_vec(), kernels, sorts }
    }

    /// Of which sort the kernel is that is under way at a place from 0 to below 1.
    fn at(&self, place: f64) -> u32 {
        let at = (place * self.total) as i64 as u64;
        let part = &self.parts[(at >> self.shift) as usize];
        let sort = if at < part.end { part.sort } else { part.next };
        if sort == MANY { self.search(at) } else { sort }
    }

    #[cold]
    fn search(&self, at: u64) -> u32 {
        let kernel = self.ends.partition_point(|&end| end <= at);
        self.kernels[kernel.min(self.kernels.len() - 1)]
    }

    /// The first sort that leaves no room for a kernel of this share.
    fn least(&self, share: f64) -> u32 {
        self.sorts.partition_point(|met| met.share + share <= 1.0) as u32
    }
}

/// Which of the sorts each kernel is, and these.
fn sorted(score: &Score, fifo: bool) -> (Vec<u32>, Vec<Met>) {
    let met = score.grids.iter().map(|grid| Met {
        share: grid.share,
        residue: grid.longest_residue(),
        span: if fifo { grid.duration } else { grid.block },
    });
    let key = |met: &Met| (met.share.to_bits(), met.residue, met.span);
    let met: Vec<Met> = met.collect();
    let mut sorts = met.clone();
    // Shares are not negative, and the bits of such numbers are in their order.
    sorts.sort_unstable_by_key(key);
    sorts.dedup();
    let which = |met: &Met| sorts.partition_point(|sort| key(sort) < key(met)) as u32;
    (met.iter().map(which).collect(), sorts)
}

/// The waits of one job.
#[derive(Clone, Debug, Default)]
pub(super) struct Waits {
    /// Of which job, and among whom, as [`super::Beside`] counts.
    of: Option<(u64, u64)>,
    /// From this kernel on.
    from: usize,
    spans: Vec<u64>,
    /// Among whom `exposed` and `least` were found.
    company: Vec<usize>,
    exposed: Vec<Exposed>,
    /// For each of those, and each of the company, the first of its sorts that is in the way.
    least: Vec<u32>,
}

/// A kernel that something may be in the way of.
#[derive(Clone, Copy, Debug)]
struct Exposed {
    kernel: u32,
    /// What is drawn for it: by whom it finds the card taken, with what, and how long it waits for that.
    draws: [Item; 3],
}

/// Whom a job is among.
pub(super) struct Among<'f> {
    /// Of every tenant that is on the card, by seat.
    pub strips: &'f [OnceCell<Strip>],
    /// The best-effort tenants on the card; at least one.
    pub on: &'f [usize],
    /// What they may start at most.
    pub longest: u64,
    /// How often this has changed.
    pub epoch: u64,
    /// How much of what it meets a kernel waits for, on average.
    pub mean: f64,
}

/// So many kernels at a time.
const CHUNK: usize = 64;

impl<'f> Among<'f> {
    fn strip(&self, other: usize) -> &'f Strip {
        self.strips[other].get().expect("whoever is on the card has a strip")
    }
}

impl Waits {
    /// Finds the waits of this job from this kernel on, if they are not known.
    pub fn find(&mut self, source: Source, score: &Score, job: u64, from: usize, among: &Among) {
        let of = Some((job, among.epoch));
        if self.of == of && self.from <= from {
            return;
        }
        (self.of, self.from) = (of, from);
        if self.company != among.on {
            self.expose(score, among);
        }
        self.spans.clear();
        self.spans.resize(score.kernels() - from, 0);
        // Evenly between what makes this mean and all of it.
        let least = (2.0 * among.mean - 1.0).max(0.0);
        let group = source.group(1 + job);
        let first = self.exposed.partition_point(|exposed| (exposed.kernel as usize) < from);
        let others = self.company.len();
        let chunks =
            self.exposed[first..].chunks(CHUNK).zip(self.least[first * others..].chunks(CHUNK * others));
        let mut found = [(0, 0, 0); CHUNK];
        for (exposed, least_sorts) in chunks {
            let count = meet(exposed, least_sorts, group, among, &mut found);
            for &(place, which, sort) in &found[..count] {
                let met = &among.strip(which).sorts[sort as usize];
                if met.residue <= among.longest {
                    let drawn = least + (1.0 - least) * group.unit(exposed[place].draws[2]);
                    let kernel = exposed[place].kernel as usize;
                    self.spans[kernel - from] = (met.span as f64 * drawn) as u64;
                }
            }
        }
    }

    /// Which kernels may have to wait at all among these.
    fn expose(&mut self, score: &Score, among: &Among) {
        self.company.clear();
        self.company.extend_from_slice(among.on);
        self.exposed.clear();
        self.least.clear();
        for (kernel, grid) in score.grids.iter().enumerate() {
            let strips = among.on.iter().map(|&other| among.strip(other));
            if strips.clone().any(|strip| (strip.least(grid.share) as usize) < strip.sorts.len()) {
                let draws = [0, 1, 2].map(|number| Item::new(kernel as u64 * 4 + number));
                self.exposed.push(Exposed { kernel: kernel as u32, draws });
                self.least.extend(strips.map(|strip| strip.least(grid.share)));
            }
        }
    }

    /// Those from this kernel on.
    pub fn from(&self, kernel: usize) -> &[u64] {
        &self.spans[kernel - self.from..]
    }
}

/// Which kernels meet something that is in their way: some kernel of the others', the more likely the longer it takes. How many do;
/// of each its place, whom it meets, and with what sort of kernel.
///
/// No processor foresees what is drawn, so nothing here is decided by a jump.
fn meet(
    exposed: &[Exposed],
    least: &[u32],
    group: Group,
    among: &Among,
    found: &mut [(usize, usize, u32); CHUNK],
) -> usize {
    let mut count = 0;
    if let &[one] = among.on {
        let strip = among.strip(one);
        for (place, (exposed, &least)) in exposed.iter().zip(least).enumerate() {
            let sort = strip.at(group.unit(exposed.draws[1]));
            found[count] = (place, one, sort);
            count += usize::from(sort >= least);
        }
        return count;
    }
    let others = among.on.len();
    for (place, (exposed, least)) in exposed.iter().zip(least.chunks(others)).enumerate() {
        let which = below(group.unit(exposed.draws[0]), others);
        let sort = among.strip(among.on[which]).at(group.unit(exposed.draws[1]));
        found[count] = (place, among.on[which], sort);
        count += usize::from(sort >= least[which]);
    }
    count
}

#[cfg(test)]
mod tests;
