//! The boards and those who sit at them, as a report.

use board::{Figures, Reading, Rung, SliceState, Snapshot, Why};
use model::{Class, Nanos};

use super::{BoardKey, Fate, Registry, Sitting, Table, insight};
use crate::configuration::Scope;
use crate::report::{Asked, Counters, Daemon, DomainChoice, Holder, Process, Report, Settings, State, Times};
use crate::scene::Service;
use crate::{strangers, uuid};

/// A tenant that has shown no life for so long is said to be silent. Its helper thread beats far more often.
const SILENT_FOR: Nanos = Nanos::from_millis(5_000);

impl Registry {
    pub fn report(&self, now: Nanos) -> Report {
        let gpus: Vec<_> = self.tables.iter().map(|(key, table)| self.gpu(*key, table, now)).collect();
        let wrong = |error| format!("The configuration is wrong and the last good one is in force: {error}.");
        let mut sentences: Vec<String> = self.configured.error.as_ref().map(wrong).into_iter().collect();
        sentences.extend(self.remark.clone());
        sentences.extend(self.about_peers());
        sentences.extend(self.metrics_trouble.clone());
        sentences.extend(self.fate.iter().flat_map(|fate| fate.sentences(now)));
        sentences.extend(gpus.iter().filter_map(about_strangers));
        sentences.extend(gpus.iter().flat_map(|gpu| &gpu.processes).flat_map(sentences_about));
        Report { version: env!("CARGO_PKG_VERSION").to_owned(), daemon: self.daemon(now), gpus, sentences }
    }

    /// What peers did that they should not have.
    fn about_peers(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let counts = [
            (self.refused, ["registration was", "registrations were"], "refused; the daemon's log says why."),
            (
                self.turned_away,
                ["connection was", "connections were"],
                "turned away; the daemon's log says whose.",
            ),
            (
                self.malformed,
                ["message was", "messages were"],
                "not understood; the daemon's log says whose.",
            ),
        ];
        for (count, [one, many], what) in counts.into_iter().filter(|(count, ..)| *count > 0) {
            sentences.push(format!("{count} {} {what}", if count == 1 { one } else { many }));
        }
        for (key, table) in self.tables.iter().filter(|(_, table)| table.tampered > 0) {
            sentences.push(format!(
                "Somebody who sits at {} writes over its board; {} times was put back what only the daemon writes, and the \
                 daemon's log says what.",
                uuid::write(key.gpu),
                table.tampered
            ));
        }
        let lost =
            |sitting: &Sitting| format!("{} ({}) has lost its seat on the board.", sitting.name, sitting.pid);
        sentences.extend(self.unseated().map(lost));
        sentences
    }

    fn daemon(&self, now: Nanos) -> Daemon {
        Daemon {
            pid: std::process::id(),
            generation: format!("{:016x}", self.generation),
            scope: match self.configuration.ceilings.scope {
                Scope::Machine => "machine".to_owned(),
                Scope::User => "user".to_owned(),
            },
            folder: self.folder.display().to_string(),
            uptime_ns: now.since(self.began).0,
            configuration: self.configured.file.clone(),
            config_files: self.configured.files.clone(),
            config_generation: self.configured.generation,
            config_ok: self.configured.error.is_none(),
            config_error: self.configured.error.clone(),
            config_loaded_ns: self.configured.loaded_ns,
            config_age_ns: now.since(self.configured.loaded).0,
            refused: self.refused,
            turned_away: self.turned_away,
            malformed: self.malformed,
            domain: self.domain().to_string(),
            domain_choice: self.choice.map(|choice| DomainChoice {
                why: choice.because.name().to_owned(),
                reason: choice.because.sentence().to_owned(),
            }),
            mps: self.fate.as_ref().map(Fate::report),
            survey_age_ns: self.surveyed.map(|at| now.since(at).0),
            metrics: self.metrics.clone(),
            dashboard: self.dashboard.clone(),
        }
    }

    fn gpu(&self, key: BoardKey, table: &Table, now: Nanos) -> crate::report::Gpu {
        let gpu = key.gpu;
        let settings = table.board.settings();
        let readings: Vec<_> = table.board.seats().collect();
        // Of strangers too: who shares the GPU with somebody else's programs has not all of it.
        let all = readings
            .iter()
            .fold(table.strangers_time.0, |sum, (_, reading)| sum.saturating_add(reading.figures.gpu_ns));
        let strangers = self.strangers(gpu);
        let yields = strangers::yields(strangers.as_deref().unwrap_or_default());
        let at = |sitting: &&Sitting| sitting.board == key;
        let processes = self.sittings.values().filter(at).filter_map(|sitting| {
            let (_, reading) = readings.iter().find(|(place, _)| *place == sitting.place)?;
            let mut process = self.process(sitting, reading, all, now);
            process.decision = process.decision.map(|decision| insight::beside_strangers(decision, yields));
            Some(process)
        });
        let processes: Vec<_> = processes.collect();
        let token = table.board.token().and_then(|(place, since)| {
            let sitting = self.sittings.values().filter(at).find(|sitting| sitting.place == place)?;
            Some(Holder { pid: sitting.pid, name: sitting.name.clone(), held_ns: now.since(since).0 })
        });
        crate::report::Gpu {
            uuid: uuid::write(gpu),
            domain: settings.domain.to_string(),
            policy: Some(self.policy(gpu, table)),
            settings: Settings {
                quantum_ns: settings.quantum.0,
                in_flight_ns: table.board.dials().in_flight.0,
                idle_ns: settings.idle.0,
                grace_ns: settings.grace.0,
            },
            user: key.user,
            tampered: table.tampered,
            token,
            processes,
            strangers,
        }
    }

    fn process(&self, sitting: &Sitting, reading: &Reading, all: u64, now: Nanos) -> Process {
        let condition = &reading.condition;
        let terms = sitting.granted;
        let mut process = Process {
            pid: sitting.pid,
            user: sitting.user,
            tenant: format!("{:016x}", self.tenants[&sitting.tenant].number),
            name: sitting.name.clone(),
            program: sitting.program.printable(),
            seat: sitting.place.seat,
            class: terms.class.to_string(),
            weight: terms.weight,
            priority: terms.priority,
            slo_p99_ns: terms.slo.map(|slo| slo.0),
            lowered: sitting.lowered,
            asked: Asked {
                class: sitting.asked.class.to_string(),
                weight: sitting.asked.weight,
                priority: sitting.asked.priority,
            },
            state: state(terms.class, terms.paused, reading),
            rung: condition.rung.name().to_owned(),
            why: condition.why.name().to_owned(),
            reason: reason(condition.rung, condition.why),
            detail: condition.detail,
            requests: insight::requests(reading, terms.class),
            objective: None,
            unattainable_p99_ns: insight::unattainable(reading, &terms),
            decision: insight::decision(reading, terms.class),
            slice_ns: condition.slice.map(|slice| slice.0),
            slice_state: condition.slice_state.name().to_owned(),
            memory_used_bytes: reading.memory.0,
            memory_limit_bytes: terms.memory.map(|limit| limit.0),
            share_permille: share(reading.figures.gpu_ns, all),
            heartbeat_age_ns: reading.heartbeat.map(|beat| now.since(beat).0),
            daemon_lost: condition.daemon_lost,
            counters: counters(&reading.figures),
            bursts: times(&reading.figures.burst_times),
            waits: times(&reading.figures.wait_times),
            handovers: times(&reading.figures.handover_times),
            guard_stops: times(&reading.figures.guard_times),
        };
        process.objective = Service::of(&process).verdict().map(|verdict| verdict.word().to_owned());
        process
    }
}

/// Whether a tenant that has shown life has shown none for some time.
pub(super) fn is_silent(reading: &Reading, now: Nanos) -> bool {
    reading.silence(now).is_some_and(|silence| silence > SILENT_FOR)
}

fn state(class: Class, paused: bool, reading: &Reading) -> State {
    match class {
        _ if paused => State::Paused,
        _ if reading.holding => State::Holding,
        _ if reading.wanting => State::Waiting,
        Class::Latency if reading.active_since.is_some() => State::Running,
        _ => State::Idle,
    }
}

fn reason(rung: Rung, why: Why) -> String {
    match why {
        Why::Unsaid => "it has not said how it can be stopped".to_owned(),
        Why::Ok => rung.sentence().to_owned(),
        Why::LatencyNeedsNone => format!("{}, being a latency tenant", rung.sentence()),
        other => format!("{}: {}", rung.sentence(), other.sentence()),
    }
}

/// In thousandths. Tenants write these numbers, so they may be anything.
fn share(part: u64, all: u64) -> u64 {
    u64::try_from(u128::from(part) * 1000 / u128::from(all.max(1))).unwrap_or(1000).min(1000)
}

fn times(snapshot: &Snapshot) -> Times {
    let at = |part| snapshot.quantile(part).map(|time| time.0);
    Times { count: snapshot.count(), p50_ns: at(0.5), p99_ns: at(0.99) }
}

fn counters(figures: &Figures) -> Counters {
    Counters {
        submissions: figures.submissions,
        launches: figures.launches,
        gpu_ns: figures.gpu_ns,
        pending_ns: figures.pending_ns,
        held_ns: figures.held_ns,
        wait_ns: figures.wait_ns,
        waits: figures.waits,
        passes: figures.passes,
        stops_hold: figures.stops_hold,
        stops_guard: figures.stops_guard,
        cut: figures.cut,
        relaunched: figures.relaunched,
        confined: figures.confined,
        rounds: figures.rounds,
        watchdog: figures.watchdog,
        stops_switch: figures.stops_switch,
        preempted: figures.preempted,
        taken_over: figures.taken_over,
        lost: figures.lost,
        bursts: figures.bursts,
        burst_ns: figures.burst_ns,
        bursts_unended: figures.bursts_unended,
        marked: figures.marked,
        slo_missed: figures.slo_missed,
        daemon_losses: figures.daemon_losses,
        refusals: figures.refusals,
        slices_lengthened: figures.slices_lengthened,
        memory_denials: figures.memory_denials,
    }
}

/// For whom best-effort tenants of a GPU wait though it is no tenant.
fn about_strangers(gpu: &crate::report::Gpu) -> Option<String> {
    let best_effort = Class::BestEffort.to_string();
    gpu.processes.iter().find(|process| process.class == best_effort)?;
    let words = strangers::waits_for(gpu.strangers.as_deref()?)?;
    Some(format!("Best-effort work on {} {words}.", gpu.uuid))
}

/// What is not as it should be with a process.
fn sentences_about(process: &Process) -> Vec<String> {
    let Process { pid, name, .. } = process;
    let mut sentences = Vec::new();
    let mut say = |sentence: String| sentences.push(format!("{name} ({pid}) {sentence}"));
    if process.lowered {
        let Asked { class, weight, priority } = &process.asked;
        say(format!(
            "asked for class {class}, weight {weight}, priority {priority}, which is more than its user may have."
        ));
    }
    let fine = ["ok", "unsaid", "latency"].contains(&process.why.as_str());
    if !fine {
        let detail = if process.detail == 0 { String::new() } else { format!(" ({:#x})", process.detail) };
        say(format!("{}{detail}.", process.reason));
    }
    let state = SliceState::ALL.iter().find(|state| state.name() == process.slice_state);
    if let Some(state) = state.filter(|state| **state != SliceState::Short) {
        say(format!("{}.", state.sentence()));
    }
    if process.daemon_lost {
        say("has lost its daemon and works by the board alone.".to_owned());
    }
    if let (Some(alone), Some(slo)) = (process.unattainable_p99_ns, process.slo_p99_ns) {
        let (alone, slo) = (Nanos(alone), Nanos(slo));
        say(format!(
            "cannot keep its objective even alone: p99 should be below {slo} and is {alone} alone. \
             It is held against what it takes alone instead."
        ));
    }
    if process.heartbeat_age_ns.is_some_and(|age| age > SILENT_FOR.0) {
        say("has shown no sign of life for some time; it may be stopped.".to_owned());
    }
    sentences
}
