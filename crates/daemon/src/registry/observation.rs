//! The boards and those who sit at them, for monitoring.

use board::{Gpu, Reading, Why};
use export::{Clients, Health, Memory, Now, Observation, Slowdown, Tenant};
use model::{Class, Nanos};

use super::book::{Owner, Page};
use super::summary::is_silent;
use super::{Registry, Sitting, Ticket, insight};
use crate::report::Stranger;
use crate::uuid;

impl Registry {
    /// Everything that is exported, as it is now.
    pub fn observe(&mut self, now: Nanos) -> Observation {
        let tickets: Vec<_> = self.sittings.keys().copied().collect();
        let readings: Vec<(Ticket, Reading)> =
            tickets.into_iter().filter_map(|ticket| Some((ticket, self.settle(ticket)?))).collect();
        self.book.look(now);
        let there: Vec<(&Sitting, &Reading)> =
            readings.iter().map(|(ticket, reading)| (&self.sittings[ticket], reading)).collect();
        let gpus = self.book.pages().map(|(gpu, page)| self.observed(*gpu, page, &there)).collect();
        let best_effort = |sitting: &Sitting| sitting.granted.class == Class::BestEffort;
        let health = Health {
            mps: self.fate.as_ref().is_some_and(|fate| !fate.is_up()),
            rung: there.iter().any(|(sitting, reading)| {
                best_effort(sitting) && !matches!(reading.condition.why, Why::Ok | Why::Unsaid)
            }),
            silent: there.iter().any(|(_, reading)| is_silent(reading, now)),
        };
        Observation {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            gpus,
            disconnects: self.disconnects,
            health,
            reload: self.reload,
        }
    }

    /// Enters in the book what a seat has counted, and gives what stands there.
    pub(super) fn settle(&mut self, ticket: Ticket) -> Option<Reading> {
        let sitting = self.sittings.get_mut(&ticket)?;
        let reading = self.tables.get(&sitting.board)?.board.read(sitting.place)?;
        let before = sitting.counted.clone();
        sitting.counted.rise(&reading.figures);
        let counted = sitting.counted.since(&before);
        let (gpu, owner) = (sitting.board.gpu, sitting.account.clone());
        self.book.enter(gpu, &owner, &counted);
        Some(reading)
    }

    fn observed(&self, gpu: Gpu, page: &Page, there: &[(&Sitting, &Reading)]) -> export::Gpu {
        let here: Vec<_> = there.iter().filter(|(sitting, _)| sitting.board.gpu == gpu).copied().collect();
        let of_class =
            |class| here.iter().filter(|(sitting, _)| sitting.granted.class == class).count() as u64;
        let tenants = page.accounts.iter().map(|(owner, account)| Tenant {
            name: account.label.clone(),
            class: owner.class,
            user: owner.user,
            now: now_of(owner, &here),
            figures: account.figures.clone(),
        });
        let seen = self.survey.get(&gpu);
        export::Gpu {
            index: seen.and_then(|seen| seen.index),
            uuid: uuid::write(gpu),
            domain: self.domain().to_string(),
            policy: self.configuration.policy_of(gpu).kind.name().to_owned(),
            clients: Clients { latency: of_class(Class::Latency), best_effort: of_class(Class::BestEffort) },
            unmanaged: self.strangers(gpu).map(|strangers| strangers.len() as u64),
            idle: page.idle,
            harvested: page.harvested,
            gathered: page.gathered,
            all: page.all.clone(),
            tenants: tenants.collect(),
        }
    }

    /// Processes on a GPU that are not tenants, as far as that is known.
    pub(super) fn strangers(&self, gpu: Gpu) -> Option<Vec<Stranger>> {
        let found = self.survey.get(&gpu)?.processes.as_ref()?;
        let is_tenant =
            |stranger: &&Stranger| self.sittings.values().any(|sitting| sitting.pid == stranger.pid);
        Some(found.iter().filter(|stranger| !is_tenant(stranger)).cloned().collect())
    }
}

/// What holds for a tenant now, if any of those here is a process of it.
fn now_of(owner: &Owner, here: &[(&Sitting, &Reading)]) -> Option<Now> {
    let own: Vec<_> = here.iter().filter(|(sitting, _)| sitting.account == *owner).collect();
    let terms = own.first()?.0.granted;
    let slowdowns = own.iter().filter_map(|(_, reading)| slowdown(reading, owner.class));
    Some(Now {
        weight: terms.weight,
        priority: terms.priority,
        slo: own.iter().filter_map(|(sitting, _)| sitting.granted.slo).min(),
        slowdown: slowdowns.max_by(|a, b| a.p99.total_cmp(&b.p99)),
        memory: Some(Memory {
            used: own.iter().fold(0, |sum: u64, (_, reading)| sum.saturating_add(reading.memory.0)),
            limit: own.iter().filter_map(|(sitting, _)| sitting.granted.memory).map(|limit| limit.0).min(),
        }),
    })
}

fn slowdown(reading: &Reading, class: Class) -> Option<Slowdown> {
    let requests = insight::requests(reading, class)?;
    let ratio = |permille: Option<u64>| Some(permille? as f64 / 1_000.0);
    Some(Slowdown {
        p50: ratio(requests.slowdown_p50_permille)?,
        p99: ratio(requests.slowdown_p99_permille)?,
    })
}
