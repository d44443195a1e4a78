//! A daemon in a process of its own, and those who come to it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::time::Duration;

use board::link::{Reason, Registration};
use common::{Actor, Daemon, folder, register, registration, wait_for};
use daemon::request::Request;
use daemon::{Error, Place, client};
use model::{Bytes, Class, Kind, Nanos};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::{Pid, Signal, kill_process};

#[test]
#[ignore = "another role of this program, not a test"]
fn role() {
    common::play();
}

#[test]
fn a_tenant_is_seated_reported_and_forgotten_with_its_connection() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let mode = |path: std::path::PathBuf| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!((mode(daemon.place.socket()), mode(daemon.place.admin_socket())), (0o660, 0o600));
    let claim = Registration { class: Class::Latency, priority: 3, ..registration("search") };
    let (connection, board, granted) = register(&daemon.place, &claim).unwrap();
    assert_eq!((granted.terms.class, granted.lowered), (Class::Latency, false));
    let seat = board.sit(granted.place).unwrap();
    assert_eq!((seat.terms().class, seat.terms().priority), (Class::Latency, 3));
    let process = daemon.process(std::process::id()).unwrap();
    assert_eq!((process.name.as_str(), process.class.as_str()), ("search", "latency"));
    assert_eq!(process.user, rustix::process::geteuid().as_raw());
    assert_eq!(daemon.report().gpus[0].uuid, "GPU-abababab-abab-abab-abab-abababababab");
    drop(connection);
    wait_for("the seat is free", || daemon.processes().is_empty());
    assert!(!seat.is_mine());
}

#[test]
fn ceilings_lower_what_is_claimed() {
    let folder = folder();
    let rule = "schema_version = 1\n[[ceiling]]\neveryone = true\nclass = \"best-effort\"\nweight = 5\n";
    let daemon = Daemon::configured(folder.path(), rule);
    let claim = Registration { class: Class::Latency, weight: 9, ..registration("greedy") };
    let (_connection, board, granted) = register(&daemon.place, &claim).unwrap();
    assert_eq!((granted.terms.class, granted.lowered), (Class::BestEffort, true));
    assert_eq!(board.sit(granted.place).unwrap().terms().weight, 5);
    let process = daemon.process(std::process::id()).unwrap();
    assert!(process.lowered && process.asked.class == "latency" && process.asked.weight == 9);
    assert!(daemon.report().sentences[0].contains("more than its user may have"));
    let attend = Request::Attend {
        tenant: "00000000000000aa".to_owned(),
        class: "latency".to_owned(),
        weight: 1,
        priority: 0,
    };
    let outlook = client::ask(&daemon.place, &attend).unwrap().outlook.unwrap();
    assert!(outlook.lowered && outlook.class == "best-effort" && outlook.weight == 1);
}

#[test]
fn a_process_that_is_killed_loses_its_seat() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let mut victim = Actor::start(folder.path(), "tenant", &[]);
    victim.said("seated");
    assert!(daemon.process(victim.pid()).is_some());
    victim.signal(Signal::KILL);
    wait_for("the seat is free", || daemon.process(victim.pid()).is_none());
}

#[test]
fn a_connection_that_a_child_keeps_does_not_keep_the_seat() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let mut victim = Actor::start(folder.path(), "parent", &[]);
    let child: i32 = victim.said("seated").parse().unwrap();
    victim.signal(Signal::KILL);
    victim.child.wait().unwrap();
    wait_for("the seat is free", || daemon.processes().is_empty());
    kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn tenants_outlive_their_daemon_and_find_the_next_one() {
    let folder = folder();
    let mut daemon = Daemon::start(folder.path());
    let (connection, board, granted) = register(&daemon.place, &registration("faithful")).unwrap();
    let seat = board.sit(granted.place).unwrap();
    daemon.actor.signal(Signal::KILL);
    daemon.actor.child.wait().unwrap();
    assert!(daemon.place.socket().exists(), "a killed daemon leaves its socket");
    assert!(seat.is_mine(), "the board is enough");
    let next = Daemon::start(folder.path());
    assert!(next.processes().is_empty());
    let (_connection, new, again) = register(&next.place, &registration("faithful")).unwrap();
    assert_ne!(again.generation, granted.generation);
    assert!(new.sit(again.place).is_ok() && next.processes().len() == 1);
    drop(connection);
    assert!(seat.is_mine(), "the old board is nobody's but ours");
}

#[test]
fn a_service_manager_opens_its_sockets_and_hears_how_it_is() {
    let folder = folder();
    let place = Place::at(folder.path());
    let path = folder.path().join("notify");
    let ear = UnixDatagram::bind(&path).unwrap();
    ear.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let heard = |wanted: &str| {
        let mut words = [0; 256];
        loop {
            let length = ear.recv(&mut words).unwrap();
            if words[..length].starts_with(wanted.as_bytes()) {
                return;
            }
        }
    };
    let tenants = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&tenants, &SocketAddrUnix::new(place.socket()).unwrap()).unwrap();
    rustix::net::listen(&tenants, 8).unwrap();
    let admins = UnixListener::bind(place.admin_socket()).unwrap();
    let settings = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "60000000")];
    let mut daemon = Actor::activated(folder.path(), &settings, [tenants, admins.into()]);
    heard("READY=1");
    let (_connection, _, granted) = register(&place, &registration("early")).unwrap();
    assert!(client::report(&place).is_ok());
    let pause = Request::Pause { target: "early".to_owned() };
    assert_eq!(client::change(&place, &pause).unwrap().processes, [std::process::id()]);
    heard("WATCHDOG=1");
    daemon.signal(Signal::HUP);
    heard("RELOADING=1");
    heard("READY=1");
    daemon.signal(Signal::TERM);
    heard("STOPPING=1");
    assert_eq!(daemon.said("outcome"), "Served");
    assert!(place.socket().exists() && place.admin_socket().exists(), "they are the manager's");
    assert!(granted.generation != 0);
}

#[test]
fn it_ends_when_told_and_leaves_no_socket() {
    for signal in [Signal::TERM, Signal::INT] {
        let folder = folder();
        let mut daemon = Daemon::start(folder.path());
        daemon.actor.signal(signal);
        assert_eq!(daemon.actor.said("outcome"), "Served");
        assert!(!daemon.place.socket().exists() && !daemon.place.admin_socket().exists());
        assert!(matches!(client::report(&daemon.place), Err(Error::NoDaemon { .. })));
    }
}

#[test]
fn there_is_one_to_a_folder() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let mut second = Actor::start(folder.path(), "daemon", &[]);
    assert!(second.said("refused").contains("runs already"));
    let mut patient = Actor::start(folder.path(), "daemon", &[("PATIENT", "1")]);
    assert_eq!(patient.said("outcome"), "Another");
    assert!(client::answers(&daemon.place));
}

#[test]
fn what_is_not_a_socket_is_not_replaced() {
    let folder = folder();
    fs::write(folder.path().join("ebb.sock"), "precious").unwrap();
    let mut actor = Actor::start(folder.path(), "daemon", &[]);
    assert!(actor.said("refused").contains("is no socket"));
    assert_eq!(fs::read_to_string(folder.path().join("ebb.sock")).unwrap(), "precious");
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut actor = Actor::start(folder.path(), "daemon", &[]);
    assert!(actor.said("refused").contains("chmod 700"));
}

#[test]
fn a_wrong_configuration_is_refused_at_first_and_ignored_later() {
    let folder = folder();
    let file = folder.path().join("ebb.toml");
    let write =
        |quantum: &str| fs::write(&file, format!("schema_version = 1\n[token]\nquantum = \"{quantum}\"\n"));
    write("none").unwrap();
    let settings = [("CONFIGURATION", file.to_str().unwrap())];
    let mut actor = Actor::start(folder.path(), "daemon", &settings);
    let refused = actor.said("refused");
    assert!(refused.contains("ebb.toml:3: `none` is no time"), "{refused}");
    write("40ms").unwrap();
    let daemon = Daemon::with(folder.path(), &settings);
    let (_connection, board, _) = register(&daemon.place, &registration("any")).unwrap();
    let quantum = || board.settings().quantum.0 / 1_000_000;
    assert_eq!(quantum(), 40);
    write("50ms").unwrap();
    daemon.actor.signal(Signal::HUP);
    wait_for("the new quantum", || quantum() == 50);
    write("none").unwrap();
    daemon.actor.signal(Signal::HUP);
    wait_for("a remark", || daemon.report().sentences.iter().any(|sentence| sentence.contains("last good")));
    assert_eq!(quantum(), 50);
    write("60ms").unwrap();
    daemon.actor.signal(Signal::HUP);
    wait_for("the newest quantum", || quantum() == 60);
    assert!(daemon.report().sentences.is_empty());
}

#[test]
fn the_policy_changes_while_tenants_run_and_a_contradiction_changes_nothing() {
    let folder = folder();
    let write = |policy: &str| {
        fs::create_dir_all(folder.path().join("ebb")).unwrap();
        let text = format!("schema_version = 1\n[policy]\n{policy}\n");
        fs::write(folder.path().join("ebb/ebb.toml"), text).unwrap();
    };
    write("kind = \"strict\"");
    let daemon = Daemon::start(folder.path());
    let (_connection, board, _) = register(&daemon.place, &registration("tenant")).unwrap();
    assert_eq!(board.dials().kind, Kind::Strict);
    write("kind = \"gaps\"\nthreshold = \"20us\"");
    daemon.actor.signal(Signal::HUP);
    wait_for("the new policy", || board.dials().kind == Kind::Gaps);
    assert_eq!(board.dials().threshold, Nanos::from_micros(20));
    write("kind = \"strict\"\nbeside = \"20us\"");
    daemon.actor.signal(Signal::HUP);
    let said = |words: &str| daemon.report().sentences.iter().any(|sentence| sentence.contains(words));
    wait_for("a remark", || said("ebb.toml:4: "));
    assert!(said("beside means nothing to strict") && board.dials().kind == Kind::Gaps);
    write("kind = \"fair\"");
    daemon.actor.signal(Signal::HUP);
    wait_for("the newest policy", || board.dials().kind == Kind::Fair);
    assert_eq!(daemon.report().gpus[0].policy.as_ref().unwrap().kind, "fair");
}

#[test]
fn it_ends_without_tenants_and_stays_for_those_who_may_come() {
    let folder = folder();
    let mut daemon = Daemon::with(folder.path(), &[("IDLE", "1500")]);
    let longer = Duration::from_millis(1800);
    let (connection, _, _) = register(&daemon.place, &registration("tenant")).unwrap();
    std::thread::sleep(longer);
    assert!(!daemon.actor.has_ended(), "it has a tenant");
    let mut guest = Actor::start(folder.path(), "guest", &[]);
    assert_eq!(guest.said("seated"), "true");
    drop(connection);
    std::thread::sleep(longer);
    assert!(!daemon.actor.has_ended(), "the guest may still become a tenant");
    guest.signal(Signal::KILL);
    assert_eq!(daemon.actor.said("outcome"), "Served");
    assert!(!daemon.place.socket().exists());
}

#[test]
fn one_that_nobody_can_find_ends() {
    let folder = folder();
    let mut daemon = Daemon::with(folder.path(), &[("IDLE", "600000")]);
    fs::remove_file(daemon.place.socket()).unwrap();
    assert_eq!(daemon.actor.said("outcome"), "Served");
}

#[test]
fn another_version_is_told_so() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let other = Registration { version: board::VERSION + 1, ..registration("newer") };
    let refused = register(&daemon.place, &other).map(|_| ()).unwrap_err();
    assert_eq!(refused, board::Error::Refused(Reason::Version));
    assert_eq!(daemon.report().daemon.refused, 1);
}

#[test]
fn admins_change_tenants_and_nobody_else_does() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let (_connection, board, granted) = register(&daemon.place, &registration("train")).unwrap();
    let seat = board.sit(granted.place).unwrap();
    let bell = seat.bell();
    let pause = Request::Pause { target: "train".to_owned() };
    let changed = client::change(&daemon.place, &pause).unwrap();
    assert_eq!((changed.name.as_str(), changed.processes), ("train", vec![std::process::id()]));
    assert!(seat.terms().paused && seat.bell() != bell);
    client::change(&daemon.place, &Request::Resume { target: std::process::id().to_string() }).unwrap();
    assert!(!seat.terms().paused);
    let set = |target: &str, weight| Request::Set {
        target: target.to_owned(),
        class: Some("latency".to_owned()),
        weight: Some(weight),
        priority: Some(2),
        slo_p99_ns: Some(20_000_000),
        memory_limit_bytes: Some(1 << 30),
    };
    client::change(&daemon.place, &set("0000000000000001", 7)).unwrap();
    let terms = seat.terms();
    assert_eq!((terms.class, terms.weight, terms.priority), (Class::Latency, 7, 2));
    assert_eq!(terms.memory, Some(Bytes(1 << 30)));
    for (request, reason) in [(set("train", 0), "weight"), (set("nobody", 1), "no tenant nobody")] {
        let error = client::change(&daemon.place, &request).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    // Where tenants come in, nothing is changed.
    let error = client::ask(&daemon.place, &pause).unwrap_err().to_string();
    assert!(error.contains("admin socket"), "{error}");
    assert_eq!(seat.terms(), terms);
}

/// A daemon with a folder for its configuration.
fn configured(main: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    fs::create_dir_all(folder.path().join("ebb/conf.d")).unwrap();
    write(&folder, "ebb.toml", main);
    let daemon = Daemon::start(folder.path());
    (folder, daemon)
}

/// Replaces a file of the configuration, as editors do.
fn write(folder: &tempfile::TempDir, name: &str, text: &str) {
    let path = folder.path().join("ebb").join(name);
    fs::write(path.with_extension("new"), format!("schema_version = 1\n{text}\n")).unwrap();
    fs::rename(path.with_extension("new"), path).unwrap();
}

#[test]
fn files_that_change_are_read_without_a_word_and_a_wrong_one_changes_nothing() {
    let (folder, daemon) = configured("[token]\nquantum = \"40ms\"");
    let (_connection, board, _) = register(&daemon.place, &registration("any")).unwrap();
    let quantum = || board.settings().quantum.0 / 1_000_000;
    let first = daemon.report().daemon;
    assert_eq!((first.config_generation, first.config_ok, first.config_files.len()), (1, true, 1));
    write(&folder, "conf.d/10-site.toml", "[token]\nquantum = \"30ms\"");
    wait_for("the folder's file", || quantum() == 30);
    let second = daemon.report().daemon;
    assert_eq!((second.config_generation, second.config_files.len()), (2, 2));
    assert!(second.config_loaded_ns > first.config_loaded_ns);
    write(&folder, "conf.d/20-more.toml", "[token]\nquantum = \"none\"\nidel = \"1ms\"");
    wait_for("an error", || !daemon.report().daemon.config_ok);
    let wrong = daemon.report();
    let error = wrong.daemon.config_error.unwrap();
    assert!(error.contains("20-more.toml:3: ") && error.contains("20-more.toml:4: unknown key"), "{error}");
    assert!(wrong.sentences[0].contains("last good"), "{:?}", wrong.sentences);
    assert_eq!((wrong.daemon.config_generation, quantum()), (2, 30));
    fs::remove_file(folder.path().join("ebb/conf.d/20-more.toml")).unwrap();
    wait_for("the error to go", || daemon.report().daemon.config_ok);
    assert_eq!(daemon.report().daemon.config_generation, 2, "it is what it was");
    fs::remove_dir_all(folder.path().join("ebb/conf.d")).unwrap();
    wait_for("the file alone", || quantum() == 40);
    assert_eq!(daemon.report().daemon.config_generation, 3);
}

#[test]
fn a_configuration_that_did_not_exist_is_found_when_it_does() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    assert!(daemon.report().daemon.config_files.is_empty());
    fs::create_dir(folder.path().join("ebb")).unwrap();
    write(&folder, "ebb.toml", "[policy]\nkind = \"fair\"");
    wait_for("the file", || daemon.report().daemon.config_generation == 2);
    let entries = client::configuration(&daemon.place).unwrap();
    let (key, value) = (entries[0].key.as_str(), entries[0].value.as_str());
    assert_eq!((key, value, entries.len()), ("policy.kind", "fair", 1));
    assert!(entries[0].from.as_ref().unwrap().ends_with("ebb/ebb.toml:3"), "{entries:?}");
}

#[test]
fn an_admin_has_the_configuration_read_and_hears_what_came_of_it() {
    let (folder, daemon) = configured("[token]\nquantum = \"40ms\"");
    let again = client::reload(&daemon.place).unwrap();
    assert_eq!((again.config_generation, again.changed), (1, false));
    write(&folder, "conf.d/50-apply.toml", "[token]\nquantum = \"30ms\"");
    assert_eq!(client::reload(&daemon.place).unwrap().config_generation, 2);
    write(&folder, "conf.d/50-apply.toml", "[token]\nquantum = \"none\"");
    let refused = client::reload(&daemon.place).unwrap_err().to_string();
    assert!(refused.contains("50-apply.toml:3: `none` is no time"), "{refused}");
    // Not where tenants come in.
    let refused = client::ask(&daemon.place, &Request::Reload).unwrap_err().to_string();
    assert!(refused.contains("admin socket"), "{refused}");
}
