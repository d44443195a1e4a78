//! What the person at the keyboard has chosen: order, filter, selection, what is opened, what is being asked.
//!
//! It is held by names, not by places on the screen, so that a selection stays with its tenant when rows change places.

use std::collections::HashSet;

use daemon::report::{Report, State};

use super::columns::Column;
use super::history::History;
use crate::users::UserNames;
use daemon::scene::{GpuRows, Member, Scene, Tenant};

#[derive(Debug)]
pub struct Desk {
    pub report: Option<Report>,
    pub scene: Option<Scene>,
    pub history: History,
    pub users: UserNames,
    /// The daemon did not answer last time.
    pub lost: bool,
    pub order: Column,
    pub reversed: bool,
    pub filter: String,
    pub mode: Mode,
    /// What came of the last request, until the next key.
    pub message: Option<String>,
    /// Nothing before rows have an order: then the tenant that comes to stand in the first row.
    selected: Option<Choice>,
    opened: HashSet<(String, String)>,
}

/// What keys mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    Table,
    /// Letters go to the filter.
    Filter,
    /// Whether to pause or resume a tenant.
    Confirm(Change),
    Help,
}

/// A tenant that is to stand still or to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub tenant: String,
    pub name: String,
    pub pause: bool,
    /// Requests wait for it.
    pub latency: bool,
}

impl Change {
    pub fn verb(&self) -> &'static str {
        if self.pause { "pause" } else { "resume" }
    }

    /// What is asked before it is done. That requests will wait is no small thing, so it is said.
    pub fn question(&self) -> String {
        match (self.pause, self.latency) {
            (true, true) => format!("pause {}, a latency tenant whose requests will wait? y/n", self.name),
            _ => format!("{} {}? y/n", self.verb(), self.name),
        }
    }
}

/// A row that can be selected.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Choice {
    gpu: String,
    tenant: String,
    process: Option<u32>,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub enum Line<'a> {
    Gpu(&'a GpuRows),
    Tenant(&'a GpuRows, &'a Tenant),
    Process(&'a GpuRows, &'a Tenant, &'a Member),
}

impl Line<'_> {
    fn choice(&self) -> Option<Choice> {
        let (gpu, tenant, process) = match self {
            Line::Gpu(_) => return None,
            Line::Tenant(gpu, tenant) => (gpu, tenant, None),
            Line::Process(gpu, tenant, process) => (gpu, tenant, Some(process.pid)),
        };
        Some(Choice { gpu: gpu.uuid.clone(), tenant: tenant.number.clone(), process })
    }
}

impl Desk {
    pub fn new() -> Desk {
        Desk {
            report: None,
            scene: None,
            history: History::default(),
            users: UserNames::default(),
            lost: false,
            order: Column::Gpu,
            reversed: false,
            filter: String::new(),
            mode: Mode::Table,
            message: None,
            selected: None,
            opened: HashSet::new(),
        }
    }

    /// What the daemon has answered; nothing if it has not. Rows stay as they were then, so that one sees what was.
    pub fn take(&mut self, report: Option<Report>) {
        self.lost = report.is_none();
        let Some(report) = report else { return };
        let (before, is_first) = (self.position(), self.report.is_none());
        let scene = Scene::new(self.report.as_ref(), &report);
        self.history.take(&scene);
        self.users.learn(&report);
        (self.scene, self.report) = (Some(scene), Some(report));
        self.settle(before);
        // The first report has no rates, so its rows have no order that is worth keeping to.
        if !is_first {
            self.hold();
        }
    }

    /// From now on the selection stays with its tenant, wherever that goes: who presses a key means the row that they see.
    pub fn hold(&mut self) {
        if self.selected.is_none() {
            self.selected = self.position().and_then(|position| self.lines()[position].choice());
        }
    }

    /// The lines of the table, in their order.
    pub fn lines(&self) -> Vec<Line<'_>> {
        let mut lines = Vec::new();
        for gpu in self.scene.iter().flat_map(|scene| &scene.gpus) {
            let mut tenants: Vec<&Tenant> =
                gpu.tenants.iter().filter(|tenant| self.passes(&tenant.name)).collect();
            tenants.sort_by(|one, other| {
                let order = self.order.compare(one, other);
                let order = if self.reversed { order.reverse() } else { order };
                // Equals keep their places from one report to the next.
                order.then_with(|| (&one.name, &one.number).cmp(&(&other.name, &other.number)))
            });
            // A filter that leaves nobody hides the GPU too.
            if !tenants.is_empty() {
                lines.push(Line::Gpu(gpu));
            }
            for tenant in tenants {
                lines.push(Line::Tenant(gpu, tenant));
                if self.is_opened(gpu, tenant) {
                    lines.extend(tenant.processes.iter().map(|process| Line::Process(gpu, tenant, process)));
                }
            }
        }
        lines
    }

    fn passes(&self, name: &str) -> bool {
        name.to_lowercase().contains(&self.filter.to_lowercase())
    }

    pub fn is_opened(&self, gpu: &GpuRows, tenant: &Tenant) -> bool {
        self.opened.contains(&(gpu.uuid.clone(), tenant.number.clone()))
    }

    /// Where among the lines the selected one is.
    pub fn position(&self) -> Option<usize> {
        self.lines().iter().map(Line::choice).position(|choice| match &self.selected {
            Some(selected) => choice.as_ref() == Some(selected),
            None => choice.is_some(),
        })
    }

    /// Moves the selection by so many rows that can be selected, as far as there are any.
    pub fn go(&mut self, rows: isize) {
        let choices: Vec<Choice> = self.lines().iter().filter_map(Line::choice).collect();
        let here = choices.iter().position(|choice| Some(choice) == self.selected.as_ref()).unwrap_or(0);
        let there = here.saturating_add_signed(rows).min(choices.len().saturating_sub(1));
        self.selected = choices.get(there).cloned();
    }

    /// After a change of lines: what was selected may be gone. Then what is in its place is as good, or what is before it.
    fn settle(&mut self, before: Option<usize>) {
        if self.selected.is_none() || self.position().is_some() {
            return;
        }
        let lines = self.lines();
        let at = before.unwrap_or(0).min(lines.len());
        let mut near = lines[at..].iter().chain(lines[..at].iter().rev());
        let selected = near.find_map(Line::choice);
        self.selected = selected;
    }

    pub fn sort_by(&mut self, order: Column) {
        (self.order, self.reversed) = (order, false);
    }

    pub fn set_filter(&mut self, filter: String) {
        let before = self.position();
        self.filter = filter;
        self.settle(before);
    }

    /// Shows the processes of the selected tenant, or no more.
    pub fn open(&mut self) {
        let selected = self.position().and_then(|position| self.lines()[position].choice());
        let Some(Choice { gpu, tenant, .. }) = selected else { return };
        let key = (gpu.clone(), tenant.clone());
        if !self.opened.remove(&key) {
            self.opened.insert(key);
        }
        // A process that is shown no more cannot be selected.
        self.selected = Some(Choice { gpu, tenant, process: None });
    }

    /// What pausing or resuming the selected tenant would be.
    pub fn change(&self) -> Option<Change> {
        let position = self.position()?;
        let (Line::Tenant(_, tenant) | Line::Process(_, tenant, _)) = self.lines()[position] else {
            return None;
        };
        let pause = tenant.figures.state != State::Paused;
        let latency = tenant.figures.service.is_some();
        Some(Change { tenant: tenant.number.clone(), name: tenant.name.clone(), pause, latency })
    }
}
