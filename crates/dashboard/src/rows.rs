//! What is sent of a GPU, of a tenant and of a moment. Times are whole nanoseconds and shares thousandths, as in a report.

use daemon::picture::Picture;
use daemon::report::{AloneSamples, Gpu, Process, State};
use daemon::scene::{GpuRows, Rates, Scene, Tenant};
use model::Nanos;
use serde::Serialize;

/// A GPU as it stands at the top of the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Card {
    pub uuid: String,
    pub index: Option<u32>,
    pub domain: String,
    pub policy: Option<String>,
    /// Who has the token, where one is passed round.
    pub token: Option<String>,
    /// What is not as it should be, in sentences.
    pub degraded: Vec<String>,
}

/// A tenant as a row of the table. What changes with every look is a [`Point`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    pub gpu: String,
    pub tenant: String,
    pub name: String,
    pub class: String,
    pub lowered: bool,
    pub state: &'static str,
    pub priority: u32,
    pub weight: u32,
    pub processes: usize,
    pub slo_ns: Option<u64>,
    /// `kept`, `missed` or `unattainable`.
    pub slo: Option<&'static str>,
    pub p99_ns: Option<u64>,
    pub slowdown_permille: Option<u64>,
    /// How many requests alone there are to go by, as long as those are too few.
    pub alone_samples: Option<AloneSamples>,
    pub rung: Option<String>,
    pub stop_p99_ns: Option<u64>,
    pub wait_p99_ns: Option<u64>,
    pub memory_used: Option<u64>,
    pub memory_limit: Option<u64>,
    /// Why a best-effort tenant runs or not, as it was last decided.
    pub decision: Option<String>,
}

/// What a tenant did since the moment before: its share of the GPU's time, and how often per second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Point {
    pub gpu: String,
    pub tenant: String,
    pub share: u32,
    pub launches: u64,
    pub stops: u64,
}

/// How the time of a GPU was used since the moment before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Load {
    pub gpu: String,
    pub latency: u32,
    pub best_effort: u32,
    pub idle: u32,
}

/// What is drawn along time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Moment {
    pub unix_ms: u64,
    pub points: Vec<Point>,
    pub loads: Vec<Load>,
}

pub fn cards(picture: &Picture, scene: &Scene) -> Vec<Card> {
    let index = |uuid: &str| picture.indices.iter().find(|(of, _)| of == uuid).map(|(_, index)| *index);
    let mps_down = picture.report.daemon.mps.as_ref().is_some_and(|mps| !mps.up);
    let card = |gpu: &GpuRows| {
        let told = picture.report.gpus.iter().find(|told| told.uuid == gpu.uuid);
        let lost = told.is_some_and(|told| told.processes.iter().any(|process| process.daemon_lost));
        let mut degraded = Vec::new();
        if gpu.degraded && mps_down {
            degraded.push("MPS is down, without which the shared domain does not share".to_owned());
        }
        if lost {
            degraded.push("a tenant has lost its daemon and works by the board alone".to_owned());
        }
        Card {
            uuid: gpu.uuid.clone(),
            index: index(&gpu.uuid),
            domain: gpu.domain.clone(),
            policy: gpu.policy.clone(),
            token: gpu.token.clone().flatten(),
            degraded,
        }
    };
    scene.gpus.iter().map(card).collect()
}

pub fn rows(picture: &Picture, scene: &Scene) -> Vec<Row> {
    let told = |uuid: &str| picture.report.gpus.iter().find(|gpu| gpu.uuid == uuid);
    let of = |gpu: &GpuRows| {
        let told = told(&gpu.uuid);
        gpu.tenants.iter().map(|tenant| row(gpu, tenant, told)).collect::<Vec<_>>()
    };
    scene.gpus.iter().flat_map(of).collect()
}

fn row(gpu: &GpuRows, tenant: &Tenant, told: Option<&Gpu>) -> Row {
    let figures = &tenant.figures;
    let service = figures.service.as_ref();
    let nanos = |time: Option<Nanos>| time.map(|Nanos(nanos)| nanos);
    Row {
        gpu: gpu.uuid.clone(),
        tenant: tenant.number.clone(),
        name: tenant.name.clone(),
        class: figures.class.clone(),
        lowered: figures.lowered,
        state: figures.state.word(),
        priority: figures.priority,
        weight: figures.weight,
        processes: tenant.processes.len(),
        slo_ns: nanos(service.and_then(|service| service.objective)),
        slo: service.and_then(|service| service.verdict()).map(|verdict| verdict.word()),
        p99_ns: nanos(service.and_then(|service| service.p99)),
        slowdown_permille: service.and_then(|service| service.slowdown),
        alone_samples: service.and_then(|service| service.alone_samples),
        rung: figures.stop.as_ref().map(|stop| stop.rung.clone()),
        stop_p99_ns: nanos(figures.stop.as_ref().and_then(|stop| stop.p99)),
        wait_p99_ns: nanos(figures.wait_p99),
        memory_used: figures.memory.map(|(used, _)| used),
        memory_limit: figures.memory.and_then(|(_, limit)| limit),
        decision: told.and_then(|told| decision(told, &tenant.number, figures.state)),
    }
}

/// The reason that holds for the process which is in the tenant's own state.
fn decision(told: &Gpu, tenant: &str, state: State) -> Option<String> {
    let own = |process: &&Process| process.tenant == tenant && process.decision.is_some();
    let mut all = told.processes.iter().filter(own);
    let first = all.clone().next();
    let process = all.find(|process| process.state == state).or(first)?;
    process.decision.as_ref().map(|decision| decision.reason.clone())
}

/// What was done since the moment before; nothing where there was none.
pub fn moment(picture: &Picture, scene: &Scene) -> Moment {
    let unix_ms = picture.unix_ns / 1_000_000;
    let point = |gpu: &GpuRows, tenant: &Tenant| {
        let Rates { gpu: share, launches, preemptions } = tenant.figures.rates?;
        let (share, stops) = (permille(share), preemptions.round() as u64);
        let (gpu, tenant) = (gpu.uuid.clone(), tenant.number.clone());
        Some(Point { gpu, tenant, share, launches: launches.round() as u64, stops })
    };
    let points = scene.gpus.iter().flat_map(|gpu| gpu.tenants.iter().filter_map(move |one| point(gpu, one)));
    let points = points.collect();
    Moment { unix_ms, points, loads: scene.gpus.iter().filter_map(load).collect() }
}

fn load(gpu: &GpuRows) -> Option<Load> {
    let idle = gpu.idle?;
    let of = |latency: bool| {
        let own = gpu.tenants.iter().filter(|tenant| tenant.figures.service.is_some() == latency);
        own.filter_map(|tenant| tenant.figures.rates).map(|rates| rates.gpu).sum::<f64>()
    };
    Some(Load {
        gpu: gpu.uuid.clone(),
        latency: permille(of(true)),
        best_effort: permille(of(false)),
        idle: permille(idle),
    })
}

/// A tenant may say of itself what it likes; more than tenfold is nobody's share.
fn permille(share: f64) -> u32 {
    (share.clamp(0.0, 10.0) * 1_000.0).round() as u32
}
