//! Another user, and what it cannot do. As root these try it as somebody else; others cannot, and say so.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use board::link::{self, Heard, Reason, Registration};
use board::{Error as Refusal, Gpu};
use common::{Actor, Daemon, GPU, folder, make_card, register, register_with, registration, wait_for};
use daemon::request::Request;
use daemon::{Error, Place, client};
use model::Class;
use rustix::fd::OwnedFd;
use rustix::fs::{Gid, Uid};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send,
    socket_with,
};
use rustix::process::Signal;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

/// A user who owns nothing, and is in no group but those it is given.
const STRANGER: u32 = 65_533;

#[test]
#[ignore = "another role of this program, not a test"]
fn role() {
    common::play();
}

/// Does something as another user. On Linux that is a property of a thread, which is what the kernel goes by when somebody
/// connects or opens a file.
fn as_stranger<T: Send>(groups: &[u32], act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let groups: Vec<Gid> = groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
            let (uid, gid) = (Uid::from_raw(STRANGER), Gid::from_raw(STRANGER));
            set_thread_groups(&groups).unwrap();
            set_thread_res_gid(gid, gid, gid).unwrap();
            set_thread_res_uid(uid, uid, uid).unwrap();
            act()
        });
        thread.join().unwrap()
    })
}

/// Whether this machine lets us be somebody else.
fn may_be_others() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can try what another user may do");
    }
    root
}

/// A group that is not root's: its name and its number.
fn some_group() -> (String, u32) {
    let all = fs::read_to_string("/etc/group").unwrap();
    let entry = |line: &str| {
        let mut parts = line.split(':');
        let (name, gid) = (parts.next()?.to_owned(), parts.nth(1)?.parse().ok()?);
        (gid != 0).then_some((name, gid))
    };
    all.lines().find_map(entry).expect("every system has a group besides root's")
}

/// The machine's daemon, in a folder that everybody can walk through, as /run/ebb is.
fn machine(configuration: &str) -> (tempfile::TempDir, Daemon) {
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = folder.path().join("ebb.toml");
    fs::write(&file, format!("schema_version = 1\n{configuration}")).unwrap();
    let settings =
        [("CONFIGURATION", file.to_str().unwrap()), ("EBB_MACHINE_DIR", folder.path().to_str().unwrap())];
    let daemon = Daemon::with(folder.path(), &settings);
    (folder, daemon)
}

/// One to which a group may connect.
fn machine_of_a_group() -> (tempfile::TempDir, Daemon, u32) {
    let (name, gid) = some_group();
    let (folder, daemon) = machine(&format!("[socket]\ngroup = \"{name}\"\n"));
    (folder, daemon, gid)
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

/// One line to the admin socket, and one back; nothing where the door is shut.
fn administer(place: &Place, line: &str) -> Option<String> {
    let mut stream = UnixStream::connect(place.admin_socket()).ok()?;
    stream.write_all(format!("{line}\n").as_bytes()).ok()?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).ok().filter(|length| *length > 0)?;
    Some(answer)
}

fn knock(place: &Place) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&socket, &SocketAddrUnix::new(place.socket()).unwrap()).ok().map(|()| socket)
}

/// Whether the other side has closed a connection that does not wait.
fn is_closed(socket: &OwnedFd) -> bool {
    matches!(
        recv(socket, &mut [0; 64][..], RecvFlags::DONTWAIT),
        Ok((0, _)) | Err(rustix::io::Errno::CONNRESET)
    )
}

#[test]
fn a_users_daemon_is_nobody_elses() {
    if !may_be_others() {
        return;
    }
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let place = &daemon.place;
    let tried = as_stranger(&[], || (client::report(place), register(place, &registration("thief")).is_ok()));
    assert!(matches!(tried.0, Err(Error::Forbidden { .. })), "{:?}", tried.0);
    assert!(!tried.1 && as_stranger(&[], || administer(place, "{\"verb\":\"status\"}")).is_none());
    // Its owner opens every door by mistake: still nobody is let in.
    for path in [folder.path().to_owned(), place.socket(), place.admin_socket()] {
        open_to_all(&path);
    }
    let tried = as_stranger(&[], || (client::report(place), register(place, &registration("thief")).is_ok()));
    assert!(tried.0.is_err() && !tried.1, "{:?}", tried.0);
    assert!(as_stranger(&[], || administer(place, "{\"verb\":\"status\"}")).is_none());
    let report = daemon.report();
    assert!(report.daemon.turned_away >= 3 && report.gpus.is_empty(), "{:?}", report.daemon);
    assert!(daemon.log().contains("turned away: this daemon is another user's"), "{}", daemon.log());
}

#[test]
fn on_a_machine_a_user_has_no_more_than_its_ceiling() {
    if !may_be_others() {
        return;
    }
    let (_folder, daemon, gid) = machine_of_a_group();
    let place = &daemon.place;
    let (_owner, _, _) = register(place, &registration("roots")).unwrap();
    let claim = Registration { class: Class::Latency, priority: 9, ..registration("greedy") };
    let (connection, _board, granted) = as_stranger(&[gid], || register(place, &claim)).unwrap();
    assert_eq!((granted.terms.class, granted.lowered), (Class::BestEffort, true));
    let greedy = daemon.processes().into_iter().find(|process| process.name == "greedy").unwrap();
    assert_eq!((greedy.user, greedy.class.as_str(), greedy.lowered), (STRANGER, "best-effort", true));
    // It cannot ask for more by other ways either.
    let attend = Request::Attend {
        tenant: "0000000000000001".to_owned(),
        class: "latency".to_owned(),
        weight: 1,
        priority: 0,
    };
    let outlook = as_stranger(&[gid], || client::ask(place, &attend)).unwrap().outlook.unwrap();
    assert!(outlook.lowered && outlook.class == "best-effort");
    let set = "{\"verb\":\"set\",\"target\":\"greedy\",\"class\":\"latency\"}";
    assert_eq!(as_stranger(&[gid], || administer(place, set)), None, "the admin socket is root's");
    open_to_all(&place.admin_socket());
    for line in
        [set, "{\"verb\":\"reload\"}", "{\"verb\":\"pause\",\"target\":\"roots\"}", "{\"verb\":\"status\"}"]
    {
        let answer = as_stranger(&[gid], || administer(place, line)).unwrap();
        assert!(answer.contains("only the daemon's own user"), "{answer}");
    }
    for request in [Request::Reload, Request::Pause { target: "roots".to_owned() }] {
        let error = as_stranger(&[gid], || client::ask(place, &request)).unwrap_err().to_string();
        assert!(error.contains("admin socket"), "{error}");
    }
    assert!(daemon.processes().iter().all(|process| process.class == "best-effort"));
    assert!(daemon.log().contains(&format!("of user {STRANGER} is no admin")), "{}", daemon.log());
    drop(connection);
}

#[test]
fn what_is_public_on_a_machine_is_public_to_those_who_may_connect_and_to_nobody_else() {
    if !may_be_others() {
        return;
    }
    let (_folder, daemon, gid) = machine_of_a_group();
    let place = &daemon.place;
    let (_owner, _, _) = register(place, &registration("roots")).unwrap();
    let seen = as_stranger(&[gid], || client::report(place)).unwrap();
    assert_eq!(seen.gpus[0].processes[0].name, "roots");
    assert!(as_stranger(&[gid], || client::configuration(place)).unwrap().len() == 1);
    // Without the group there is nothing to see, and the board is in no folder: only who is given it has it.
    let pid = daemon.actor.pid();
    let tried = as_stranger(&[], || {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).map(|_| ());
        let mapped = fs::read_dir(format!("/proc/{pid}/map_files")).map(|_| ());
        let memory = fs::File::open(format!("/proc/{pid}/mem")).map(|_| ());
        (client::report(place), register(place, &registration("x")).map(|_| ()), [files, mapped, memory])
    });
    assert!(matches!(tried.0, Err(Error::Forbidden { .. })) && tried.1.is_err(), "{tried:?}");
    assert!(tried.2.iter().all(Result::is_err), "{tried:?}");
}

#[test]
fn a_file_of_a_stranger_does_not_configure_the_machine() {
    if !may_be_others() {
        return;
    }
    let (folder, daemon) = machine("");
    let inside = folder.path().join("conf.d");
    fs::create_dir(&inside).unwrap();
    let file = inside.join("99-mine.toml");
    fs::write(&file, "schema_version = 1\n[[ceiling]]\neveryone = true\nclass = \"latency\"\n").unwrap();
    std::os::unix::fs::chown(&file, Some(STRANGER), None).unwrap();
    let refused = client::reload(&daemon.place).unwrap_err().to_string();
    assert!(refused.contains("99-mine.toml: may be changed by users who are no admins"), "{refused}");
    assert_eq!(daemon.report().daemon.config_generation, 1);
    std::os::unix::fs::chown(&file, Some(0), None).unwrap();
    assert_eq!(client::reload(&daemon.place).unwrap().config_generation, 2);
}

#[test]
fn a_thousand_half_open_connections_of_one_user_are_bounded_and_others_are_served() {
    if !may_be_others() {
        return;
    }
    let (_folder, daemon, gid) = machine_of_a_group();
    let place = &daemon.place;
    let (_owner, board, granted) = register(place, &registration("seated")).unwrap();
    let mut half_open = Vec::new();
    let turned_away = || daemon.report().daemon.turned_away;
    // As many at once as the machine can make, and a thousand in all; most find the door closed again, which is counted.
    wait_for("more than one user may have", || {
        as_stranger(&[gid], || half_open.extend((0..1_000).map_while(|_| knock(place))));
        half_open.len() >= 1_000 && turned_away() > 0
    });
    // Others are served, newcomers and those who were there, while the thousand are.
    assert!(client::report(place).is_ok());
    let (_another, _, _) = register(place, &registration("newcomer")).unwrap();
    assert!(board.sit(granted.place).unwrap().is_mine());
    assert!(daemon.log().contains(&format!("user {STRANGER} was turned away")), "{}", daemon.log());
    wait_for("all are given up", || half_open.iter().all(is_closed));
    let again = as_stranger(&[gid], || register(place, &registration("sorry")).map(|_| ()));
    assert!(again.is_ok(), "{again:?}");
}

#[test]
fn messages_that_are_none_are_counted_and_end_their_own_connection() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let (_bystander, board, granted) = register(&daemon.place, &registration("bystander")).unwrap();
    for message in [&[0_u8; 4097][..], &[0xff; 300], b"{\"verb\":\"dance\"}", &[b'{'; 60_000]] {
        let socket = knock(&daemon.place).unwrap();
        send(&socket, message, SendFlags::NOSIGNAL).unwrap();
        wait_for("its end", || {
            let heard = recv(&socket, &mut [0; 4096][..], RecvFlags::DONTWAIT);
            matches!(heard, Ok((0, _)) | Err(rustix::io::Errno::CONNRESET))
        });
    }
    let report = daemon.report();
    assert_eq!((report.daemon.malformed, report.daemon.refused), (4, 1), "{:?}", report.daemon);
    assert!(report.sentences.iter().any(|sentence| sentence.starts_with("4 messages were not understood")));
    let said = daemon.log();
    assert!(said.contains("a message that is too long") && said.contains("what is no request"), "{said}");
    assert!(board.sit(granted.place).unwrap().is_mine());
}

#[test]
fn slow_writers_hold_nobody_up() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let mut slow: Vec<_> =
        (0..20).map(|_| UnixStream::connect(daemon.place.admin_socket()).unwrap()).collect();
    let line = b"{\"verb\":\"pause\",\"target\":\"nobody\"}\n";
    for byte in line {
        for stream in &mut slow {
            stream.write_all(&[*byte]).unwrap();
        }
        let answer = client::change(&daemon.place, &Request::Pause { target: "x".to_owned() });
        assert!(answer.unwrap_err().to_string().contains("no tenant x"));
    }
    for stream in slow {
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        assert!(answer.contains("no tenant nobody"), "{answer}");
    }
}

#[test]
fn a_board_cannot_be_made_smaller_or_larger_by_who_has_it() {
    let (_, file) = board::Board::create(common::GPU, &board::Settings::default()).unwrap();
    let size = rustix::fs::fstat(&file).unwrap().st_size.unsigned_abs();
    for wanted in [0, size - 1, size + 1] {
        assert_eq!(rustix::fs::ftruncate(&file, wanted), Err(rustix::io::Errno::PERM));
    }
}

#[test]
fn a_tenant_that_writes_anything_over_its_board_harms_no_other_gpu_and_is_told_of() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let elsewhere =
        Registration { gpu: board::Gpu([0xcd; 16]), class: Class::Latency, ..registration("elsewhere") };
    let (_far, far, seat) = register(&daemon.place, &elsewhere).unwrap();
    let (near, _, _) = register(&daemon.place, &registration("beside")).unwrap();
    let mut liar = Actor::start(folder.path(), "liar", &[]);
    liar.said("seated");
    let tampered = || daemon.report().gpus.iter().map(|gpu| gpu.tampered).max().unwrap();
    // It answers again and again while somebody writes as fast as it can.
    wait_for("tampering to be found many times", || tampered() >= 20);
    let report = daemon.report();
    assert!(report.sentences.iter().any(|sentence| sentence.contains("writes over its board")), "{report:?}");
    assert!(daemon.log().contains("was written over and put back"), "{}", daemon.log());
    assert!(report.gpus.iter().any(|gpu| gpu.tampered == 0), "the other GPU's is as it was");
    let seat = far.sit(seat.place).unwrap();
    assert!(seat.is_mine() && seat.terms().class == Class::Latency);
    // What it says of itself is from the books, whatever stands on the board.
    let liars = report.gpus.iter().flat_map(|gpu| &gpu.processes).filter(|process| process.pid == liar.pid());
    assert!(liars.into_iter().all(|process| process.name == "liar" && process.class == "best-effort"));
    liar.signal(Signal::KILL);
    liar.child.wait().unwrap();
    drop(near);
    // And then the GPU is as good as before.
    wait_for("a seat", || register(&daemon.place, &registration("after")).is_ok());
    let (_after, board, granted) = register(&daemon.place, &registration("after")).unwrap();
    let process = daemon.process(std::process::id()).unwrap();
    assert!(
        board.sit(granted.place).unwrap().is_mine() && process.user == rustix::process::geteuid().as_raw()
    );
}

/// Opens a file as its mode allows, for reading and writing or for reading only.
fn open(path: &Path, write: bool) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().read(true).write(write).open(path)
}

#[test]
fn a_user_is_seated_at_no_gpu_that_it_cannot_open() {
    if !may_be_others() {
        return;
    }
    let (folder, daemon, gid) = machine_of_a_group();
    let place = &daemon.place;
    let card = make_card(folder.path(), GPU, 0o600);
    let (_owner, _, _) = register(place, &registration("roots")).unwrap();
    let claim = registration("thief");
    let ask = |shown: Option<&fs::File>| register_with(place, &claim, shown).map(drop).err();
    let no_access = Some(Refusal::Refused(Reason::NoAccess));
    as_stranger(&[gid], || {
        assert!(open(&card, false).is_err());
        let other = tempfile::tempfile().unwrap();
        assert_eq!((ask(None), ask(Some(&other))), (no_access, no_access));
    });
    fs::set_permissions(&card, fs::Permissions::from_mode(0o644)).unwrap();
    as_stranger(&[gid], || assert_eq!(ask(Some(&open(&card, false).unwrap())), no_access));
    fs::set_permissions(&card, fs::Permissions::from_mode(0o666)).unwrap();
    let (_seat, _, _) = as_stranger(&[gid], || {
        let shown = open(&card, true).unwrap();
        register_with(place, &registration("theirs"), Some(&shown)).unwrap()
    });
    // Names that somebody has made up are no GPUs of this machine.
    let unknown = Some(Refusal::Refused(Reason::UnknownGpu));
    as_stranger(&[gid], || {
        for number in 0..80 {
            let invented = Registration { gpu: Gpu([number; 16]), ..registration("inventor") };
            assert_eq!(register(place, &invented).map(drop).err(), unknown);
        }
    });
    let report = daemon.report();
    let [gpu] = &report.gpus[..] else { panic!("{report:?}") };
    assert_eq!((gpu.user, gpu.processes.len()), (None, 2));
    assert!(
        daemon.log().contains("was refused: this process has not shown that it may use"),
        "{}",
        daemon.log()
    );
}

#[test]
fn where_no_gpu_is_known_users_do_not_meet_and_one_leaves_boards_to_others() {
    if !may_be_others() {
        return;
    }
    let (_folder, daemon, gid) = machine_of_a_group();
    let place = &daemon.place;
    let (_owner, _, _) = register(place, &registration("roots")).unwrap();
    let held: Vec<_> = as_stranger(&[gid], || {
        let at = |number: u8| Registration { gpu: Gpu([number; 16]), ..registration("inventor") };
        (100..180).filter_map(|number| register(place, &at(number)).ok()).collect()
    });
    assert_eq!(held.len(), 16);
    let report = daemon.report();
    let of = |user: u32| report.gpus.iter().filter(|gpu| gpu.user == Some(user)).count();
    assert_eq!((of(0), of(STRANGER), report.gpus.len()), (1, 16, 17));
    let later = Registration { gpu: Gpu([0xee; 16]), ..registration("later") };
    assert!(register(place, &later).is_ok());
}

#[test]
fn users_have_boards_of_their_own_where_that_is_configured() {
    if !may_be_others() {
        return;
    }
    let (name, gid) = some_group();
    let (folder, daemon) = machine(&format!("board_per_user = true\n[socket]\ngroup = \"{name}\"\n"));
    let card = make_card(folder.path(), GPU, 0o666);
    let seat = || {
        let shown = open(&card, true).unwrap();
        register_with(&daemon.place, &registration("x"), Some(&shown)).unwrap()
    };
    let (_ours, here, _) = seat();
    let (_theirs, there, granted) = as_stranger(&[gid], seat);
    assert!(here.sit(granted.place).is_ok_and(|seat| seat.place() == granted.place), "both are the first");
    assert_eq!((here.seats().count(), there.seats().count()), (1, 1), "neither sees the other");
    let users: Vec<_> = daemon.report().gpus.iter().map(|gpu| gpu.user).collect();
    assert_eq!(users, [Some(0), Some(STRANGER)]);
}

#[test]
fn a_tenant_that_does_not_read_its_terms_holds_nobody_up_and_hears_the_newest_later() {
    let folder = folder();
    let daemon = Daemon::start(folder.path());
    let (deaf, _board, _) = register(&daemon.place, &registration("deaf")).unwrap();
    let set = |weight: u32| {
        let request = Request::Set {
            target: "deaf".to_owned(),
            class: None,
            weight: Some(weight),
            priority: None,
            slo_p99_ns: None,
            memory_limit_bytes: None,
        };
        client::change(&daemon.place, &request).unwrap();
    };
    // More than a socket has room for.
    (0..900).for_each(|round| set(1 + round % 1_000));
    assert!(client::answers(&daemon.place) && register(&daemon.place, &registration("other")).is_ok());
    let mut last = None;
    wait_for("the newest terms", || {
        while let Heard::NewTerms(terms) = link::hear(deaf.as_fd()) {
            last = Some(terms.weight);
        }
        last == Some(900)
    });
    assert_eq!(daemon.processes()[0].weight, 900);
}
