//! Changing a tenant that runs.
//!
//! A tenant is called by its name, by its number or by the number of one of its processes. Where that fits several, or
//! none, nothing is changed and the answer says which there are.

use std::collections::BTreeMap;

use super::{Registry, Sitting, TenantKey, Ticket};
use crate::request::{Changed, GrantedTerms, Wish};

impl Registry {
    pub fn change(&mut self, target: &str, wish: Wish) -> Result<Changed, String> {
        let key = self.find(target)?;
        let tickets: Vec<Ticket> = self.of_tenant(key).map(|(ticket, _)| *ticket).collect();
        let mut processes: Vec<u32> = self.of_tenant(key).map(|(_, sitting)| sitting.pid).collect();
        processes.sort_unstable();
        processes.dedup();
        let name = self.of_tenant(key).next().map_or_else(String::new, |(_, sitting)| sitting.name.clone());
        let before = self.terms_of(key);
        let tenant = self.tenants.get_mut(&key).expect("who was found is there");
        let old = tenant.wish;
        tenant.wish = Wish {
            class: wish.class.or(old.class),
            weight: wish.weight.or(old.weight),
            priority: wish.priority.or(old.priority),
            slo: wish.slo.or(old.slo),
            memory: wish.memory.or(old.memory),
            paused: wish.paused.or(old.paused),
        };
        let number = tenant.number;
        self.changed = true;
        tickets.into_iter().for_each(|ticket| self.apply(ticket));
        let after = self.terms_of(key);
        Ok(Changed { tenant: format!("{number:016x}"), name, processes, before, after })
    }

    /// What its first process has; all of them have the same, unless they asked for different terms.
    fn terms_of(&self, key: TenantKey) -> Option<GrantedTerms> {
        self.of_tenant(key).next().map(|(_, sitting)| GrantedTerms::from(&sitting.granted))
    }

    fn of_tenant(&self, key: TenantKey) -> impl Iterator<Item = (&Ticket, &Sitting)> {
        self.sittings.iter().filter(move |(_, sitting)| sitting.tenant == key)
    }

    fn find(&self, target: &str) -> Result<TenantKey, String> {
        let fits = |sitting: &Sitting| {
            sitting.name == target
                || sitting.pid.to_string() == target
                || format!("{:016x}", self.tenants[&sitting.tenant].number) == target
        };
        let mut found: BTreeMap<TenantKey, &Sitting> = BTreeMap::new();
        for sitting in self.sittings.values().filter(|sitting| fits(sitting)) {
            found.entry(sitting.tenant).or_insert(sitting);
        }
        let called = |(key, sitting): (&TenantKey, &&Sitting)| {
            format!("{:016x} ({}, pid {})", self.tenants[key].number, sitting.name, sitting.pid)
        };
        let mut keys = found.keys();
        match (keys.next(), keys.next()) {
            (Some(key), None) => Ok(*key),
            (None, _) => Err(format!("there is no tenant {target}; `ebb ps` lists those there are")),
            _ => {
                let list: Vec<_> = found.iter().map(called).collect();
                Err(format!("{target} may be any of {}; name one by its number", list.join(", ")))
            }
        }
    }
}
