//! Requests that a program marks itself, in a program as a user writes it.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

mod common;

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::json::Value;
use common::runtime::{Runtime, wait_for};

/// A server in Python, by nothing but the driver API: each line it reads has it answer some requests.
const SERVER: &str = r#"
import ctypes, sys
import ebb

cuda = ctypes.CDLL("libcuda.so.1")

def call(name, *arguments):
    status = getattr(cuda, name)(*arguments)
    assert status == 0, (name, status)

early = ebb.request()
assert early.__enter__() is False, "there is no context yet"
early.__exit__(None, None, None)

device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(4096))
stream = ctypes.c_void_p()
call("cuStreamCreate", ctypes.byref(stream), 1)

def work():
    for value in range(3):
        call("cuMemsetD8Async", memory, ctypes.c_ubyte(value), ctypes.c_size_t(4096), stream)
        call("cuStreamSynchronize", stream)

print("ready", flush=True)
for line in sys.stdin:
    how, count = line.split()
    marked = 0
    for _ in range(int(count)):
        if how == "plain":
            work()
        elif how == "marked":
            with ebb.request() as taken:
                marked += taken
                work()
        elif how == "nested":
            with ebb.request() as taken:
                with ebb.request() as inner:
                    assert inner is False
                    work()
                work()
                marked += taken
        elif how == "failing":
            try:
                with ebb.request() as taken:
                    marked += taken
                    raise KeyError
            except KeyError:
                pass
        elif how == "unbalanced":
            library = ctypes.CDLL(None)
            library.ebb_request_end.argtypes = [ctypes.c_uint64]
            library.ebb_request_begin.restype = ctypes.c_uint64
            for number in (0, 1, 2**64 - 1, 1 << 32):
                library.ebb_request_end(number)
            mark = library.ebb_request_begin()
            library.ebb_request_end(mark)
            library.ebb_request_end(mark)
            marked += mark != 0
        elif how == "left":
            ctypes.CDLL(None).ebb_request_begin()
    print("done", marked, flush=True)
"#;

struct Server {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Server {
    fn start(runtime: &Runtime, class: &str) -> Server {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/python");
        let mut command = runtime.command();
        command.args(["run", "--device", "soft", "--class", class, "--name", "server", "--"]);
        command.args(["python3", "-c", SERVER]).env("PYTHONPATH", module).env("PYTHONDONTWRITEBYTECODE", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Server { child, lines };
        assert_eq!(server.line(), "ready");
        server
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("the server lives").unwrap()
    }

    /// Has it answer requests; gives how many of them ebb has taken notice of.
    fn answer(&mut self, how: &str, count: u32) -> i128 {
        writeln!(self.child.stdin.as_mut().unwrap(), "{how} {count}").unwrap();
        self.line().strip_prefix("done ").unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has_python() -> bool {
    let here = Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success());
    if !here {
        println!("skipped: there is no python3");
    }
    here
}

fn seat(runtime: &Runtime) -> Option<Value> {
    runtime.seats().into_iter().find(|seat| seat["name"].text() == "server")
}

fn counter(runtime: &Runtime, name: &str) -> i128 {
    seat(runtime).map_or(-1, |seat| seat["counters"][name].number())
}

#[test]
fn marked_requests_are_counted_as_they_are() {
    if !has_python() {
        return;
    }
    let runtime = Runtime::new();
    let mut server = Server::start(&runtime, "latency");
    wait_for("the server has its seat", || seat(&runtime).is_some());
    // Guessed: each of the three waits ends a burst.
    assert_eq!(server.answer("plain", 2), 0);
    let guessed = counter(&runtime, "bursts");
    assert_eq!((guessed, counter(&runtime, "marked")), (6, 0));
    assert_eq!(server.answer("marked", 5), 5);
    assert_eq!((counter(&runtime, "bursts"), counter(&runtime, "marked")), (guessed + 5, 5));
    assert_eq!(server.answer("nested", 4), 4);
    assert_eq!((counter(&runtime, "bursts"), counter(&runtime, "marked")), (guessed + 9, 9));
    assert_eq!(server.answer("failing", 3), 3);
    assert_eq!(server.answer("unbalanced", 2), 2);
    assert_eq!((counter(&runtime, "bursts"), counter(&runtime, "marked")), (guessed + 14, 14));
    assert_eq!(counter(&runtime, "bursts_unended"), 0);
    // And what is not marked is guessed again.
    assert_eq!(server.answer("plain", 1), 0);
    assert_eq!((counter(&runtime, "bursts"), counter(&runtime, "marked")), (guessed + 17, 14));
}

#[test]
fn a_request_that_is_never_ended_is_given_up() {
    if !has_python() {
        return;
    }
    let runtime = Runtime::new();
    let mut server = Server::start(&runtime, "latency");
    wait_for("the server has its seat", || seat(&runtime).is_some());
    server.answer("left", 2);
    wait_for("it is at work", || seat(&runtime).is_some_and(|seat| seat["state"].text() == "running"));
    wait_for("it is given up", || counter(&runtime, "bursts_unended") == 2);
    assert_eq!((counter(&runtime, "bursts"), counter(&runtime, "marked")), (0, 0));
    wait_for("it is idle", || seat(&runtime).is_some_and(|seat| seat["state"].text() == "idle"));
}

#[test]
fn a_best_effort_tenant_has_nothing_to_mark() {
    if !has_python() {
        return;
    }
    let runtime = Runtime::new();
    let mut server = Server::start(&runtime, "best-effort");
    assert_eq!(server.answer("marked", 2), 0);
    wait_for("the server has its seat", || seat(&runtime).is_some());
    assert_eq!((counter(&runtime, "bursts"), counter(&runtime, "marked")), (0, 0));
}
