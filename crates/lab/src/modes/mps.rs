//! NVIDIA's multi-process service: a control daemon of the campaign's own.
//!
//! Where somebody else's service runs, ours is not started. Two could be had side by side, but then the other's clients
//! are on the same GPU, unseen by us, and every figure would be theirs too; and a service that somebody depends on is
//! not to be put at risk by an experiment. The other modes do not meet it: they look for a daemon in an empty folder.

use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use model::Class;
use mps::{Access, Service};

use super::{Absence, Environment, Surroundings};

/// A service that a campaign or a daemon has just left is gone within this time.
const ON_ITS_WAY_OUT: Duration = Duration::from_secs(10);

/// The mode: a client of the daemon, perhaps with priorities.
pub struct Mps {
    pub daemon: Rc<Service>,
    /// Whether clients have priorities, and their streams.
    pub priorities: bool,
}

/// Whether the service can be had on this machine, as far as can be seen without starting it.
pub fn judge() -> Result<(), Absence> {
    let deadline = Instant::now() + ON_ITS_WAY_OUT;
    while let Some(foreign) = mps::foreign() {
        if Instant::now() > deadline {
            return Err(absence(mps::Error::Foreign(foreign)));
        }
        thread::sleep(Duration::from_millis(200));
    }
    mps::find().map(drop).map_err(absence)
}

/// `folder` is made, and goes with the daemon.
pub fn start(folder: &Path) -> Result<Service, Absence> {
    mps::find().and_then(|program| Service::start(&program, folder, Access::Owner)).map_err(absence)
}

fn absence(error: mps::Error) -> Absence {
    Absence(error.to_string())
}

impl Surroundings for Mps {
    fn environment(&self, class: Class) -> Environment {
        let variables = self.daemon.variables();
        let mut environment: Environment = variables.map(|(name, value)| (name.into(), Some(value))).to_vec();
        if self.priorities {
            let below_normal = if class == Class::Latency { "0" } else { "1" };
            environment.push((mps::CLIENT_PRIORITY.into(), Some(below_normal.into())));
        }
        environment
    }

    /// A client's fault is every client's fault, and may end the server.
    fn is_fragile(&self) -> bool {
        true
    }
}
