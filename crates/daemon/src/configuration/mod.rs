//! The daemon's configuration: a TOML file, read at the start and at SIGHUP.
//!
//! It says how tenants share a GPU and which policy decides, how the token of the best-effort tenants goes round, who may claim
//! what, and whose the sockets are. A file that is not there is an empty one. A key that is not known is an error, because a mistyped ceiling is none; so is a
//! schema that is newer than we are. Whoever re-reads a file keeps the last good one, so that a slip of an editor does not
//! change who may do what.

mod ceiling;
mod file;
mod policy;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use board::{Gpu, Settings};
use model::Kind;

use crate::Error;

pub use ceiling::{Ceiling, Ceilings, Rule, Subject};
pub use policy::Policy;

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
    /// Which policy decides, and how a person has set its dials.
    pub policy: Policy,
    /// GPUs that have another.
    pub gpus: BTreeMap<Gpu, Policy>,
    /// Whether the shared domain is MPS's. On the software GPU contexts run at the same time without it. `None`: where there
    /// is a driver of NVIDIA's.
    pub mps: Option<bool>,
    pub ceilings: Ceilings,
    pub sockets: Sockets,
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
        Configuration { token, policy, gpus, mps: None, ceilings, sockets: Sockets::default() }
    }

    /// The policy of a GPU.
    pub fn policy_of(&self, gpu: Gpu) -> Policy {
        self.gpus.get(&gpu).copied().unwrap_or(self.policy)
    }

    /// Has this kind decide on all GPUs.
    pub fn force(&mut self, kind: Kind) {
        self.gpus.values_mut().chain([&mut self.policy]).for_each(|policy| policy.kind = kind);
    }

    /// Reads a file. One that is not there is as good as an empty one, unless somebody named it.
    pub fn read(path: &Path, named: bool, scope: Scope, daemon: u32) -> Result<Configuration, Error> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !named => {
                return Ok(Configuration::plain(scope, daemon));
            }
            Err(error) => {
                let message = format!("cannot be read: {error}");
                return Err(Error::Configuration { path: path.to_owned(), line: None, message });
            }
        };
        Configuration::parse(&text, scope, daemon).map_err(|wrong| Error::Configuration {
            path: path.to_owned(),
            line: Some(wrong.line),
            message: wrong.message,
        })
    }

    fn parse(text: &str, scope: Scope, daemon: u32) -> Result<Configuration, Wrong> {
        file::parse(text, Configuration::plain(scope, daemon))
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

/// What is wrong with a file, and in which line.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: usize,
    message: String,
}
