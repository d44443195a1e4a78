//! What latency tenants tell ebb: an SLO that is a multiple of their own p99 alone.
//!
//! Workers live longer than a scenario, and the same one has another p99 alone at another load; so it is not told when a
//! worker starts, but before each run, as a user would with `ebb set`. The p99 is that of all runs alone which are there
//! when the run is made; the order of a campaign has each block's runs alone before its others, where this is wanted.

use std::collections::BTreeSet;

use model::Nanos;
use results::{Archive, FILE, Quantiles, request};
use scenario::{Mode, Tenant};

use super::plan::{Entry, Planned, alone_id};
use super::post::Post;
use super::{Campaign, Order, ground};
use crate::Error;

/// Whether everything can be told that is wanted: somebody's p99 alone must be there or be measured in this campaign.
pub fn check(order: &Order) -> Result<(), Error> {
    let wants = |entry: &&Entry| {
        entry.chosen
            && entry.modes.iter().any(|way| way.slo.is_some())
            && entry.modes.iter().all(|way| way.mode != Mode::Alone)
    };
    let wanting: Vec<&Entry> = order.entries.iter().filter(wants).collect();
    if wanting.is_empty() {
        return Ok(());
    }
    let has_any = std::fs::metadata(order.out.join(FILE)).is_ok_and(|file| file.len() > 0);
    let archive = if has_any { Archive::read(&[&order.out])? } else { Archive::default() };
    let done: BTreeSet<&str> = archive.done_ids();
    for entry in wanting {
        for tenant in entry.scenario.tenants.iter().filter(|tenant| tenant.is_latency()) {
            if !runs_alone(entry, tenant).any(|id| done.contains(id.as_str())) {
                let (scenario, tenant) = (entry.full_name(), tenant.name.clone());
                return Err(Error::NeverAlone { scenario, tenant });
            }
        }
    }
    Ok(())
}

fn runs_alone(entry: &Entry, tenant: &Tenant) -> impl Iterator<Item = String> {
    (0..entry.scenario.repetitions).map(move |repetition| alone_id(entry, tenant, repetition))
}

impl Campaign<'_> {
    /// Tells the SLOs of a run's latency tenants, and says which they are, in microseconds, by the tenants' numbers.
    pub(super) fn promise(
        &self,
        run: &Planned,
        posts: &[(Post, Vec<usize>)],
    ) -> Result<Vec<(usize, u64)>, Error> {
        let Some(factor) = run.way.slo else { return Ok(Vec::new()) };
        let tenants = &self.order.entries[run.entry].scenario.tenants;
        let mut told = Vec::new();
        for (post, numbers) in posts {
            for (seat, &number) in
                numbers.iter().enumerate().filter(|(_, number)| tenants[**number].is_latency())
            {
                // Without an end it has no p99, and a multiple of that promises nothing.
                let slo = self.p99_alone(run, &tenants[number])?.map(|p99| factor.times(p99));
                let name = post.tenant_name(seat);
                self.grounds.promise(ground(run), &name, slo).map_err(|reason| Error::Run {
                    tenant: Some(tenants[number].name.clone()),
                    reason: format!("its SLO could not be told: {reason}"),
                })?;
                told.extend(slo.map(|slo| (number, slo.0 / 1000)));
            }
        }
        Ok(told)
    }

    /// Over all its runs alone that are there; `None` in overload.
    fn p99_alone(&self, run: &Planned, tenant: &Tenant) -> Result<Option<Nanos>, Error> {
        let entry = &self.order.entries[run.entry];
        let runs = runs_alone(entry, tenant).filter_map(|id| self.book.alone(&id));
        let requests = runs.flat_map(|run| run.tenants.iter().flat_map(|part| request::offered(run, part)));
        let quantiles = Quantiles::of(requests.map(|request| request.latency()));
        let nobody = || Error::Run {
            tenant: Some(tenant.name.clone()),
            reason: "has no p99 alone, which its SLO is a multiple of".to_owned(),
        };
        Ok(quantiles.ok_or_else(nobody)?.p99)
    }
}
