//! What tests of programs under requests have in common: a program of the test's own under `ebb run`, and a latency tenant that only says
//! that it has work.

use std::ffi::CString;
use std::io::{BufRead as _, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use board::link::{self, Registration};
use board::{Gpu, Label, Outlook, Seat};
use model::{Class, Domain, Nanos};

use crate::common::runtime::{PATIENCE, Runtime};

/// What a program says begins so; the test harness prints lines of its own.
pub const MARK: &str = "> ";

/// The ignored test `program` of the calling test program, at work. Dropped, it is ended.
pub struct Program {
    child: Child,
    said: Receiver<String>,
}

impl Program {
    /// With these variables.
    pub fn start(runtime: &Runtime, variables: &[(&str, &str)]) -> Program {
        let mut run = runtime.command();
        run.args(["run", "--device", "soft", "--"]).arg(std::env::current_exe().unwrap());
        run.args(["program", "--exact", "--ignored", "--nocapture"]).envs(variables.iter().copied());
        let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (say, said) = channel();
        std::thread::spawn(move || {
            let marked = |line: String| line.split_once(MARK).map(|(_, said)| said.to_owned());
            lines.map_while(Result::ok).filter_map(marked).try_for_each(|said| say.send(said))
        });
        Program { child, said }
    }

    /// Tells it that it has done enough.
    pub fn end(&mut self) {
        drop(self.child.stdin.take());
    }

    /// What it says next, if it says anything in the time that everything has.
    pub fn hear(&self) -> Option<String> {
        self.said.recv_timeout(PATIENCE).ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A latency tenant that has work when it is told to, and never any on the GPU. It raises no stop word; who is to be stopped sees on the board
/// that it has work.
pub struct Server {
    seat: Seat,
    _connection: OwnedFd,
}

impl Server {
    pub fn sit(runtime: &Runtime, domain: Domain) -> Server {
        let socket = CString::new(runtime.path().join("ebb.sock").as_os_str().as_bytes()).unwrap();
        let name = Label::new(b"server");
        let registration =
            Registration { name, class: Class::Latency, ..Registration::new(gpu(runtime), 99) };
        let (connection, board, granted) =
            link::register(&socket, &registration, None, Nanos::from_millis(5_000)).unwrap();
        assert_eq!((granted.domain, granted.terms.class), (domain, Class::Latency));
        Server { seat: board.sit(granted.place).unwrap(), _connection: connection }
    }

    /// Says that each of its requests may be delayed by so much.
    #[allow(dead_code, reason = "not every test has a use for it")]
    pub fn expect(&self, slack: Duration) {
        let slack = Nanos(slack.as_nanos() as u64);
        self.seat.say_outlook(Outlook { slack, ..Outlook::default() });
    }

    /// A request that lasts so long.
    pub fn request(&self, lasts: Duration) {
        let begin = Instant::now();
        self.request_until(|| begin.elapsed() >= lasts);
    }

    /// A request that lasts until then. It is believed to have work as long as it shows life, so what is asked must be answered soon.
    pub fn request_until(&self, is_over: impl Fn() -> bool) {
        let began = board::now();
        self.seat.activate(began);
        while !is_over() {
            self.seat.beat(board::now());
            std::thread::sleep(Duration::from_millis(5));
        }
        self.seat.deactivate(board::now(), began);
    }
}

/// The GPU of the only board, by the name that reports give it.
fn gpu(runtime: &Runtime) -> Gpu {
    let report = runtime.report().unwrap();
    let uuid = report["gpus"].items()[0]["uuid"].text().to_owned();
    let digits: String = uuid.trim_start_matches("GPU-").chars().filter(|c| *c != '-').collect();
    Gpu(std::array::from_fn(|place| u8::from_str_radix(&digits[2 * place..2 * place + 2], 16).unwrap()))
}
