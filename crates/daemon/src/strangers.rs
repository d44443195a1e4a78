//! Processes on a GPU that are not tenants of this daemon: what can be known of them, and how it is said.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use board::{Label, StrangersSeen};
use model::{Class, Nanos};

use crate::names;
use crate::report::Stranger;

/// As many are named in a sentence.
const NAMED: usize = 4;
/// Strangers with this part of the GPU's time, in permille, leave nothing to speak of.
const FULL: u32 = 750;
/// As many threads of a process are looked at.
const MOST_THREADS: usize = 2048;

/// A process on a GPU, as NVML or a software GPU's card tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupant {
    pub pid: u32,
    pub memory_bytes: Option<u64>,
    /// Whether it has work for the GPU now; `None`: nobody can tell.
    pub active: Option<bool>,
    pub on_gpu: OnGpu,
}

/// How much of the GPU's time a process has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnGpu {
    #[default]
    Unknown,
    /// Since it began. What it had lately is told by two looks.
    Total(Nanos),
    /// Lately, in permille of the time.
    Lately(u32),
}

impl Occupant {
    /// With what this machine says of the process. `None`: its number means nothing here.
    pub(crate) fn look_up(self) -> Option<Stranger> {
        let Occupant { pid, memory_bytes, active, on_gpu } = self;
        let gpu_permille = match on_gpu {
            OnGpu::Lately(permille) => Some(permille),
            OnGpu::Unknown | OnGpu::Total(_) => None,
        };
        let folder = Path::new("/proc").join(pid.to_string());
        let user = fs::metadata(&folder).ok()?.uid();
        let command = fs::read(folder.join("comm")).ok()?;
        let command = Label::<64>::new(command.trim_ascii_end()).printable();
        let environment = fs::read(folder.join("environ")).ok();
        let socket = environment.as_deref().and_then(socket);
        let class = class_by_threads(&folder);
        let under_ebb = (class.is_some() || socket.is_some()).then_some(true);
        Some(Stranger {
            pid,
            user,
            user_name: names::name_of_user(user),
            command,
            memory_bytes,
            active: active.or(gpu_permille.map(|part| part > 0)),
            gpu_permille,
            under_ebb: under_ebb.or(environment.map(|_| false)),
            class: class.map(|class| class.to_string()),
            daemon: socket,
        })
    }
}

/// The class of a tenant, which anybody may read off its threads. A process that is no tenant yet has none.
fn class_by_threads(process: &Path) -> Option<Class> {
    let threads = fs::read_dir(process.join("task")).ok()?.flatten().take(MOST_THREADS);
    let names = threads.filter_map(|thread| fs::read(thread.path().join("comm")).ok());
    names.into_iter().find_map(|name| board::link::class_of_thread(name.trim_ascii_end()))
}

/// The folder of the daemon that a process under `ebb run` was told of.
fn socket(environment: &[u8]) -> Option<String> {
    let mut settings = environment.split(|&byte| byte == 0);
    let socket = settings.find_map(|setting| setting.strip_prefix(b"EBB_SOCKET="))?;
    let folder = Path::new(std::ffi::OsStr::from_bytes(socket)).parent()?;
    Some(Label::<200>::new(folder.as_os_str().as_bytes()).printable())
}

impl Stranger {
    /// "pid 1234 python3 (user alice), not under ebb"
    pub fn words(&self) -> String {
        let user = self.user_name.clone().unwrap_or_else(|| self.user.to_string());
        let class = self.class.as_ref().map(|class| format!("{class} ")).unwrap_or_default();
        let under = match (&self.daemon, self.under_ebb) {
            (Some(folder), _) => format!("{class}under the ebb daemon in {folder}"),
            (None, Some(true)) => format!("{class}under another ebb daemon"),
            (None, Some(false)) => "not under ebb".to_owned(),
            (None, None) => "not under this daemon".to_owned(),
        };
        format!("pid {} {} (user {user}), {under}", self.pid, self.command)
    }

    /// Whether it is best-effort work of another daemon, with which ours takes turns.
    fn takes_turns(&self) -> bool {
        self.class.as_deref().is_some_and(|class| class == Class::BestEffort.to_string())
    }
}

/// What best-effort tenants of a board have to know about them.
pub fn seen(strangers: Option<&[Stranger]>) -> StrangersSeen {
    let Some(strangers) = strangers else { return StrangersSeen::default() };
    let best_effort = strangers.iter().any(|one| one.active != Some(false) && one.takes_turns());
    let to_yield_to = yields(strangers);
    StrangersSeen { all_known: true, to_yield_to, fill: fill(yields_to(strangers)), best_effort }
}

/// Whether these keep the GPU busy, or one of whom nobody can tell may do so.
fn fill<'a>(mut strangers: impl Iterator<Item = &'a Stranger>) -> bool {
    let together = strangers.try_fold(0u32, |sum, one| Some(sum.saturating_add(one.gpu_permille?)));
    together.is_none_or(|together| together >= FULL)
}

/// Whether best-effort work yields to any of them.
pub fn yields(strangers: &[Stranger]) -> bool {
    yields_to(strangers).next().is_some()
}

/// Those to whom best-effort work yields. Who has no work is not waited for.
fn yields_to(strangers: &[Stranger]) -> impl Iterator<Item = &Stranger> {
    strangers.iter().filter(|stranger| stranger.active != Some(false) && !stranger.takes_turns())
}

/// For whom best-effort tenants wait, and with whom they take turns; `None`: with nobody.
pub fn waits_for(strangers: &[Stranger]) -> Option<String> {
    let waits = named(yields_to(strangers)).map(|words| format!("waits for: {words}"));
    let turns = named(strangers.iter().filter(|one| one.takes_turns()));
    let turns = turns.map(|words| format!("takes turns with: {words}"));
    let words: Vec<_> = waits.into_iter().chain(turns).collect();
    (!words.is_empty()).then(|| words.join(", and "))
}

fn named<'a>(strangers: impl Iterator<Item = &'a Stranger>) -> Option<String> {
    let all: Vec<_> = strangers.collect();
    let mut words: Vec<_> = all.iter().take(NAMED).map(|stranger| stranger.words()).collect();
    if all.len() > NAMED {
        words.push(format!("and {} more", all.len() - NAMED));
    }
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn stranger(pid: u32, active: Option<bool>) -> Stranger {
        Stranger {
            pid,
            user: 1000,
            user_name: Some("alice".to_owned()),
            command: "python3".to_owned(),
            memory_bytes: None,
            active,
            gpu_permille: None,
            under_ebb: Some(false),
            class: None,
            daemon: None,
        }
    }

    #[test]
    fn best_effort_work_yields_to_all_but_best_effort_work() {
        let of_class = |class: &str| Stranger {
            class: Some(class.to_owned()),
            under_ebb: Some(true),
            ..stranger(7, None)
        };
        let (latency, best_effort) = (of_class("latency"), of_class("best-effort"));
        let to_yield_to = |all: &[Stranger]| seen(Some(all)).to_yield_to;
        assert!(to_yield_to(from_ref(&latency)) && to_yield_to(&[stranger(8, None)]));
        assert!(!to_yield_to(&[best_effort.clone(), stranger(8, Some(false))]));
        assert!(
            seen(Some(from_ref(&best_effort))).best_effort && !seen(Some(from_ref(&latency))).best_effort
        );
        assert_eq!(seen(None), StrangersSeen::default());
        assert!(seen(Some(&[])).all_known);
        let said = waits_for(&[best_effort, latency]).unwrap();
        assert!(said.starts_with("waits for: pid 7 python3 (user alice), latency under another"), "{said}");
        assert!(said.contains(", and takes turns with: pid 7 python3 (user alice), best-effort under"));
    }

    #[test]
    fn who_is_on_the_gpu_now_and_then_does_not_fill_it() {
        let with = |gpu_permille| Stranger { gpu_permille, ..stranger(7, Some(true)) };
        let fill =
            |parts: &[Option<u32>]| seen(Some(&parts.iter().copied().map(with).collect::<Vec<_>>())).fill;
        assert!(!fill(&[]) && !fill(&[Some(0)]) && !fill(&[Some(500), Some(249)]));
        assert!(fill(&[Some(500), Some(250)]) && fill(&[Some(1_000)]));
        assert!(fill(&[Some(10), None]), "nobody can tell");
        // Who has no work, and with whom turns are taken, keeps nobody from the GPU.
        let idle = stranger(7, Some(false));
        let best_effort = Stranger {
            class: Some("best-effort".to_owned()),
            gpu_permille: Some(900),
            ..stranger(8, Some(true))
        };
        let found = seen(Some(&[idle, best_effort]));
        assert!(!found.fill && !found.to_yield_to && found.best_effort);
    }

    #[test]
    fn who_is_waited_for_is_said_in_words() {
        let found = waits_for(&[stranger(1234, None)]).unwrap();
        assert_eq!(found, "waits for: pid 1234 python3 (user alice), not under ebb");
        let other = Stranger { daemon: Some("/tmp/b".to_owned()), user_name: None, ..stranger(7, None) };
        assert_eq!(other.words(), "pid 7 python3 (user 1000), under the ebb daemon in /tmp/b");
        let hidden = Stranger { under_ebb: None, ..stranger(7, None) };
        assert!(hidden.words().ends_with("not under this daemon"));
        assert_eq!(waits_for(&[stranger(7, Some(false))]), None, "an idle one takes nothing");
        let many: Vec<_> = (1..8).map(|pid| stranger(pid, Some(true))).collect();
        assert!(waits_for(&many).unwrap().ends_with("; and 3 more"));
    }

    #[test]
    fn a_process_is_looked_up_by_its_number() {
        let on_gpu = OnGpu::Lately(250);
        let own = Occupant { pid: std::process::id(), memory_bytes: Some(5), active: None, on_gpu };
        let found = own.look_up().unwrap();
        assert_eq!(found.user, rustix::process::geteuid().as_raw());
        assert!(!found.command.is_empty());
        assert_eq!((found.gpu_permille, found.active), (Some(250), Some(true)));
        assert_eq!(Occupant { pid: 0, ..own }.look_up(), None);
    }

    #[test]
    fn a_daemon_is_known_by_its_socket() {
        assert_eq!(socket(b"A=1\0EBB_SOCKET=/run/ebb/ebb.sock\0"), Some("/run/ebb".to_owned()));
        assert_eq!(socket(b"A=1\0"), None);
    }
}
