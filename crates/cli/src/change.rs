//! `ebb set`, `ebb pause` and `ebb resume`: a tenant changed while it runs.

use anyhow::Result;
use daemon::client;
use daemon::request::{Changed, Request};
use model::{Bytes, Nanos};

use crate::arguments::{ChangeOptions, ChangedTerms, Output, TenantName};
use crate::json::Json;
use crate::status;

pub fn set(options: &ChangeOptions) -> Result<()> {
    let ChangedTerms { class, weight, priority, slo_p99, mem } = &options.terms;
    let request = Request::Set {
        target: options.tenant.tenant.clone(),
        class: class.map(|class| class.to_string()),
        weight: *weight,
        priority: *priority,
        slo_p99_ns: slo_p99.map(|Nanos(nanos)| nanos),
        memory_limit_bytes: mem.map(|Bytes(bytes)| bytes),
    };
    change(&request, &options.tenant, "changed")
}

pub fn pause(tenant: &TenantName) -> Result<()> {
    change(&Request::Pause { target: tenant.tenant.clone() }, tenant, "paused")
}

pub fn resume(tenant: &TenantName) -> Result<()> {
    change(&Request::Resume { target: tenant.tenant.clone() }, tenant, "resumed")
}

fn change(request: &Request, tenant: &TenantName, done: &str) -> Result<()> {
    let place = status::place()?;
    let Changed { tenant: number, name, processes } = client::change(&place, request)?;
    match tenant.output {
        Output::Text => {
            let list: Vec<_> = processes.iter().map(u32::to_string).collect();
            println!("{done} tenant {number} ({name}): process {}", list.join(", "));
        }
        Output::Json => {
            let list = Json::list(processes);
            let members = [("tenant", number.into()), ("name", name.into()), ("processes", list)];
            println!("{}", Json::object(members));
        }
    }
    Ok(())
}
