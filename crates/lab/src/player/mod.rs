//! The player: synthetic tenants, as a worker of the lab.
//!
//! It speaks the lab's protocol over standard input and output (`crew::protocol` has the other side), and does its work
//! through the driver API of whatever `libcuda.so.1` it finds. What it does is synthetic: bursts of short launches and
//! grids of blocks, on any device; and on the software GPU every other workload, by its profile. Every block leaves a
//! trace, so that a request is right if each of its blocks ran exactly once.
//!
//! One process hosts one tenant or several, each in a thread with a stream of its own.
//!
//! * `protocol`: what it is told, and what it says
//! * `plan`: what a request consists of
//! * `card`: the device, and how long arithmetic takes on it
//! * `trace`: what blocks leave
//! * `performer`: one tenant at work
//! * `clock`: waiting for a moment

mod card;
mod clock;
mod performer;
mod plan;
mod protocol;
mod trace;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use model::{Class, Nanos};
use scenario::profile::Profile;

use crate::Error;
use crate::crew::Stream;
use performer::{Performer, Run};
use plan::Plan;
use protocol::{Gpu, Order, ReadyTenant, Reply, Spec, TenantSpec};

/// What a player is started with.
#[derive(Clone, Debug)]
pub struct Player {
    /// The file that says which tenants it hosts.
    pub spec: PathBuf,
    /// `libcuda.so.1`, or a path.
    pub driver: PathBuf,
    /// A folder in which profiles are looked for before those that are built in.
    pub profiles: Option<PathBuf>,
}

/// Where replies go, from any thread. A player whom nobody hears has nobody to play for.
type Voice = Arc<Mutex<Box<dyn Write + Send>>>;

impl Player {
    /// Hosts the tenants until there are no more orders; then the process ends, in the middle of a run if need be. It
    /// returns only if it could not begin, and has said so.
    pub fn serve(&self, orders: impl BufRead, out: Box<dyn Write + Send>) -> Error {
        let voice: Voice = Arc::new(Mutex::new(out));
        be_sparing();
        match self.begin(&voice) {
            Ok(tenants) => obey(orders, &tenants, &voice),
            Err(error) => {
                say(&voice, &Reply::Error { tenant: None, reason: error.to_string() });
                error
            }
        }
    }

    /// Starts all tenants, and says that they are ready.
    fn begin(&self, voice: &Voice) -> Result<Vec<Sender<Order>>, Error> {
        let Spec { tenants, slowdown } = self.read_spec()?;
        let (ready, readiness) = mpsc::channel();
        let mut senders = Vec::new();
        for (index, spec) in tenants.into_iter().enumerate() {
            let (sender, orders) = mpsc::channel();
            senders.push(sender);
            let (player, voice, ready) = (self.clone(), Arc::clone(voice), ready.clone());
            thread::Builder::new()
                .name(spec.name.chars().take(15).collect())
                .spawn(move || host(&player, index, &spec, slowdown, &orders, &ready, &voice))
                .map_err(Error::Start)?;
        }
        drop(ready);
        let mut facts: Vec<Facts> = readiness.iter().take(senders.len()).collect::<Result<_, _>>()?;
        facts.sort_by_key(|facts| facts.index);
        let Some(first) = facts.first() else {
            return Err(Error::Player("a tenant ended before it was ready".to_owned()));
        };
        let versions =
            BTreeMap::from([("cuda", first.cuda.clone()), ("ebb", env!("CARGO_PKG_VERSION").to_owned())]);
        let gpu = Gpu { name: first.gpu.name.clone(), sms: first.gpu.sms };
        say(
            voice,
            &Reply::Ready { tenants: facts.iter().map(|facts| facts.tenant).collect(), versions, gpu },
        );
        Ok(senders)
    }

    fn read_spec(&self) -> Result<Spec, Error> {
        const SLOWEST: f64 = 1000.0;
        let wrong = |reason: String| Error::Player(format!("{}: {reason}", self.spec.display()));
        let text = std::fs::read_to_string(&self.spec).map_err(|error| wrong(error.to_string()))?;
        let spec: Spec = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if spec.tenants.is_empty() {
            return Err(wrong("there is no tenant in it".to_owned()));
        }
        if !(spec.slowdown > 0.0 && spec.slowdown <= SLOWEST) {
            return Err(wrong(format!("slowdown is {}, not above 0 and at most {SLOWEST}", spec.slowdown)));
        }
        Ok(spec)
    }

    fn profile(&self, workload: &str) -> Result<Profile, Error> {
        let given = self.profiles.as_deref().map(|folder| Profile::in_folder(folder, workload));
        match given.transpose()?.flatten() {
            Some(profile) => Ok(profile),
            None => Ok(Profile::built_in(workload)?),
        }
    }
}

/// What a tenant knows of itself and of its device when it is ready.
struct Facts {
    index: usize,
    tenant: ReadyTenant,
    gpu: Gpu,
    cuda: String,
}

/// The life of a tenant's thread.
fn host(
    player: &Player,
    index: usize,
    spec: &TenantSpec,
    slowdown: f64,
    orders: &Receiver<Order>,
    ready: &Sender<Result<Facts, Error>>,
    voice: &Voice,
) {
    clock::be_punctual();
    let mut performer = match prepare(player, index, spec, slowdown) {
        Ok((performer, facts)) => {
            let _ = ready.send(Ok(facts));
            performer
        }
        Err(error) => {
            let _ = ready.send(Err(Error::Player(format!("{}: {error}", spec.name))));
            return;
        }
    };
    for order in orders {
        let reply = perform(&mut performer, index, order)
            .unwrap_or_else(|error| Reply::Error { tenant: Some(index), reason: error.to_string() });
        say(voice, &reply);
    }
}

fn prepare(
    player: &Player,
    index: usize,
    spec: &TenantSpec,
    slowdown: f64,
) -> Result<(Performer, Facts), Error> {
    let begin = Instant::now();
    let class: Class = spec.class.parse().map_err(|error| Error::Player(format!("class: {error}")))?;
    // Beyond what a device has, the most urgent that it has is meant.
    let priority = match spec.stream {
        Stream::High => -5,
        Stream::Normal | Stream::Low => 0,
    };
    let find = |id: &str| player.profile(id);
    let plan = |card: &card::Card| Plan::of(&spec.workload, slowdown, card, &find);
    let performer = Performer::prepare(&player.driver, priority, class, plan)?;
    let tenant = ReadyTenant { gpu_us: performer.gpu.as_micros_f64(), load_s: begin.elapsed().as_secs_f64() };
    let gpu = Gpu { name: performer.card.name.clone(), sms: performer.card.sms };
    let cuda = performer.cuda_version()?;
    Ok((performer, Facts { index, tenant, gpu, cuda }))
}

fn perform(performer: &mut Performer, tenant: usize, order: Order) -> Result<Reply, Error> {
    match order {
        Order::Prepare { .. } => Ok(Reply::Prepared { tenant }),
        Order::Calibrate { seconds, .. } => calibrate(performer, tenant, seconds),
        Order::Run { begin_ns, due_us, until_us, drain_us, .. } => {
            let micros = |us: u64| Nanos(us.saturating_mul(1000));
            let due = due_us.map(|due| due.into_iter().map(micros).collect());
            let (until, drained) = (micros(until_us), micros(until_us.saturating_add(drain_us)));
            let ran = performer.run(&Run { begin: Nanos(begin_ns), due, until, drained })?;
            Ok(Reply::Ran { tenant, ran })
        }
        Order::Record { .. } => {
            Err(Error::Player("a synthetic tenant has nothing that could be recorded".to_owned()))
        }
    }
}

fn calibrate(performer: &mut Performer, tenant: usize, seconds: f64) -> Result<Reply, Error> {
    const LONGEST: f64 = 3600.0;
    if !(seconds > 0.0 && seconds <= LONGEST) {
        return Err(Error::Player(format!("one cannot calibrate for {seconds} seconds")));
    }
    let span = Nanos((seconds * 1e9) as u64);
    let ran = performer.run(&Run { begin: clock::now(), due: None, until: span, drained: span })?;
    let count = ran.end_us.len();
    let passed = ran.end_us.last().map_or(0.0, |us| *us as f64 * 1e-6);
    let per_s = if passed > 0.0 { count as f64 / passed } else { 0.0 };
    Ok(Reply::Calibrated { tenant, per_s, count })
}

/// Hands orders to the tenants' threads, until there are none.
fn obey(orders: impl BufRead, tenants: &[Sender<Order>], voice: &Voice) -> ! {
    for line in orders.lines() {
        let Ok(line) = line else { break };
        let refused = |reason: String| say(voice, &Reply::Error { tenant: None, reason });
        match serde_json::from_str::<Order>(&line) {
            Err(error) => refused(format!("an order that is not understood: {error}")),
            Ok(order) => match tenants.get(order.tenant()) {
                None => refused(format!("there is no tenant {}", order.tenant())),
                Some(tenant) => {
                    let index = order.tenant();
                    if tenant.send(order).is_err() {
                        let reason = "its thread has ended".to_owned();
                        say(voice, &Reply::Error { tenant: Some(index), reason });
                    }
                }
            },
        }
    }
    leave()
}

fn say(voice: &Voice, reply: &Reply) {
    let mut line = serde_json::to_string(reply).expect("words and numbers can be written");
    line.push('\n');
    let mut out = voice.lock().unwrap_or_else(PoisonError::into_inner);
    if out.write_all(line.as_bytes()).and_then(|()| out.flush()).is_err() {
        leave()
    }
}

/// Lets the software GPU have one thread in this process, unless the user has said how many. Blocks that sleep are no work;
/// a second thread would mostly be woken to find that the first has done it, and there may be many tenants on few cores.
fn be_sparing() {
    const THREADS: &str = "EBB_SOFTGPU_THREADS";
    if std::env::var_os(THREADS).is_none() {
        // SAFETY: this process has no other thread yet: a player's are started after this, as are a driver's.
        unsafe { std::env::set_var(THREADS, "1") }
    }
}

/// Ends the process as it stands. Threads may be in the middle of the driver, which must not be taken down under them.
fn leave() -> ! {
    // SAFETY: no preconditions.
    unsafe { libc::_exit(0) }
}

#[cfg(test)]
mod tests;
