//! XSched: a stand-in for the driver's library that holds back what processes hand over, and a server that says whose
//! queues are suspended.
//!
//! A worker finds the stand-in first, under the driver's name, and makes a queue of XSched's out of every stream that
//! it creates. The server knows all queues of the machine; by the policy "highest priority first" it suspends those of
//! best-effort tenants while a queue of a latency tenant has work. At level 1 a suspended queue hands nothing more to
//! the GPU; at level 3, done by timeslices, the whole context of the process is also taken off the GPU.
//!
//! There is one server to a machine, because processes find it by a fixed number: both modes share it, and where
//! somebody else's runs, ours is not started.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::time::Duration;
use std::{fs, io};

use installation::driver::Search;
use model::Class;
use serde_json::{Value, json};

use super::super::{Absence, Environment, Service, Surroundings};
use super::{Parts, in_front, process_named, remark, set};

pub const PARTS: Parts = Parts {
    product: "XSched",
    libraries: &["lib/libshimcuda.so", "lib/libhalcuda.so", "lib/libpreempt.so"],
    programs: &["bin/xserver"],
};

const REMARKS: &[&str] = &[
    "work on the legacy default stream and cooperative launches are not scheduled",
    "while any stream of a process captures a graph, nothing of that process is scheduled",
    "a launched graph is one command, which level 1 cannot interrupt",
];

const SERVER: &str = "xserver";
const POLICY: &str = "HPF";
const PATIENCE: Duration = Duration::from_secs(10);
const QUESTION: &[u8] = b"GET /xqueues HTTP/1.0\r\nConnection: close\r\n\r\n";
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(1);

pub struct Server {
    port: u16,
    _service: Service,
}

impl Server {
    /// The server that the other mode has started, or a new one.
    pub fn shared(known: &mut Weak<Server>, path: &Path, folder: &Path) -> Result<Rc<Server>, Absence> {
        if let Some(server) = known.upgrade().filter(|server| server.answers()) {
            return Ok(server);
        }
        let server = Rc::new(Server::start(path, folder)?);
        *known = Rc::downgrade(&server);
        Ok(server)
    }

    fn start(path: &Path, folder: &Path) -> Result<Server, Absence> {
        if let Some(pid) = process_named("/proc".as_ref(), SERVER) {
            return Err(Absence(format!(
                "XSched's server is already running, started by someone else (process {pid})"
            )));
        }
        let port = free_port().map_err(|error| Absence(format!("no port for XSched's server: {error}")))?;
        let words = [path.join(PARTS.programs[0]).into(), POLICY.into(), OsString::from(port.to_string())];
        let service = Service::start("XSched's server", &words, &Vec::new(), &folder.join("xserver.log"))?;
        let mut server = Server { port, _service: service };
        server._service.await_up(PATIENCE, || reachable(port))?;
        Ok(server)
    }

    fn answers(&self) -> bool {
        reachable(self.port)
    }
}

pub struct Xsched {
    server: Rc<Server>,
    library_path: OsString,
    driver: PathBuf,
    by_timeslices: bool,
}

impl Xsched {
    /// The stand-in gets the driver's name in our folder, so that it does not matter whether the build has such links.
    pub fn new(
        server: Rc<Server>,
        path: &Path,
        folder: &Path,
        by_timeslices: bool,
    ) -> Result<Xsched, Absence> {
        let (_, driver) =
            Search::here(None).found.ok_or_else(|| Absence("there is no CUDA driver".to_owned()))?;
        let (names, libraries) = (folder.join("names"), path.join("lib"));
        link(&libraries.join("libshimcuda.so"), &names)
            .map_err(|error| Absence(format!("{}: {error}", names.display())))?;
        let library_path = in_front("LD_LIBRARY_PATH", &[names.as_os_str(), libraries.as_os_str()]);
        Ok(Xsched { server, library_path, driver: driver.real_path, by_timeslices })
    }
}

impl Surroundings for Xsched {
    fn environment(&self, class: Class) -> Environment {
        variables(&self.library_path, &self.driver, class, self.by_timeslices)
    }

    /// Also which processes have how many queues: one without any was not attached.
    fn status(&self) -> Option<Value> {
        let mut status = remark(PARTS.product, REMARKS);
        status["processes"] = ask(self.server.port).map_or(Value::Null, |answer| attached(&answer));
        Some(status)
    }

    /// A client's death has ended the server before.
    fn is_fragile(&self) -> bool {
        true
    }
}

fn variables(library_path: &OsStr, driver: &Path, class: Class, by_timeslices: bool) -> Environment {
    let (level, priority) =
        (if by_timeslices { "3" } else { "1" }, if class == Class::Latency { "1" } else { "0" });
    let mut environment = vec![
        set("LD_LIBRARY_PATH", library_path),
        // XSched looks for the driver in the usual folders only, where containers often do not have it.
        set("XSCHED_CUDA_LIB", driver),
        set("CUXTRA_CUDA_LIB", driver),
        set("XSCHED_SCHEDULER", "GLB"),
        set("XSCHED_AUTO_XQUEUE", "ON"),
        set("XSCHED_AUTO_XQUEUE_LEVEL", level),
        set("XSCHED_AUTO_XQUEUE_PRIORITY", priority),
    ];
    if by_timeslices {
        environment.push(set("XSCHED_CUDA_LV3_IMPL", "TSG"));
    }
    environment
}

fn link(shim: &Path, names: &Path) -> io::Result<()> {
    fs::create_dir_all(names)?;
    for name in ["libcuda.so.1", "libcuda.so"] {
        let name = names.join(name);
        // Left by an earlier server of this campaign.
        let _ = fs::remove_file(&name);
        symlink(shim, name)?;
    }
    Ok(())
}

/// Nobody holds it afterwards; the server says so if somebody was faster.
fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

fn reachable(port: u16) -> bool {
    TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), ANSWER).is_ok()
}

/// What the server says about its queues, over the little HTTP that it takes.
fn ask(port: u16) -> Option<Value> {
    let mut stream = TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), ANSWER).ok()?;
    stream.set_read_timeout(Some(ANSWER)).ok()?;
    stream.write_all(QUESTION).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let answer = String::from_utf8(answer).ok()?;
    serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
}

/// Per process, how many queues of which level. The rest of the answer is as long as a framework has streams.
fn attached(answer: &Value) -> Value {
    let list = |key: &str| answer[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let processes = list("processes").iter().map(|process| {
        let mut levels: Vec<&Value> = Vec::new();
        let own = list("xqueues").iter().filter(|queue| queue["pid"] == process["pid"]);
        let queues = own.inspect(|queue| levels.push(&queue["level"])).count();
        levels.dedup();
        json!({ "pid": process["pid"], "queues": queues, "levels": levels })
    });
    processes.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(class: Class, by_timeslices: bool) -> impl Fn(&str) -> Option<OsString> {
        let environment =
            variables("/names:/lib".as_ref(), "/driver/libcuda.so.1".as_ref(), class, by_timeslices);
        move |name| environment.iter().find(|(variable, _)| variable == name)?.1.clone()
    }

    #[test]
    fn latency_tenants_are_above_best_effort_ones() {
        let priority = |class| of(class, false)("XSCHED_AUTO_XQUEUE_PRIORITY").unwrap();
        assert_eq!((priority(Class::Latency), priority(Class::BestEffort)), ("1".into(), "0".into()));
    }

    #[test]
    fn the_two_modes_differ_in_the_level_alone() {
        for class in [Class::Latency, Class::BestEffort] {
            let (level_1, level_3) = (of(class, false), of(class, true));
            assert_eq!(level_1("XSCHED_AUTO_XQUEUE_LEVEL"), Some("1".into()));
            assert_eq!(level_1("XSCHED_CUDA_LV3_IMPL"), None);
            assert_eq!(level_3("XSCHED_AUTO_XQUEUE_LEVEL"), Some("3".into()));
            assert_eq!(level_3("XSCHED_CUDA_LV3_IMPL"), Some("TSG".into()));
            for same in ["LD_LIBRARY_PATH", "XSCHED_CUDA_LIB", "XSCHED_SCHEDULER", "XSCHED_AUTO_XQUEUE"] {
                assert_eq!(level_1(same), level_3(same));
                assert!(level_1(same).is_some(), "{same}");
            }
        }
    }

    #[test]
    fn the_stand_in_is_found_under_the_name_of_the_driver() {
        let folder = tempfile::tempdir().unwrap();
        let (shim, names) = (folder.path().join("libshimcuda.so"), folder.path().join("names"));
        fs::write(&shim, "shim").unwrap();
        for _ in 0..2 {
            link(&shim, &names).unwrap();
            assert_eq!(fs::read_to_string(names.join("libcuda.so.1")).unwrap(), "shim");
        }
    }

    #[test]
    fn a_process_without_queues_shows_in_the_record() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let body =
            r#"{"xqueues":[{"pid":5,"level":1},{"pid":5,"level":1}],"processes":[{"pid":5},{"pid":6}]}"#;
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = vec![0; QUESTION.len()];
            stream.read_exact(&mut asked).unwrap();
            write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
            asked
        });
        let answer = ask(port).unwrap();
        assert_eq!(server.join().unwrap(), QUESTION);
        let (attached_5, nothing_6) =
            (json!({ "pid": 5, "queues": 2, "levels": [1] }), json!({ "pid": 6, "queues": 0, "levels": [] }));
        assert_eq!(attached(&answer), json!([attached_5, nothing_6]));
    }

    #[test]
    fn a_server_that_does_not_come_up_is_no_ground() {
        let build = tempfile::tempdir().unwrap();
        fs::create_dir(build.path().join("bin")).unwrap();
        symlink("/bin/false", build.path().join(PARTS.programs[0])).unwrap();
        let failed = Server::start(build.path(), build.path()).err().unwrap().to_string();
        assert!(failed.contains("XSched's server"), "{failed}");
    }
}
