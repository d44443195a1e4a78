//! A table of tenants crossed with another: the papers' "all pairs", without a file for each.

use std::collections::HashSet;

use model::Class;
use toml::Spanned;

use super::reader::Reader;
use super::{BestEffortTable, CrossTable, LatencyTable};
use crate::arrival::{Arrival, Pace, load_of};
use crate::scenario::{Scenario, Tenant};

/// More would not end in a day.
const MOST_SCENARIOS: usize = 2000;

impl Reader<'_> {
    /// One scenario for each latency tenant, best-effort tenant and load, named after them.
    pub(super) fn cross(&mut self, frame: Scenario, cross: &Spanned<CrossTable>) -> Option<Vec<Scenario>> {
        let table = cross.get_ref();
        let before = self.mistakes();
        let shared = table.arrival.as_ref().and_then(|arrival| self.arrival(arrival, table.loads.is_some()));
        let latency: Vec<_> =
            table.latency.iter().map(|one| self.crossed_latency(one.get_ref(), table, &shared)).collect();
        let best_effort: Vec<_> =
            table.best_effort.iter().map(|one| self.crossed_best_effort(one.get_ref())).collect();
        let loads = self.loads(table.loads.as_deref());
        if table.latency.is_empty() || table.best_effort.is_empty() {
            let message =
                "a cross has [[cross.latency]] and [[cross.best-effort]] tables, one or more of each";
            self.wrong(cross.span(), message.to_owned());
        }
        let count = table.latency.len().saturating_mul(table.best_effort.len()).saturating_mul(loads.len());
        if count > MOST_SCENARIOS {
            self.wrong(cross.span(), format!("this makes {count} scenarios, more than {MOST_SCENARIOS}"));
        }
        let names = table.latency.iter().map(|one| &one.get_ref().name);
        self.names_differ(names.chain(table.best_effort.iter().map(|one| &one.get_ref().name)));
        if self.mistakes() > before {
            return None;
        }
        let mut scenarios = Vec::new();
        for best_effort in best_effort.iter().flatten() {
            for latency in latency.iter().flatten() {
                scenarios.extend(loads.iter().map(|load| pair(&frame, latency, best_effort, *load)));
            }
        }
        Some(scenarios)
    }

    fn crossed_latency(
        &mut self,
        one: &LatencyTable,
        cross: &CrossTable,
        shared: &Option<Arrival>,
    ) -> Option<Tenant> {
        let name = self.name(&one.name);
        let workload = self.workload(&one.workload);
        self.answers(&one.workload, workload.as_ref());
        let arrival = match (&one.arrival, &cross.arrival) {
            (Some(own), _) => self.arrival(own, cross.loads.is_some()),
            (None, Some(_)) => shared.clone(),
            (None, None) => {
                let message = "it has no arrival, and the cross gives none for all";
                self.wrong(one.name.span(), message.to_owned());
                None
            }
        };
        let slo = self.slo(one.slo.as_ref().or(cross.slo.as_ref()), workload.as_ref()?);
        Some(Tenant {
            name: name?,
            class: Class::Latency,
            workload: workload?,
            arrival: arrival?,
            slo: Some(slo?),
        })
    }

    fn crossed_best_effort(&mut self, one: &BestEffortTable) -> Option<Tenant> {
        let name = self.name(&one.name);
        let workload = self.workload(&one.workload);
        let arrival = Arrival::closed();
        Some(Tenant { name: name?, class: Class::BestEffort, workload: workload?, arrival, slo: None })
    }

    /// Nothing, once, where the arrivals have their own pace.
    fn loads(&mut self, given: Option<&[Spanned<f64>]>) -> Vec<Option<f64>> {
        let Some(given) = given else { return vec![None] };
        let mut loads = Vec::new();
        for load in given {
            match load_of(*load.get_ref()) {
                Ok(fits) if loads.contains(&Some(fits)) => {
                    self.wrong(load.span(), format!("{fits} is there twice"))
                }
                Ok(fits) => loads.push(Some(fits)),
                Err(message) => self.wrong(load.span(), message),
            }
        }
        loads
    }

    fn names_differ<'n>(&mut self, names: impl Iterator<Item = &'n Spanned<String>>) {
        let mut seen = HashSet::new();
        for name in names {
            if !seen.insert(name.get_ref()) {
                let message = format!("two tenants are called {}; names are unique", name.get_ref());
                self.wrong(name.span(), message);
            }
        }
    }
}

/// In the title, `{latency}`, `{best-effort}` and `{load}` stand for what is crossed.
fn pair(frame: &Scenario, latency: &Tenant, best_effort: &Tenant, load: Option<f64>) -> Scenario {
    let mut latency = latency.clone();
    let mut name = format!("{}-beside-{}", latency.name, best_effort.name);
    let mut title =
        frame.title.replace("{latency}", &latency.name).replace("{best-effort}", &best_effort.name);
    if let Some(load) = load {
        latency.arrival = latency.arrival.at(Pace::Load(load));
        name += &format!("-load-{}", load.to_string().replace('.', ""));
        title = title.replace("{load}", &load.to_string());
    }
    Scenario { name, title, tenants: vec![latency, best_effort.clone()], ..frame.clone() }
}
