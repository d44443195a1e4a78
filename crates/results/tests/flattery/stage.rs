//! Archives written by hand, a run at a time.

use model::Class;
use results::Archive;
use results::record::{
    ALONE, Build, Device, Host, Machine, Record, Run, SCHEMA, Scenario, Slo, Tenant, TenantRun,
};

/// What one tenant did.
#[derive(Clone)]
pub struct Part {
    pub name: &'static str,
    pub class: Class,
    pub gpu_us: f64,
    pub due: Option<Vec<u64>>,
    pub start: Vec<u64>,
    pub end: Vec<u64>,
    pub wrong: Vec<usize>,
    pub checks: Vec<String>,
    pub first: Vec<u64>,
    pub tokens: Vec<u32>,
    /// The SLO that it told ebb.
    pub slo: Option<u64>,
}

pub fn latency(name: &'static str) -> Part {
    Part { class: Class::Latency, ..best_effort(name) }
}

pub fn best_effort(name: &'static str) -> Part {
    Part {
        name,
        class: Class::BestEffort,
        gpu_us: 1.0,
        due: None,
        start: Vec::new(),
        end: Vec::new(),
        wrong: Vec::new(),
        checks: Vec::new(),
        first: Vec::new(),
        tokens: Vec::new(),
        slo: None,
    }
}

/// A scenario whose tenants are those that were seen in its runs.
pub struct Stage {
    slo: Slo,
    window: (u64, u64),
    tenants: Vec<Tenant>,
    runs: Vec<Run>,
}

impl Stage {
    pub fn new(slo: Slo) -> Stage {
        Stage { slo, window: (0, 1_000_000), tenants: Vec::new(), runs: Vec::new() }
    }

    /// The counted time of the runs that follow.
    pub fn window(mut self, warmup_us: u64, until_us: u64) -> Stage {
        self.window = (warmup_us, until_us);
        self
    }

    pub fn alone(self, repetition: u32, part: Part) -> Stage {
        self.run(ALONE, repetition, [part])
    }

    pub fn run<const N: usize>(mut self, mode: &str, repetition: u32, parts: [Part; N]) -> Stage {
        for part in &parts {
            if !self.tenants.iter().any(|tenant| tenant.name == part.name) {
                self.tenants.push(Tenant {
                    name: part.name.to_owned(),
                    class: part.class,
                    workload: part.name.to_owned(),
                    arrival: "by hand".to_owned(),
                    rate: None,
                    slo: self.slo,
                });
            }
        }
        self.runs.push(Run {
            id: format!("{mode}/{repetition}/{}", self.runs.len()),
            suite: "suite".to_owned(),
            scenario: "scenario".to_owned(),
            mode: mode.to_owned(),
            repetition,
            order: 0,
            at: String::new(),
            seed: 1,
            warmup_us: self.window.0,
            until_us: self.window.1,
            wall_s: 1.0,
            tenants: parts.into_iter().map(tenant_run).collect(),
            ebb: None,
            serves: Vec::new(),
            machine: 0,
        });
        self
    }

    pub fn archive(self) -> Archive {
        let machine = Machine {
            schema: SCHEMA,
            at: String::new(),
            ebb: Build::default(),
            host: Host::default(),
            device: Device::default(),
            libraries: Default::default(),
            command: Vec::new(),
        };
        let scenario = Scenario {
            suite: "suite".to_owned(),
            name: "scenario".to_owned(),
            digest: String::new(),
            title: String::new(),
            source: None,
            about: None,
            duration_us: self.window.1 - self.window.0,
            warmup_us: self.window.0,
            repetitions: 1,
            seed: 1,
            slowdown: 1.0,
            tenants: self.tenants,
            modes: vec![ALONE.to_owned()],
        };
        let head = [Record::Machine(machine), Record::Scenario(scenario)];
        Archive::of(head.into_iter().chain(self.runs.into_iter().map(Record::Run)))
    }
}

fn tenant_run(part: Part) -> TenantRun {
    TenantRun {
        name: part.name.to_owned(),
        class: part.class,
        workload: part.name.to_owned(),
        gpu_us: part.gpu_us,
        due_us: part.due,
        start_us: part.start,
        end_us: part.end,
        wrong: part.wrong,
        checks: part.checks,
        first_us: part.first,
        tokens: part.tokens,
        slo_us: part.slo,
    }
}
