//! An archive that nobody measured.
//!
//! The report and its tests need results with everything in them that results can have: several suites, several
//! tenants, tokens, wrong answers, a failure, modes that are absent. These come from a crude model of a shared GPU (one
//! server, a delay until it is free, a share for best-effort work) and are the same on every machine. **They say
//! nothing about any real way of sharing**; the device is called `made up`, so that no report of them can be mistaken
//! for one of measurements.

use std::collections::BTreeMap;

use model::Class;

use crate::Archive;
use crate::draw::Draw;
use crate::record::{
    ALONE, Absent, Build, Calibration, Device, Failure, Host, LATENCY_ONLY, Machine, Record, Run, SCHEMA,
    Scenario, Slo, Tenant, TenantRun,
};

const WARMUP_US: u64 = 500_000;
const UNTIL_US: u64 = 3_500_000;
const REPETITIONS: u32 = 3;

/// A way of sharing, as the model has it.
struct Way {
    mode: &'static str,
    /// How much longer a request takes for the company it has.
    stretch: f64,
    /// The longest wait until best-effort work is off the GPU.
    stop_us: f64,
    /// Which part of the ideal the best-effort tenants get.
    share: f64,
}

const WAYS: [Way; 5] = [
    Way { mode: "timeslice", stretch: 1.05, stop_us: 3800.0, share: 0.93 },
    Way { mode: "mps", stretch: 1.9, stop_us: 300.0, share: 1.02 },
    Way { mode: "mps-priority", stretch: 1.4, stop_us: 250.0, share: 0.97 },
    Way { mode: "streams", stretch: 1.3, stop_us: 400.0, share: 0.9 },
    Way { mode: "ebb-isolated", stretch: 1.01, stop_us: 180.0, share: 0.95 },
];
const NO_COMPANY: Way = Way { mode: ALONE, stretch: 1.0, stop_us: 0.0, share: 1.0 };

/// A workload, as the model has it.
#[derive(Clone, Copy)]
struct Work {
    tenant: &'static str,
    workload: &'static str,
    gpu_us: f64,
    /// Requests per second; 0 makes it best-effort.
    rate: f64,
    tokens: u32,
}

const fn serving(tenant: &'static str, workload: &'static str, gpu_us: f64, rate: f64) -> Work {
    Work { tenant, workload, gpu_us, rate, tokens: 0 }
}

const fn training(tenant: &'static str, workload: &'static str, gpu_us: f64) -> Work {
    Work { tenant, workload, gpu_us, rate: 0.0, tokens: 0 }
}

const VGG: Work = serving("vgg19", "vgg19-inference-eager-b1", 900.0, 100.0);
const BERT: Work = serving("bert", "bert-inference-graph-b1-t128", 1400.0, 357.0);
const RESNET: Work = serving("resnet50", "resnet50-inference-compile-b1", 700.0, 200.0);
const LLAMA: Work =
    Work { tokens: 32, ..serving("llama", "llama-inference-eager-b1-p512-o32", 42_000.0, 6.0) };
const BURST: Work = serving("burst", "burst-10x132x20us", 210.0, 250.0);
const RESNET152: Work = training("resnet152", "resnet152-training-eager-b32", 61_000.0);
const WHISPER: Work = training("whisper", "whisper-training-eager-b8", 44_000.0);
const STENCIL: Work = training("stencil", "stencil-4096", 2_300.0);

/// The archive, as if read from a file.
pub fn archive() -> Archive {
    Archive::of(records())
}

/// Two suites of it, with ebb in both domains under two policies instead of one, and told an SLO under the second. The
/// shared domain is made a little better in one suite and worse in the other.
pub fn policies() -> Archive {
    const VARIANTS: [(&str, Option<u64>); 2] = [(":strict", None), (":slo:1.2x", Some(2_500))];
    let mut archive = archive();
    archive.scenarios.retain(|scenario| ["disb-a", "tally"].contains(&scenario.suite.as_str()));
    archive.absent.retain(|absent| absent.mode != "ebb-shared");
    let (ebb, mut runs): (Vec<Run>, Vec<Run>) =
        archive.runs.into_iter().partition(|run| run.mode == "ebb-isolated");
    for (run, domain, (variant, slo_us)) in ebb.iter().flat_map(|run| {
        let each = move |domain| VARIANTS.map(|variant| (run, domain, variant));
        ["ebb-isolated", "ebb-shared"].into_iter().flat_map(each)
    }) {
        let mut other = run.clone();
        other.mode = format!("{domain}{variant}");
        other.id = run.id.replace("ebb-isolated", &other.mode);
        for tenant in other.tenants.iter_mut().filter(|tenant| tenant.class == Class::Latency) {
            tenant.slo_us = slo_us;
            let taken = tenant.end_us.iter_mut().zip(&tenant.start_us).filter(|_| domain == "ebb-shared");
            taken.for_each(|(end, start)| match run.suite.as_str() {
                "tally" => *end += (*end - start) / 20,
                _ => *end -= (*end - start) / 200,
            });
        }
        runs.push(other);
    }
    for scenario in &mut archive.scenarios {
        scenario.modes.retain(|mode| !mode.starts_with("ebb"));
        let each = |domain| VARIANTS.map(|(variant, _)| format!("{domain}{variant}"));
        scenario.modes.extend(["ebb-isolated", "ebb-shared"].into_iter().flat_map(each));
    }
    Archive { runs, ..archive }
}

/// The same as records, in the order in which a lab would write them.
pub fn records() -> Vec<Record> {
    let mut records = vec![Record::Machine(machine())];
    scenario(
        &mut records,
        "disb-a",
        "disb-a",
        "VGG-19 at 100 requests/s beside ResNet-152",
        &[VGG, RESNET152],
    );
    for (latency, load) in [(BERT, 0.5), (RESNET, 0.14), (VGG, 0.09)] {
        for best_effort in [RESNET152, WHISPER, STENCIL] {
            let name = format!("{}-{}", latency.tenant, best_effort.tenant);
            let title = format!("{} at load {load} beside {}", latency.tenant, best_effort.tenant);
            scenario(&mut records, "tally", &name, &title, &[latency, best_effort]);
        }
    }
    scenario(&mut records, "burst-llm", "chat", "A chat beside a training", &[LLAMA, WHISPER]);
    for (block, workload, gpu_us) in [
        ("100us", "grid-1056x100us", 800.0),
        ("1ms", "grid-1056x1ms", 8_000.0),
        ("10ms", "grid-1056x10ms", 80_000.0),
    ] {
        let title = format!("Stop a grid with blocks of {block}");
        let works = [BURST, training("grid", workload, gpu_us)];
        scenario(&mut records, "micro", &format!("stop-{block}"), &title, &works);
    }
    let crowd = [VGG, RESNET, BURST, RESNET152, WHISPER];
    scenario(&mut records, "stress", "crowd", "Three latency and two best-effort tenants", &crowd);
    for (mode, reason) in [
        ("ebb-shared", "there is no nvidia-cuda-mps-control on this machine"),
        ("xsched", "not built: name it with --rival xsched=PATH"),
        ("hami", "not built: name it with --rival hami=PATH"),
    ] {
        let (mode, reason) = (mode.to_owned(), reason.to_owned());
        records.push(Record::Absent(Absent { mode, suite: None, scenario: None, reason }));
    }
    records.push(Record::Failure(Failure {
        id: "stress/crowd/streams/1".to_owned(),
        suite: "stress".to_owned(),
        scenario: "crowd".to_owned(),
        mode: "streams".to_owned(),
        repetition: 1,
        tenant: Some("whisper".to_owned()),
        reason: "the worker ended with status 1: out of memory".to_owned(),
    }));
    records
}

fn machine() -> Machine {
    Machine {
        schema: SCHEMA,
        at: "2026-11-15T12:00:00Z".to_owned(),
        ebb: Build { version: "0.1.0".to_owned(), commit: Some("0123456789abcdef".to_owned()), dirty: false },
        host: Host { cpu: "made up".to_owned(), cores: 2, memory_gib: 8.0, kernel: "6.1.0".to_owned() },
        device: Device {
            kind: "soft".to_owned(),
            name: "made up".to_owned(),
            driver: "none".to_owned(),
            sms: 132,
            memory_gib: 80.0,
            slowdown: 1.0,
        },
        libraries: BTreeMap::from([("torch".to_owned(), "2.11.0".to_owned())]),
        command: ["ebb", "lab", "run", "disb-a"].map(str::to_owned).to_vec(),
    }
}

fn scenario(records: &mut Vec<Record>, suite: &str, name: &str, title: &str, works: &[Work]) {
    let several = works.iter().filter(|work| work.rate > 0.0).count() > 1;
    let mut modes = vec![ALONE.to_owned()];
    modes.extend(several.then(|| LATENCY_ONLY.to_owned()));
    modes.extend(WAYS.iter().map(|way| way.mode.to_owned()));
    records.push(Record::Scenario(Scenario {
        suite: suite.to_owned(),
        name: name.to_owned(),
        digest: "made-up".to_owned(),
        title: title.to_owned(),
        source: (suite == "disb-a").then(|| "DISB workload A (REEF, OSDI 2022)".to_owned()),
        about: Some("Made up, to try the report.".to_owned()),
        duration_us: UNTIL_US - WARMUP_US,
        warmup_us: WARMUP_US,
        repetitions: REPETITIONS,
        seed: 1,
        slowdown: 1.0,
        tenants: works.iter().map(tenant).collect(),
        modes,
    }));
    for work in works {
        let (workload, per_s) = (work.workload.to_owned(), 1e6 / (work.gpu_us * 1.05));
        records.push(Record::Calibration(Calibration { workload, per_s, gpu_us: work.gpu_us }));
    }
    for repetition in 0..REPETITIONS {
        for work in works {
            let run = run(suite, name, &NO_COMPANY, repetition, std::slice::from_ref(work), works);
            records.push(Record::Run(Run { id: format!("{}/{}", run.id, work.tenant), ..run }));
        }
        if several {
            let latency: Vec<Work> = works.iter().copied().filter(|work| work.rate > 0.0).collect();
            let way = Way { mode: LATENCY_ONLY, stretch: 1.1, ..NO_COMPANY };
            records.push(Record::Run(run(suite, name, &way, repetition, &latency, works)));
        }
        for way in &WAYS {
            // One run is missing, as it will be in the field: a failure stands for it.
            if (suite, way.mode, repetition) != ("stress", "streams", 1) {
                records.push(Record::Run(run(suite, name, way, repetition, works, works)));
            }
        }
    }
}

fn tenant(work: &Work) -> Tenant {
    let latency = work.rate > 0.0;
    let slo = match (latency, work.tokens) {
        (false, _) => Slo::default(),
        (true, 0) => Slo { alone_p99: Some(1.2), ..Slo::default() },
        (true, _) => Slo { alone_ttft_p99: Some(1.2), alone_tpot_p99: Some(1.2), ..Slo::default() },
    };
    Tenant {
        name: work.tenant.to_owned(),
        class: if latency { Class::Latency } else { Class::BestEffort },
        workload: work.workload.to_owned(),
        arrival: if latency { format!("poisson {}/s", work.rate) } else { "closed".to_owned() },
        rate: latency.then_some(work.rate),
        slo,
    }
}

/// `present` are those who run, `all` those of the scenario, whose requests take GPU time from best-effort work.
fn run(suite: &str, name: &str, way: &Way, repetition: u32, present: &[Work], all: &[Work]) -> Run {
    let id = format!("{suite}/{name}/{}/{repetition}", way.mode);
    let busy: f64 = all.iter().map(|work| work.rate * work.gpu_us * 1e-6).sum();
    let rivals = all.iter().filter(|work| work.rate == 0.0).count().max(1) as f64;
    let share = if way.mode == ALONE { 1.0 } else { (1.0 - busy).max(0.05) * way.share / rivals };
    let of = |work: &Work| {
        let draw = Draw::named(u64::from(repetition), &format!("{suite}/{name}/{}", work.tenant));
        let noise = Draw::named(1, &format!("{id}/{}", work.tenant));
        if work.rate > 0.0 { requests(work, way, draw, noise) } else { iterations(work, way, share, noise) }
    };
    Run {
        suite: suite.to_owned(),
        scenario: name.to_owned(),
        mode: way.mode.to_owned(),
        repetition,
        order: Draw::named(u64::from(repetition), way.mode).below(WAYS.len()) as u32,
        at: format!("2026-11-15T12:0{repetition}:00Z"),
        seed: u64::from(repetition) + 1,
        warmup_us: WARMUP_US,
        until_us: UNTIL_US,
        wall_s: UNTIL_US as f64 * 1e-6 + 0.4,
        tenants: present.iter().map(of).collect(),
        ebb: None,
        serves: Vec::new(),
        machine: 0,
        id,
    }
}

/// One server, first come first served; what is not begun a second after the end stays unserved.
fn requests(work: &Work, way: &Way, mut arrivals: Draw, mut noise: Draw) -> TenantRun {
    let mut run = record(work, Class::Latency);
    let (mut due, mut free, mut dues) = (0.0, 0.0f64, Vec::new());
    loop {
        due += arrivals.gap() * 1e6 / work.rate;
        if due >= UNTIL_US as f64 {
            break;
        }
        dues.push(due as u64);
        let start = free.max(due.ceil());
        if start >= UNTIL_US as f64 + 1e6 {
            continue;
        }
        let wait = way.stop_us * noise.unit();
        let length = work.gpu_us * way.stretch * (1.0 + 0.05 * noise.gap());
        free = start + wait + length;
        run.start_us.push(start as u64);
        run.end_us.push(free as u64);
        if work.tokens > 0 {
            run.first_us.push((start + wait + length * 0.2) as u64);
            run.tokens.push(work.tokens);
        }
    }
    run.due_us = Some(dues);
    run
}

/// One after another, each handed over when the one before begins.
fn iterations(work: &Work, way: &Way, share: f64, mut noise: Draw) -> TenantRun {
    let mut run = record(work, Class::BestEffort);
    let (mut start, mut end) = (0.0, 0.0);
    while start < UNTIL_US as f64 {
        let begun = end;
        end += work.gpu_us / share * (0.97 + 0.06 * noise.unit());
        run.start_us.push(start as u64);
        run.end_us.push(end as u64);
        let number = run.checks.len();
        run.checks.push(format!("{:016x}", Draw::named(number as u64, work.workload).word()));
        start = begun;
    }
    // Sharing one process without protection loses a result now and then: a report must show it.
    if way.mode == "streams" {
        let place = run.checks.len() / 2;
        run.checks[place] = "0000000000000000".to_owned();
    }
    run
}

fn record(work: &Work, class: Class) -> TenantRun {
    let (name, workload) = (work.tenant.to_owned(), work.workload.to_owned());
    TenantRun { name, class, workload, gpu_us: work.gpu_us, ..TenantRun::default() }
}
