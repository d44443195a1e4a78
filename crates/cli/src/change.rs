//! `ebb set`, `ebb pause` and `ebb resume`: a tenant changed while it runs.

use anyhow::Result;
use daemon::client;
use daemon::request::{Changed, GrantedTerms, Request};
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
    change(&request, &options.tenant)
}

pub fn pause(tenant: &TenantName) -> Result<()> {
    change(&Request::Pause { target: tenant.tenant.clone() }, tenant)
}

pub fn resume(tenant: &TenantName) -> Result<()> {
    change(&Request::Resume { target: tenant.tenant.clone() }, tenant)
}

fn change(request: &Request, tenant: &TenantName) -> Result<()> {
    let place = status::place()?;
    let changed = client::change(&place, request)?;
    match tenant.output {
        Output::Text => print!("{}", text(request, &changed)),
        Output::Json => println!("{}", json(changed)),
    }
    Ok(())
}

/// What came of it; of a change that changed nothing, that.
fn text(request: &Request, changed: &Changed) -> String {
    let Changed { tenant, name, processes, before, after } = changed;
    let was_paused = before.as_ref().map(|terms| terms.paused);
    let list: Vec<_> = processes.iter().map(u32::to_string).collect();
    let who = format!("tenant {tenant} ({name})");
    let done = match (request, was_paused) {
        (Request::Pause { .. }, Some(true)) => format!("{who} was paused already"),
        (Request::Pause { .. }, _) => format!("paused {who}"),
        (Request::Resume { .. }, Some(false)) => format!("{who} is not paused"),
        (Request::Resume { .. }, _) => format!("resumed {who}"),
        _ if before.is_some() && before == after => format!("{who} stays as it was"),
        _ => format!("changed {who}"),
    };
    let mut text = format!("{done}: process {}\n", list.join(", "));
    if let (Request::Set { .. }, Some(before), Some(after)) = (request, before, after) {
        text.extend(terms(request, before, after));
    }
    text
}

/// The old and new values of what was asked for, a line each, and of what changed with it.
fn terms(request: &Request, before: &GrantedTerms, after: &GrantedTerms) -> Vec<String> {
    let Request::Set { class, weight, priority, slo_p99_ns, memory_limit_bytes, .. } = request else {
        return Vec::new();
    };
    let time = |nanos: Option<u64>| nanos.map_or("none".to_owned(), |nanos| Nanos(nanos).to_string());
    let size = |bytes: Option<u64>| bytes.map_or("none".to_owned(), |bytes| Bytes(bytes).to_string());
    let both = |value: fn(&GrantedTerms) -> String| (value(before), value(after));
    let rows = [
        ("class", class.is_some(), both(|terms| terms.class.clone())),
        ("weight", weight.is_some(), both(|terms| terms.weight.to_string())),
        ("priority", priority.is_some(), both(|terms| terms.priority.to_string())),
        ("SLO p99", slo_p99_ns.is_some(), (time(before.slo_p99_ns), time(after.slo_p99_ns))),
        (
            "memory",
            memory_limit_bytes.is_some(),
            (size(before.memory_limit_bytes), size(after.memory_limit_bytes)),
        ),
    ];
    let shown = rows.into_iter().filter(|(_, asked, (old, new))| *asked || old != new);
    shown
        .map(|(name, _, (old, new))| match old == new {
            true => format!("  {name:8}  {old}, as before\n"),
            false => format!("  {name:8}  {old} -> {new}\n"),
        })
        .collect()
}

fn json(changed: Changed) -> Json {
    let Changed { tenant, name, processes, before, after } = changed;
    let terms = |terms: Option<GrantedTerms>| {
        terms.map_or(Json::from(None::<u64>), |terms| {
            Json::object([
                ("class", terms.class.into()),
                ("weight", terms.weight.into()),
                ("priority", terms.priority.into()),
                ("slo_p99_ns", terms.slo_p99_ns.into()),
                ("memory_limit_bytes", terms.memory_limit_bytes.into()),
                ("paused", terms.paused.into()),
            ])
        })
    };
    Json::object([
        ("tenant", tenant.into()),
        ("name", name.into()),
        ("processes", Json::list(processes)),
        ("before", terms(before)),
        ("after", terms(after)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(weight: u32, paused: bool) -> Option<GrantedTerms> {
        let class = "best-effort".to_owned();
        Some(GrantedTerms { class, weight, priority: 0, slo_p99_ns: None, memory_limit_bytes: None, paused })
    }

    fn changed(before: Option<GrantedTerms>, after: Option<GrantedTerms>) -> Changed {
        let (tenant, name) = ("00000000000000ab".to_owned(), "train.py".to_owned());
        Changed { tenant, name, processes: vec![7, 8], before, after }
    }

    #[test]
    fn a_change_is_told_with_old_and_new_values() {
        let target = "train.py".to_owned();
        let set = |weight, slo_p99_ns| Request::Set {
            target: target.clone(),
            class: None,
            weight,
            priority: None,
            slo_p99_ns,
            memory_limit_bytes: None,
        };
        let said = text(&set(Some(3), Some(0)), &changed(granted(1, false), granted(3, false)));
        let head = "changed tenant 00000000000000ab (train.py): process 7, 8\n";
        assert_eq!(said, format!("{head}  weight    1 -> 3\n  SLO p99   none, as before\n"));
        let said = text(&set(Some(3), None), &changed(granted(3, false), granted(3, false)));
        assert!(said.contains("(train.py) stays as it was: ") && said.contains("3, as before"), "{said}");
        assert_eq!(text(&set(Some(3), None), &changed(None, None)), head, "an older daemon does not say");
    }

    #[test]
    fn what_is_not_paused_is_not_said_to_be_resumed() {
        let target = || "train.py".to_owned();
        let (pause, resume) = (Request::Pause { target: target() }, Request::Resume { target: target() });
        let said =
            |request: &Request, before, after| text(request, &changed(granted(1, before), granted(1, after)));
        assert!(said(&pause, false, true).starts_with("paused tenant "));
        assert!(said(&pause, true, true).contains("(train.py) was paused already: process 7"));
        assert!(said(&resume, true, false).starts_with("resumed tenant "));
        assert!(said(&resume, false, false).contains("(train.py) is not paused: process 7"));
    }
}
