//! The daemon's configuration: TOML files, read at the start, at SIGHUP and when they change.
//!
//! It says how tenants share a GPU and which policy decides, how the token of the best-effort tenants goes round, who may claim
//! what, whose the sockets are, and where metrics are served. A file that is not there is an empty one. A key that is not known is an error, because a mistyped ceiling is none; so is a
//! schema that is newer than we are. Whoever re-reads a file keeps the last good one, so that a slip of an editor does not
//! change who may do what.
//!
//! * `sources`: which files there are; `keys`: what may stand in them
//! * `document`: one of them, with all of its mistakes; `meaning`: what they say together
//! * `ceiling`, `policy`: two of the things they are about

mod ceiling;
mod document;
mod keys;
mod meaning;
mod metrics;
mod policy;
mod sources;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use board::{Gpu, Settings};
use model::{Domain, Kind, Nanos, UnknownWord};

use crate::Error;
use crate::report::Entry;
use sources::Text;

pub use ceiling::{Ceiling, Ceilings, Rule, Subject};
pub use document::Mistake;
pub use keys::{Holds, KEYS, Key};
pub use metrics::{Dashboard, Metrics};
pub use policy::Policy;
pub use sources::{APPLIED, Sources};

/// For whom a daemon works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All users of the machine.
    Machine,
    /// The user who started it.
    User,
}

/// A configuration that was read and found right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// How tenants share a GPU, and how best-effort tenants take turns.
    pub token: Settings,
    /// Whether the daemon is to choose the domain by itself, when it starts.
    pub automatic: bool,
    /// Which policy decides, and how a person has set its dials.
    pub policy: Policy,
    /// GPUs that have another.
    pub gpus: BTreeMap<Gpu, Policy>,
    /// Whether the shared domain is MPS's. On the software GPU contexts run at the same time without it. `None`: where there
    /// is a driver of NVIDIA's.
    pub mps: Option<bool>,
    /// Whether users have boards of their own, and so cannot write on each other's.
    pub board_per_user: bool,
    pub ceilings: Ceilings,
    pub sockets: Sockets,
    pub metrics: Metrics,
    pub trace: Trace,
}

/// When the daemon writes down what tenants did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// When a latency tenant has missed its objective.
    pub on_miss: bool,
    /// For how long before.
    pub last: Nanos,
}

impl Default for Trace {
    fn default() -> Trace {
        Trace { on_miss: false, last: Nanos::from_millis(5_000) }
    }
}

/// Which domain somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    This(Domain),
    /// Whichever suits better.
    Auto,
}

impl FromStr for Wanted {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Wanted, UnknownWord> {
        match word {
            "auto" => Ok(Wanted::Auto),
            _ => word.parse().map(Wanted::This).map_err(|unknown: UnknownWord| UnknownWord {
                expected: "isolated, shared, auto",
                ..unknown
            }),
        }
    }
}

/// Groups that may use the sockets besides the daemon's own user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// May register and read.
    pub group: Option<u32>,
    /// May change.
    pub admin_group: Option<u32>,
}

impl Configuration {
    /// What holds where nobody says otherwise.
    pub fn plain(scope: Scope, daemon: u32) -> Configuration {
        let ceilings = Ceilings { rules: Vec::new(), scope, daemon };
        let (token, policy) = (Settings::default(), Policy::default());
        let gpus = BTreeMap::new();
        Configuration {
            token,
            automatic: false,
            policy,
            gpus,
            mps: None,
            board_per_user: false,
            ceilings,
            sockets: Sockets::default(),
            metrics: Metrics::plain(scope),
            trace: Trace::default(),
        }
    }

    /// Has tenants share a GPU as somebody asks. What is chosen by itself is isolated until it is chosen.
    pub fn share(&mut self, wanted: Wanted) {
        (self.automatic, self.token.domain) = match wanted {
            Wanted::This(domain) => (false, domain),
            Wanted::Auto => (true, Domain::Isolated),
        };
    }

    /// The policy of a GPU.
    pub fn policy_of(&self, gpu: Gpu) -> Policy {
        self.gpus.get(&gpu).copied().unwrap_or(self.policy)
    }

    /// Has this kind decide on all GPUs.
    pub fn force(&mut self, kind: Kind) {
        self.gpus.values_mut().chain([&mut self.policy]).for_each(|policy| policy.kind = kind);
    }

    /// Reads a file and the folder beside it. A file that is not there is as good as an empty one, unless somebody named it.
    pub fn read(path: &Path, named: bool, scope: Scope, daemon: u32) -> Result<Configuration, Error> {
        Loaded::read(&Sources::beside(path, named, scope, daemon)).map(|loaded| loaded.configuration)
    }

    /// Reads one text by itself.
    pub fn parse(text: &str, scope: Scope, daemon: u32) -> Result<Configuration, Vec<Mistake>> {
        let text = Text { path: PathBuf::new(), text: text.to_owned() };
        meaning::load(&[text], Configuration::plain(scope, daemon)).map(|loaded| loaded.configuration)
    }
}

/// A configuration, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub configuration: Configuration,
    /// Those that were there, in the order in which they were read.
    pub files: Vec<PathBuf>,
    /// What they say together. What none says is not among it.
    pub entries: Vec<Entry>,
}

impl Loaded {
    pub fn read(sources: &Sources) -> Result<Loaded, Error> {
        Loaded::check(sources).map_err(Error::configuration)
    }

    /// As [`read`](Loaded::read), with every mistake by itself.
    pub fn check(sources: &Sources) -> Result<Loaded, Vec<Mistake>> {
        Loaded::of(sources, &sources.texts()?)
    }

    /// What would be in force if a file of the folder had this text.
    pub fn check_with(sources: &Sources, name: &str, text: &str) -> Result<Loaded, Vec<Mistake>> {
        Loaded::of(sources, &sources.texts_with(name, text)?)
    }

    /// Reads texts as if they were files of these names.
    pub fn of_texts(texts: &[(&str, &str)], scope: Scope, daemon: u32) -> Result<Loaded, Vec<Mistake>> {
        let text = |(path, text): &(&str, &str)| Text { path: path.into(), text: (*text).to_owned() };
        let texts: Vec<_> = texts.iter().map(text).collect();
        meaning::load(&texts, Configuration::plain(scope, daemon))
    }

    /// What holds where no file says anything.
    pub fn plain(scope: Scope, daemon: u32) -> Loaded {
        let configuration = Configuration::plain(scope, daemon);
        Loaded { configuration, files: Vec::new(), entries: Vec::new() }
    }

    fn of(sources: &Sources, texts: &[Text]) -> Result<Loaded, Vec<Mistake>> {
        meaning::load(texts, Configuration::plain(sources.scope(), sources.daemon()))
    }
}

/// Where the file is unless somebody names another.
pub fn usual_place(scope: Scope) -> Option<PathBuf> {
    const NAME: &str = "ebb/ebb.toml";
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match scope {
        Scope::Machine => Some(Path::new("/etc").join(NAME)),
        Scope::User => {
            let base = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
            base.map(|base| base.join(NAME))
        }
    }
}
