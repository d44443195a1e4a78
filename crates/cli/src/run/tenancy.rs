//! What a command is among those that share its GPU, and the daemon that will seat it.
//!
//! The shim reads all of it from variables. A run inside another keeps what it finds there, so that a script under `ebb
//! run` is one tenant whatever it starts; an option about sharing makes it a tenant of its own, which has the outer one's
//! terms where it says nothing else.
//!
//! The daemon is asked before the command begins, for three reasons: it must be there when the shim looks for it, it
//! should stay for as long as the command lives, and the user should hear now what they will not get.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum as _;
use daemon::request::{Answer, Outlook, Request};
use daemon::{Error, Place, client, start};
use installation::runtime;
use model::{Class, Domain, Nanos};

use super::environment::Setting;
use super::name;
use crate::arguments::{OnDaemonLoss, TenancyOptions};

const SOCKET: &str = "EBB_SOCKET";
/// Where the machine's daemon will be, for which the user's own makes room.
const MACHINE_SOCKET: &str = "EBB_MACHINE_SOCKET";
const CLASS: &str = "EBB_CLASS";
const NAME: &str = "EBB_NAME";
const WEIGHT: &str = "EBB_WEIGHT";
const PRIORITY: &str = "EBB_PRIORITY";
const SLO: &str = "EBB_SLO_P99";
const LOSS: &str = "EBB_ON_DAEMON_LOSS";
const TENANT: &str = "EBB_TENANT";

const DOMAIN: &str = "EBB_DOMAIN";

/// All that the shim reads about it.
pub const VARIABLES: [&str; 10] =
    [SOCKET, MACHINE_SOCKET, CLASS, NAME, WEIGHT, PRIORITY, SLO, LOSS, TENANT, DOMAIN];

/// What came of it.
pub struct Joined {
    pub settings: Vec<Setting>,
    pub domain: Domain,
    /// What the user should know.
    pub remarks: Vec<String>,
    /// Where the daemon is that seats it.
    pub place: Option<Place>,
}

/// Who a command will be.
#[derive(Debug, PartialEq, Eq)]
struct Tenant {
    number: u64,
    name: String,
    class: Class,
    weight: u32,
    priority: u32,
    slo: Option<Nanos>,
    on_loss: OnDaemonLoss,
}

pub fn join(options: &TenancyOptions, command: &[OsString]) -> Result<Joined> {
    let tenant = Tenant::new(options, command, |name| std::env::var_os(name), random)?;
    let mut settings = tenant.settings();
    let mut remarks = tenant.idle_options(options);
    // Somebody has taken a name that is ours; that is nobody's slip.
    let odd = match runtime::choose() {
        Ok(chosen) => chosen.passed_over,
        Err(error) => vec![error],
    };
    remarks.extend(odd.iter().filter(|_| !runtime::is_named()).map(|odd| format!("not used: {odd}")));
    let mut domain = Domain::Isolated;
    let mut found = None;
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    match find(&tenant.request(), &program, &mut remarks) {
        Ok((place, answer)) => {
            settings.push((SOCKET, place.socket().into()));
            settings.extend(next_socket(&place));
            if let Some(outlook) = &answer.outlook {
                domain = outlook.domain.parse().unwrap_or_default();
                settings.extend(tenant.surroundings(domain, outlook.mps_pipes.as_deref()));
                remarks.extend(tenant.disappointment(outlook));
            }
            found = Some(place);
        }
        Err(error) if tenant.on_loss == OnDaemonLoss::Exit => {
            return Err(error)
                .context("there is no daemon, without which --on-daemon-loss exit does not begin");
        }
        Err(error) => {
            remarks.push(format!("no daemon, so the command does not take turns with others: {error}"));
            // One that comes later will be found there.
            settings
                .extend(runtime::folder().ok().map(|folder| (SOCKET, Place::at(&folder).socket().into())));
        }
    }
    Ok(Joined { settings, domain, remarks, place: found })
}

/// Where tenants of the user's own daemon go when the machine's comes. Who names a runtime folder wants the daemon in it and no
/// other.
fn next_socket(place: &Place) -> Option<Setting> {
    let machine = Place::machine();
    (!runtime::is_named() && *place != machine).then(|| (MACHINE_SOCKET, machine.socket().into()))
}

/// The daemon that answers first: that of the run around this one, the machine's, the user's own. The last is started if
/// none does.
fn find(request: &Request, program: &Path, remarks: &mut Vec<String>) -> Result<(Place, Answer), Error> {
    let around = std::env::var_os(SOCKET).filter(|_| !runtime::is_named());
    let around = around.and_then(|socket| Place::of_socket(&socket));
    let own = Place::own();
    let machine = (!runtime::is_named()).then(Place::machine);
    let is_own = |place: &Place| own.as_ref().is_ok_and(|own| own == place);
    for place in around.into_iter().chain(machine).filter(|place| !is_own(place)) {
        match client::ask(&place, request) {
            Ok(answer) => return Ok((place, answer)),
            Err(Error::NoDaemon { .. }) => {}
            Err(error) => remarks.push(format!("passed over: {error}")),
        }
    }
    let own = own?;
    let answer = start::ask_or_start(&own, program, request)?;
    Ok((own, answer))
}

impl Tenant {
    fn new(
        options: &TenancyOptions,
        command: &[OsString],
        variable: impl Fn(&str) -> Option<OsString>,
        random: impl FnOnce() -> Result<u64>,
    ) -> Result<Tenant> {
        let TenancyOptions {
            class,
            slo_p99,
            priority,
            weight,
            mem,
            name: wanted,
            on_daemon_loss,
            no_daemon: _,
        } = options;
        let changed = class.is_some()
            || slo_p99.is_some()
            || priority.is_some()
            || weight.is_some()
            || mem.is_some()
            || wanted.is_some();
        let outer =
            read(&variable, TENANT, |text| u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16))?;
        let kept = outer.filter(|_| !changed);
        let outer_name = read(&variable, NAME, |text| Some(text.to_owned()))?.filter(|_| kept.is_some());
        let slo = read(&variable, SLO, |text| text.parse().ok().filter(|nanos| *nanos > 0).map(Nanos))?;
        let loss = |text: &str| OnDaemonLoss::from_str(text, false).ok();
        Ok(Tenant {
            number: kept.map_or_else(random, Ok)?,
            name: wanted.clone().or(outer_name).unwrap_or_else(|| name::of(command)),
            class: either(*class, read(&variable, CLASS, parsed)?),
            weight: either_or(*weight, read(&variable, WEIGHT, |text| within(text, 1, 1000))?, 1),
            priority: either_or(*priority, read(&variable, PRIORITY, |text| within(text, 0, 9))?, 0),
            slo: slo_p99.or(slo),
            on_loss: on_daemon_loss.or(read(&variable, LOSS, loss)?).unwrap_or(OnDaemonLoss::Continue),
        })
    }

    fn settings(&self) -> Vec<Setting> {
        let on_loss = self.on_loss.to_possible_value().expect("no way of losing it is hidden");
        let mut settings: Vec<Setting> = vec![
            (TENANT, format!("{:016x}", self.number).into()),
            (NAME, self.name.clone().into()),
            (CLASS, self.class.to_string().into()),
            (WEIGHT, self.weight.to_string().into()),
            (PRIORITY, self.priority.to_string().into()),
            (LOSS, on_loss.get_name().into()),
        ];
        settings.extend(self.slo.map(|slo| (SLO, slo.0.to_string().into())));
        settings
    }

    fn request(&self) -> Request {
        Request::Attend {
            tenant: format!("{:016x}", self.number),
            class: self.class.to_string(),
            weight: self.weight,
            priority: self.priority,
        }
    }

    /// What the driver and the shim must know about the domain. In the shared one, the driver's own clients have priorities
    /// too: nought is normal and there is nothing above, so the others get less.
    fn surroundings(&self, domain: Domain, pipes: Option<&str>) -> Vec<Setting> {
        let mut settings: Vec<Setting> = vec![(DOMAIN, domain.to_string().into())];
        if let Some(pipes) = pipes.filter(|_| domain == Domain::Shared) {
            let priority = if self.class == Class::Latency { "0" } else { "1" };
            settings.push((mps::PIPES, pipes.into()));
            settings.push((mps::CLIENT_PRIORITY, priority.into()));
            // A best-effort tenant that is stopped has streams that wait; others of its streams must get past them.
            if self.class == Class::BestEffort && std::env::var_os(mps::CONNECTIONS).is_none() {
                settings.push((mps::CONNECTIONS, mps::BEST_EFFORT_CONNECTIONS.into()));
            }
        }
        settings
    }

    /// Which options say nothing for its class. The class is not taken from them: to be a latency tenant is more than an order or a
    /// figure, others make room for it, and a ceiling may forbid it.
    fn idle_options(&self, options: &TenancyOptions) -> Vec<String> {
        let idle = match self.class {
            Class::BestEffort => [
                options.slo_p99.map(|_| {
                    "--slo-p99 says nothing without --class latency: the command is best-effort, and its requests are not timed"
                }),
                options.priority.map(|_| {
                    "--priority says nothing without --class latency, except under the policy `fair`: the command is best-effort; \
                     --weight gives it a larger share"
                }),
            ],
            Class::Latency => [
                options.weight.map(|_| {
                    "--weight says nothing with --class latency: it is for best-effort tenants; --priority orders latency tenants"
                }),
                None,
            ],
        };
        idle.into_iter().flatten().map(str::to_owned).collect()
    }

    /// What to tell a user whose claims are above their ceiling.
    fn disappointment(&self, outlook: &Outlook) -> Option<String> {
        let Outlook { class, weight, priority, lowered, .. } = outlook;
        lowered.then(|| {
            format!(
                "you may not have all you ask for, so the command gets class {class}, weight {weight}, priority \
                 {priority}; who keeps the daemon's configuration can change that"
            )
        })
    }
}

/// A variable that is set must make sense, or somebody believes in something that is not so.
fn read<T>(
    variable: impl Fn(&str) -> Option<OsString>,
    name: &str,
    understand: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>> {
    let Some(value) = variable(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.to_str().and_then(understand) {
        Some(value) => Ok(Some(value)),
        None => {
            bail!("the variable {name} cannot be {}; unset it, or use the option instead", value.display())
        }
    }
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn within(text: &str, least: u32, most: u32) -> Option<u32> {
    text.parse().ok().filter(|number| (least..=most).contains(number))
}

fn either<T: Default>(first: Option<T>, second: Option<T>) -> T {
    first.or(second).unwrap_or_default()
}

fn either_or<T>(first: Option<T>, second: Option<T>, otherwise: T) -> T {
    first.or(second).unwrap_or(otherwise)
}

/// A number that no other tenant has.
fn random() -> Result<u64> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.context("cannot read /dev/urandom")?;
    Ok(u64::from_le_bytes(bytes).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: TenancyOptions = TenancyOptions {
        class: None,
        slo_p99: None,
        priority: None,
        weight: None,
        mem: None,
        name: None,
        on_daemon_loss: None,
        no_daemon: false,
    };

    fn tenant(options: &TenancyOptions, variables: &[(&str, &str)]) -> Result<Tenant> {
        let variable = |wanted: &str| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| OsString::from(value))
        };
        Tenant::new(options, &["python3".into(), "-u".into(), "/jobs/train.py".into()], variable, || Ok(7))
    }

    #[test]
    fn who_says_nothing_is_best_effort_and_called_after_its_command() {
        let tenant = tenant(&NOTHING, &[]).unwrap();
        assert_eq!((tenant.number, tenant.name.as_str(), tenant.class), (7, "train.py", Class::BestEffort));
        assert_eq!((tenant.weight, tenant.priority, tenant.slo), (1, 0, None));
        let settings = tenant.settings();
        let value =
            |wanted| settings.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.clone());
        assert_eq!(value(TENANT), Some("0000000000000007".into()));
        assert_eq!(value(CLASS), Some("best-effort".into()));
        assert_eq!(value(LOSS), Some("continue".into()));
        assert_eq!(value(SLO), None);
    }

    #[test]
    fn a_run_inside_another_is_the_same_tenant_until_it_says_otherwise() {
        let outer = [
            (TENANT, "00000000000000ff"),
            (NAME, "outer"),
            (CLASS, "latency"),
            (WEIGHT, "3"),
            (SLO, "20000000"),
            (LOSS, "block"),
        ];
        let same = tenant(&NOTHING, &outer).unwrap();
        assert_eq!((same.number, same.name.as_str(), same.class), (255, "outer", Class::Latency));
        assert_eq!((same.weight, same.slo), (3, Some(Nanos::from_millis(20))));
        let loss = TenancyOptions { on_daemon_loss: Some(OnDaemonLoss::Exit), ..NOTHING };
        let same = tenant(&loss, &outer).unwrap();
        assert_eq!((same.number, same.on_loss), (255, OnDaemonLoss::Exit));
        let options = TenancyOptions { class: Some(Class::BestEffort), ..NOTHING };
        let limit = TenancyOptions { mem: Some(model::Bytes(1 << 30)), ..NOTHING };
        assert_eq!(tenant(&limit, &outer).unwrap().number, 7, "a limit is one tenant's");
        let own = tenant(&options, &outer).unwrap();
        assert_eq!((own.number, own.name.as_str(), own.class), (7, "train.py", Class::BestEffort));
        assert_eq!((own.weight, own.on_loss), (3, OnDaemonLoss::Block));
    }

    #[test]
    fn variables_that_make_no_sense_are_named() {
        let wrong =
            [(TENANT, "12"), (CLASS, "fast"), (WEIGHT, "0"), (PRIORITY, "10"), (SLO, "20ms"), (LOSS, "cry")];
        for (name, value) in wrong {
            let message = tenant(&NOTHING, &[(name, value)]).unwrap_err().to_string();
            assert!(message.contains(name) && message.contains(value), "{message}");
            assert!(tenant(&NOTHING, &[(name, "")]).is_ok(), "an empty setting is none");
        }
    }

    #[test]
    fn in_the_shared_domain_a_command_is_a_client_of_the_daemons_mps() {
        let value = |class, domain, wanted: &str| {
            let options = TenancyOptions { class: Some(class), ..NOTHING };
            let settings = tenant(&options, &[]).unwrap().surroundings(domain, Some("/pipe"));
            settings
                .into_iter()
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| value.into_string().unwrap())
        };
        for (class, priority) in [(Class::Latency, "0"), (Class::BestEffort, "1")] {
            let value = |wanted| value(class, Domain::Shared, wanted);
            assert_eq!(value(DOMAIN).as_deref(), Some("shared"));
            assert_eq!(value("CUDA_MPS_PIPE_DIRECTORY").as_deref(), Some("/pipe"));
            assert_eq!(value("CUDA_MPS_CLIENT_PRIORITY").as_deref(), Some(priority));
        }
        let isolated = |wanted| value(Class::Latency, Domain::Isolated, wanted);
        assert_eq!(isolated(DOMAIN).as_deref(), Some("isolated"));
        assert_eq!(isolated("CUDA_MPS_PIPE_DIRECTORY"), None);
    }

    #[test]
    fn options_that_say_nothing_for_a_class_are_named() {
        let outer = [(CLASS, "latency"), (SLO, "20000000")];
        let said = |options: &TenancyOptions, variables| {
            tenant(options, variables).unwrap().idle_options(options).join("; ")
        };
        let slo = TenancyOptions { slo_p99: Some(Nanos::from_millis(20)), ..NOTHING };
        let priority = TenancyOptions { priority: Some(3), ..NOTHING };
        let weight = TenancyOptions { weight: Some(3), ..NOTHING };
        for (options, name) in [(&slo, "--slo-p99"), (&priority, "--priority")] {
            let said_of = said(options, &[]);
            assert!(said_of.starts_with(name) && said_of.contains("--class latency"), "{said_of}");
            assert_eq!(said(options, &outer), "", "the class may come from the run around it");
        }
        assert_eq!(said(&weight, &[]), "");
        assert!(said(&weight, &outer).starts_with("--weight says nothing with --class latency"));
        assert_eq!(tenant(&slo, &[]).unwrap().class, Class::BestEffort, "it is not implied");
        assert_eq!(said(&NOTHING, &outer), "");
    }

    #[test]
    fn what_is_not_granted_is_said() {
        let tenant = tenant(&NOTHING, &[]).unwrap();
        let mut outlook = Outlook {
            class: "best-effort".to_owned(),
            weight: 1,
            priority: 0,
            lowered: false,
            domain: "isolated".to_owned(),
            mps_pipes: None,
        };
        assert_eq!(tenant.disappointment(&outlook), None);
        outlook.lowered = true;
        assert!(tenant.disappointment(&outlook).unwrap().contains("class best-effort"));
    }
}
