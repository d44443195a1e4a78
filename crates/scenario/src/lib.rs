//! Scenario files and suites.
//!
//! A *scenario* says who shares a GPU: tenants, each with a class, a workload, for latency tenants an arrival process and
//! an SLO; and how that is measured: for how long, how often, in which *modes*. It is a TOML file, and a *suite* is a folder
//! of them; the suites of the field's own papers are built in. `docs/scenarios.md` has every key.
//!
//! A file is read in two steps: first its words (`file`), where an unknown key is an error, then what they mean together,
//! where every mistake is gathered with its line. What comes out is complete: all defaults filled in, all names known,
//! every trace read. [`profile`] has what is known of the workloads themselves: the kernels that were seen on a card.
//! Nothing here measures, starts or knows a GPU; the arrivals are numbers that depend on a seed.
//!
//! ```
//! let text = r#"
//!     schema = 1
//!     title = "Short requests beside long grids"
//!     duration = "2s"
//!     warmup = "500ms"
//!
//!     [[tenant]]
//!     name = "requests"
//!     class = "latency"
//!     workload = { model = "burst", launches = 10, blocks = 132, block = "20us" }
//!     arrival = { process = "poisson", rate = 100 }
//!
//!     [[tenant]]
//!     name = "grids"
//!     class = "best-effort"
//!     workload = { model = "grid", blocks = 1056, block = "1ms" }
//! "#;
//! let scenarios = scenario::parse(text, &scenario::Origin::text("short.toml")).unwrap();
//! let requests = &scenarios[0].tenants[0];
//! let seed = scenarios[0].arrival_seed(requests, 0);
//! let due = requests.arrival.due(seed, requests.arrival.rate(0.0), scenarios[0].until()).unwrap();
//! assert!((150..350).contains(&due.len()));
//! ```

#![forbid(unsafe_code)]

mod arrival;
mod builtin;
mod error;
mod file;
mod mode;
mod only;
pub mod profile;
mod scenario;
mod slo;
mod span;
mod suite;
mod workload;

pub use arrival::{Arrival, Draw, Pace, Process, Trace, stream_seed};
pub use error::{Error, Mistake};
pub use file::{Origin, SCHEMA, parse};
pub use mode::{Device, Mode};
pub use scenario::{Scenario, Tenant, least_time};
pub use slo::Slo;
pub use span::written;
pub use suite::Suite;
pub use workload::{Burst, Form, Grid, MODELS, Model, Task, Torch, Worker, Workload};
