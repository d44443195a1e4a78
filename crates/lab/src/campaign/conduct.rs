//! One run: everybody back to the first state, one moment at which all begin, and what each tells in the end.

use std::time::{Duration, Instant};

use model::{Class, Nanos};
use results::record::{Run, TenantRun};
use rustix::time::{ClockId, clock_gettime};
use scenario::Mode;

use super::estimate::{LEAD, drain};
use super::plan::Planned;
use super::post::Post;
use super::{Campaign, ground, machine};
use crate::Error;
use crate::crew::{Order, Ran, Reply};

/// More work than this nobody queues.
const MOST_QUEUED: Duration = Duration::from_secs(300);
/// From how many times the time of a GPU on, more patience is needed than with a GPU.
const SLOW: f64 = 10.0;

/// What a tenant is offered, and until when it works.
struct Offer {
    due_us: Option<Vec<u64>>,
    until_us: u64,
}

impl Campaign<'_> {
    /// Makes a run whose workers live.
    pub(super) fn conduct(&mut self, run: &Planned) -> Result<Run, Error> {
        let began = Instant::now();
        let at = machine::now();
        let posts = self.posts(run);
        self.grounds
            .govern(ground(run), run.way.policy)
            .map_err(|reason| Error::Run { tenant: None, reason: format!("its policy: {reason}") })?;
        let promised = self.promise(run, &posts)?;
        self.prepare_all(run, &posts)?;
        let offers: Vec<Vec<Offer>> = posts
            .iter()
            .map(|(_, tenants)| tenants.iter().map(|&tenant| self.offer(run, tenant)).collect())
            .collect();
        let ran = self.run_all(run, &posts, &offers)?;
        let status = self.grounds.status(ground(run));
        let mut tenants = Vec::new();
        for (((post, numbers), offers), replies) in posts.iter().zip(offers).zip(ran) {
            for (((seat, number), offer), ran) in post.seats.iter().zip(numbers).zip(offers).zip(replies) {
                let gpu_us = self.gpu_us.get(&(seat.workload.clone(), post.slowdown)).copied();
                let mut told = self.told(run, *number, gpu_us.unwrap_or(0.0), offer, ran)?;
                told.slo_us = promised.iter().find(|(promised, _)| promised == number).map(|(_, slo)| *slo);
                tenants.push(told);
            }
        }
        let scenario = &self.order.entries[run.entry].scenario;
        Ok(Run {
            id: run.id.clone(),
            suite: self.order.entries[run.entry].suite.clone(),
            scenario: scenario.name.clone(),
            mode: run.way.to_string(),
            repetition: run.repetition,
            order: run.order,
            at,
            seed: scenario.seed,
            warmup_us: scenario.warmup.0 / 1000,
            until_us: scenario.until().0 / 1000,
            wall_s: (began.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            tenants,
            ebb: status,
            serves: run.serves.clone(),
            machine: 0,
        })
    }

    fn prepare_all(&mut self, run: &Planned, posts: &[(Post, Vec<usize>)]) -> Result<(), Error> {
        let orders: Vec<_> = posts
            .iter()
            .map(|(post, tenants)| {
                let each = (0..tenants.len()).map(|tenant| Order::Prepare { tenant });
                (post.clone(), each.collect::<Vec<_>>())
            })
            .collect();
        let replies = self.roster.ask(&orders, self.order.patience.grace * 6)?;
        self.judge(run, replies.failed)
    }

    /// The same requests at the same times in every mode: they depend on the seed, the tenant's name and the repetition.
    fn offer(&self, run: &Planned, number: usize) -> Offer {
        let scenario = &self.order.entries[run.entry].scenario;
        let tenant = &scenario.tenants[number];
        let seed = scenario.arrival_seed(tenant, run.repetition);
        let due = tenant.arrival.due(seed, self.rate(run.entry, number), scenario.until());
        let micros = |due: Vec<Nanos>| due.into_iter().map(|due| due.0 / 1000).collect();
        let until = Duration::from(scenario.until());
        let more = match (tenant.class, run.way.mode) {
            (Class::Latency, _) => Duration::ZERO,
            // Beside others it may do an iteration more than alone by the luck of its edges, and each is checked against
            // that of the same number alone. What is done after the counted time is not counted.
            (Class::BestEffort, Mode::Alone) => until / 20 + Duration::from_millis(200),
            // Requests that arrived in time and are answered late must not have the GPU to themselves.
            (Class::BestEffort, _) => drain(until),
        };
        let until_us = (until + more).as_micros() as u64;
        Offer { due_us: due.map(micros), until_us }
    }

    /// What each tenant of each worker did, in the order of the posts.
    fn run_all(
        &mut self,
        run: &Planned,
        posts: &[(Post, Vec<usize>)],
        offers: &[Vec<Offer>],
    ) -> Result<Vec<Vec<Ran>>, Error> {
        let drained = drain(Duration::from(self.order.entries[run.entry].scenario.until()));
        let begin_ns = monotonic_ns() + LEAD.as_nanos() as u64;
        let orders: Vec<_> = posts
            .iter()
            .zip(offers)
            .map(|((post, _), offers)| {
                let each = offers.iter().enumerate().map(|(tenant, offer)| Order::Run {
                    tenant,
                    begin_ns,
                    due_us: offer.due_us.as_deref(),
                    until_us: offer.until_us,
                    drain_us: drained.as_micros() as u64,
                });
                (post.clone(), each.collect::<Vec<_>>())
            })
            .collect();
        let until = offers.iter().flatten().map(|offer| offer.until_us).max().unwrap_or(0);
        let until = Duration::from_micros(until);
        let patience = LEAD + until + drained + self.after_the_end(posts);
        let replies = self.roster.ask(&orders, patience)?;
        self.judge(run, replies.failed)?;
        let heard = replies.heard.into_iter().map(|(_, replies)| {
            let ran = replies.into_iter().filter_map(|reply| match reply {
                Reply::Ran(ran) => Some(ran),
                _ => None,
            });
            ran.collect::<Vec<_>>()
        });
        let heard: Vec<Vec<Ran>> = heard.collect();
        let complete = heard.len() == posts.len()
            && heard.iter().zip(posts).all(|(ran, (_, tenants))| ran.len() == tenants.len());
        if complete {
            return Ok(heard);
        }
        let reason = "a worker answered something else than what it did".to_owned();
        Err(Error::Run { tenant: None, reason })
    }

    /// How long workers may take after the last of their work was handed over. A best-effort tenant has an iteration under
    /// way and another queued, and may be the last of all tenants to be given the GPU; and on a slow device hosts are
    /// slow, too.
    fn after_the_end(&self, posts: &[(Post, Vec<usize>)]) -> Duration {
        let queued: f64 = posts
            .iter()
            .flat_map(|(post, _)| post.seats.iter().map(|seat| (seat.workload.clone(), post.slowdown)))
            .map(|workload| 2.0 * self.gpu_us.get(&workload).copied().unwrap_or(0.0))
            .sum();
        let slowdown = posts.iter().map(|(post, _)| post.slowdown).max().unwrap_or(1000) as f64 / 1000.0;
        // Microseconds that a worker measured, which may be anything.
        let queued = Duration::from_secs_f64((queued * 1e-6).clamp(0.0, MOST_QUEUED.as_secs_f64()));
        self.order.patience.grace.mul_f64((slowdown / SLOW).max(1.0)) + queued
    }

    /// A run of which a worker was lost has failed; what that worker's death may have harmed is laid afresh.
    fn judge(&mut self, run: &Planned, failed: Vec<(Post, Error)>) -> Result<(), Error> {
        let Some((post, error)) = failed.into_iter().next() else { return Ok(()) };
        let reason = match error {
            Error::Worker { reason, .. } => reason,
            other => other.to_string(),
        };
        let index = self.runs.iter().position(|other| other.id == run.id).unwrap_or(0);
        let fault = self.fault(index, &post, reason);
        self.mend(ground(run));
        Err(fault)
    }

    /// What a tenant told, if it can be true.
    fn told(
        &self,
        run: &Planned,
        number: usize,
        gpu_us: f64,
        offer: Offer,
        ran: Ran,
    ) -> Result<TenantRun, Error> {
        let tenant = &self.order.entries[run.entry].scenario.tenants[number];
        let told = TenantRun {
            name: tenant.name.clone(),
            class: tenant.class,
            workload: tenant.workload.id(),
            gpu_us,
            due_us: offer.due_us,
            start_us: ran.start_us,
            end_us: ran.end_us,
            wrong: ran.wrong.into_iter().map(|number| number as usize).collect(),
            checks: ran.checks.unwrap_or_default(),
            first_us: ran.first_us.unwrap_or_default(),
            tokens: ran.tokens.unwrap_or_default().into_iter().map(|count| count as u32).collect(),
            slo_us: None,
        };
        match contradiction(&told) {
            None => Ok(told),
            Some(reason) => Err(Error::Run { tenant: Some(told.name), reason }),
        }
    }
}

/// Why what a tenant told cannot be true.
fn contradiction(told: &TenantRun) -> Option<String> {
    let done = told.end_us.len();
    if told.start_us.len() != done {
        return Some(format!("told of {} begins and {done} ends", told.start_us.len()));
    }
    for (number, (start, end)) in told.start_us.iter().zip(&told.end_us).enumerate() {
        if end < start {
            return Some(format!("told that number {number} ended before it began"));
        }
    }
    let due = told.due_us.as_ref()?;
    if done > due.len() {
        return Some(format!("told of {done} answers to {} requests", due.len()));
    }
    let early = due.iter().zip(&told.start_us).position(|(due, start)| start < due);
    early.map(|number| format!("told that request {number} began before it arrived"))
}

/// The clock that all processes of the machine share.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_true_is_not_believed() {
        let told = |due: Option<&[u64]>, start: &[u64], end: &[u64]| {
            let due_us = due.map(<[u64]>::to_vec);
            contradiction(&TenantRun {
                due_us,
                start_us: start.to_vec(),
                end_us: end.to_vec(),
                ..TenantRun::default()
            })
        };
        assert_eq!(told(Some(&[1, 5, 9]), &[1, 6], &[3, 8]), None, "one stayed unserved");
        assert_eq!(told(None, &[1, 2], &[3, 4]), None);
        assert!(told(Some(&[1, 5]), &[1, 4], &[3, 8]).unwrap().contains("before it arrived"));
        assert!(told(Some(&[1]), &[1, 4], &[3, 8]).unwrap().contains("2 answers to 1"));
        assert!(told(None, &[5], &[3]).unwrap().contains("before it began"));
        assert!(told(None, &[5], &[]).is_some());
    }
}
