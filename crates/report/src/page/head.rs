//! What was measured, on which machine, by which commands; and what is missing, with its reason.

use maud::{Markup, html};
use results::record::{Absent, Failure, Machine};

use crate::numbers::{count, grouped, many};
use crate::palette;
use crate::view::View;

pub fn title(view: &View) -> String {
    match view.archive.machines.first() {
        Some(machine) if machine.device.kind == "soft" => "Sharing one software GPU, measured".into(),
        Some(machine) => format!("Sharing one {}, measured", machine.device.name),
        None => "Sharing a GPU: nothing measured".into(),
    }
}

/// The sentence under the title.
pub fn lead(view: &View) -> Markup {
    let archive = view.archive;
    let scenarios = view.scenarios().count();
    let requests: usize = archive
        .runs
        .iter()
        .flat_map(|run| &run.tenants)
        .filter_map(|tenant| tenant.due_us.as_ref().map(Vec::len))
        .sum();
    let days = days(view);
    html! {
        p.lead {
            (many(archive.runs.len(), "run")) " of " (many(scenarios, "scenario"))
            " in " (many(view.suites.len(), "suite")) ", " (many(requests, "request"))
            @if let Some((first, last)) = days {
                ", " time datetime=(first) { (first) }
                @if first != last { " to " time datetime=(last) { (last) } }
            }
            "."
            @if something_is_missing(view) { " " a href="#missing" { "Not everything that was wanted is here." } }
        }
        @if let Some(machine) = archive.machines.last() { p.note { (in_short(machine)) } }
    }
}

/// The machine in one line; the rest of it is at the end of the page.
fn in_short(machine: &Machine) -> Markup {
    html! {
        (device(machine)) ", driver " (machine.device.driver)
        @for (name, version) in &machine.libraries { ", " (name) " " (version) }
        ", ebb " (machine.ebb.version)
        @if let Some(commit) = &machine.ebb.commit {
            " (" code { (commit.chars().take(12).collect::<String>()) } ")"
        }
        @if machine.ebb.dirty { ", " span.bad { "with changes that are not committed" } }
        ". " a href="#setup" { "Machine and commands" } "."
    }
}

fn days<'a>(view: &View<'a>) -> Option<(&'a str, &'a str)> {
    // Machine records carry the begin of each invocation; runs their own, where it lasted over midnight.
    let day = |at: &'a str| at.split('T').next().unwrap_or(at);
    let archive = view.archive;
    let all = || {
        archive
            .machines
            .iter()
            .map(|one| one.at.as_str())
            .chain(archive.runs.iter().map(|one| one.at.as_str()))
    };
    Some((all().map(day).min()?, all().map(day).max()?))
}

pub fn something_is_missing(view: &View) -> bool {
    let archive = view.archive;
    !(archive.failures.is_empty()
        && archive.absent.is_empty()
        && view.figures.remarks.is_empty()
        && view.left_undone().is_empty())
}

/// The machine, the versions, the commands.
pub fn setup(view: &View) -> Markup {
    html! {
        section id="setup" {
            h2 { "Machine and commands" }
            @for (machine, times) in machines(view) {
                dl.facts {
                    dt { "device" } dd { (device(machine)) }
                    dt { "driver" } dd { (machine.device.driver) }
                    dt { "host" } dd {
                        (machine.host.cpu) ", " (machine.host.cores) " cores, "
                        (grouped(machine.host.memory_gib, 0)) " GiB, Linux " (machine.host.kernel)
                    }
                    dt { "ebb" } dd {
                        (machine.ebb.version)
                        @if let Some(commit) = &machine.ebb.commit { ", commit " code { (commit) } }
                        @if machine.ebb.dirty { ", " span.bad { "with changes that are not committed" } }
                    }
                    @if !machine.libraries.is_empty() {
                        dt { "libraries" } dd {
                            @for (index, (name, version)) in machine.libraries.iter().enumerate() {
                                @if index > 0 { ", " } (name) " " (version)
                            }
                        }
                    }
                    dt { (if times.len() == 1 { "begun" } else { "begun, each" }) } dd { (times.join(", ")) }
                }
            }
            h3 { "Commands" }
            @for machine in &view.archive.machines { pre { code { (command(&machine.command)) } } }
        }
    }
}

fn device(machine: &Machine) -> Markup {
    let device = &machine.device;
    html! {
        (device.name) ", " (device.sms) " SMs, " (grouped(device.memory_gib, 0)) " GiB"
        @if device.kind == "soft" { ", the software GPU" }
        @if (device.slowdown - 1.0).abs() > 1e-9 { ", time stretched by " (grouped(device.slowdown, 0)) }
    }
}

/// Invocations that differ in nothing but their time and command are told once.
fn machines<'a>(view: &View<'a>) -> Vec<(&'a Machine, Vec<&'a str>)> {
    let mut told: Vec<(&Machine, Vec<&str>)> = Vec::new();
    for machine in &view.archive.machines {
        let same = told.iter_mut().find(|(other, _)| {
            (&other.device, &other.host, &other.ebb, &other.libraries)
                == (&machine.device, &machine.host, &machine.ebb, &machine.libraries)
        });
        match same {
            Some((_, times)) => times.push(&machine.at),
            None => told.push((machine, vec![&machine.at])),
        }
    }
    told
}

/// As a shell would take it.
fn command(words: &[String]) -> String {
    let plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./=:,@+%".contains(letter))
    };
    let quoted =
        |word: &String| if plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Modes, runs and lines that are not there, with why; nothing if nothing is missing.
pub fn missing(view: &View) -> Markup {
    let archive = view.archive;
    if !something_is_missing(view) {
        return html! {};
    }
    let undone = view.left_undone();
    html! {
        section.missing id="missing" {
            h3 { "What is missing" }
            @if !archive.absent.is_empty() {
                h4 { "Modes that could not be had" }
                (list(archive.absent.iter().map(absence).collect()))
            }
            @if !archive.failures.is_empty() {
                h4 { (many(archive.failures.len(), "failed run")) }
                (list(archive.failures.iter().map(failed).collect()))
            }
            @if !undone.is_empty() {
                h4 { "Runs that were not made" }
                (list(undone.iter().map(|runs| html! { (runs) }).collect()))
            }
            @if !view.figures.remarks.is_empty() {
                h4 { (many(view.figures.remarks.len(), "remark")) " on the results" }
                (list(view.figures.remarks.iter().map(|remark| html! { (remark) }).collect()))
            }
        }
    }
}

fn absence(absent: &Absent) -> Markup {
    html! {
        (palette::tag(&absent.mode)) ": " (absent.reason)
        @if let Some(suite) = &absent.suite {
            " (only in " (suite) @if let Some(scenario) = &absent.scenario { "/" (scenario) } ")"
        }
    }
}

fn failed(failure: &Failure) -> Markup {
    html! {
        code { (failure.id) }
        @if let Some(tenant) = &failure.tenant { ", tenant " (tenant) }
        ": " (failure.reason)
    }
}

/// How much of a list is in sight.
const IN_SIGHT: usize = 10;

/// What is beyond the first few is folded, and counted.
fn list(items: Vec<Markup>) -> Markup {
    let (first, rest) = items.split_at(items.len().min(IN_SIGHT));
    html! {
        ul { @for item in first { li { (item) } } }
        @if !rest.is_empty() {
            details {
                summary { "and " (count(rest.len())) " more" }
                ul { @for item in rest { li { (item) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let words = ["ebb", "lab", "run", "my suite", "it's", ""].map(str::to_owned);
        assert_eq!(command(&words), r"ebb lab run 'my suite' 'it'\''s' ''");
    }
}
