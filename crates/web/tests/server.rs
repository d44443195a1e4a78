//! The server, as its readers meet it: good ones and others.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected should stop there")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use web::{Method, Next, Options, Pages, Request, Response, Server, Stream};

struct Echo(AtomicUsize);

impl Pages for Echo {
    fn page(&self, request: &Request) -> Response {
        self.0.fetch_add(1, Ordering::Relaxed);
        if request.method == Method::Post {
            return Response::new("text/plain", request.body.clone());
        }
        if request.path == "/count" {
            return Response::events(Box::new(Counting(0)));
        }
        Response::new("text/plain", format!("you asked for {}", request.path))
    }
}

/// Says the next number now and then, for ever.
#[derive(Debug)]
struct Counting(u32);

impl Stream for Counting {
    fn next(&mut self, _patience: Duration) -> Next {
        std::thread::sleep(Duration::from_millis(20));
        self.0 += 1;
        Next::Piece(format!("data: {}\n\n", self.0).into())
    }
}

fn server() -> (Server, Arc<Echo>) {
    let pages = Arc::new(Echo(AtomicUsize::new(0)));
    (Server::start(&options("127.0.0.1:0"), pages.clone()).unwrap(), pages)
}

fn options(listen: &str) -> Options {
    Options { listen: listen.parse().unwrap(), tls: None, basic_auth: None }
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// What is answered to these bytes.
fn ask(server: &Server, bytes: &[u8]) -> String {
    let mut stream = connect(server);
    // Who is refused in the middle of a long request may not be able to send the rest.
    let _ = stream.write_all(bytes);
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or_default()
}

const GOOD: &[u8] = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[test]
fn a_question_has_an_answer() {
    let (server, _) = server();
    let answer = ask(&server, GOOD);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("Content-Length: 16\r\n"), "{head}");
    assert_eq!(body, "you asked for /x");
    let head = ask(&server, b"HEAD /x HTTP/1.1\r\n\r\n");
    assert!(head.contains("Content-Length: 16\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn what_is_wrong_is_refused_and_hurts_nobody() {
    let (server, pages) = server();
    let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(1 << 20));
    let cases: [(&[u8], &str); 7] = [
        (b"\0\0\0\r\n\r\n", "400"),
        (b"GET / HTTP/9.9\r\n\r\n", "400"),
        (b"DELETE / HTTP/1.1\r\n\r\n", "405"),
        (b"GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "413"),
        (long.as_bytes(), "431"),
        (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        (b"", ""),
    ];
    for (bytes, wanted) in cases {
        let mut stream = connect(&server);
        let _ = stream.write_all(bytes);
        if bytes.is_empty() {
            stream.shutdown(std::net::Shutdown::Write).unwrap();
        }
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert_eq!(status(&answer), wanted, "{}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]));
    }
    assert_eq!(pages.0.load(Ordering::Relaxed), 0, "no page was asked for");
    assert_eq!(status(&ask(&server, GOOD)), "200");
}

#[test]
fn who_says_nothing_is_not_waited_for() {
    let (server, _) = server();
    let mut slow: Vec<_> = (0..8).map(|_| connect(&server)).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET / HT").unwrap());
    assert_eq!(status(&ask(&server, GOOD)), "200", "others are served meanwhile");
    for mut stream in slow {
        let mut answer = Vec::new();
        // The end of the connection, not of our patience.
        assert_eq!(stream.read_to_end(&mut answer).unwrap(), 0);
    }
}

#[test]
fn there_is_a_bound_on_connections_and_an_end_to_it() {
    let (server, _) = server();
    let held: Vec<_> = (0..200).map(|_| connect(&server)).collect();
    // Those who were let in and say nothing are given up; nobody who wants something waits for long.
    let served = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        status(&ask(&server, GOOD)) == "200"
    });
    assert!(served);
    drop(held);
}

#[test]
fn a_server_that_is_dropped_has_ended() {
    let (server, _) = server();
    let address = server.address();
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    let options = options(&address.to_string());
    let again = Server::start(&options, Arc::new(Echo(AtomicUsize::new(0)))).unwrap();
    assert_eq!(again.address(), address);
    assert!(Server::start(&options, Arc::new(Echo(AtomicUsize::new(0)))).is_err(), "it is taken");
}

#[test]
fn an_answer_may_go_on_until_the_server_ends() {
    let (server, _) = server();
    let mut stream = connect(&server);
    stream.write_all(b"GET /count HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut seen = String::new();
    let mut piece = [0; 512];
    while !seen.contains("data: 3\n\n") {
        let length = stream.read(&mut piece).unwrap();
        assert_ne!(length, 0, "{seen}");
        seen.push_str(std::str::from_utf8(&piece[..length]).unwrap());
    }
    assert!(
        seen.contains("Content-Type: text/event-stream\r\n") && !seen.contains("Content-Length"),
        "{seen}"
    );
    assert_eq!(status(&ask(&server, GOOD)), "200", "others are served meanwhile");
    drop(server);
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
}

#[test]
fn answers_that_go_on_leave_room_for_others() {
    let (server, _) = server();
    let count = b"GET /count HTTP/1.0\r\n\r\n";
    let begin = |stream: &mut TcpStream| {
        stream.write_all(count).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        String::from_utf8(head.to_vec()).unwrap().split_off(9)
    };
    let mut many: Vec<_> = (0..15).map(|_| connect(&server)).collect();
    let statuses: Vec<_> = many.iter_mut().map(begin).collect();
    assert_eq!(statuses.iter().filter(|status| *status == "200").count(), 8);
    assert_eq!(statuses.iter().filter(|status| *status == "503").count(), 7);
    assert_eq!(status(&ask(&server, GOOD)), "200");
    drop(many);
    // A reader that has gone is found when something is sent to it.
    let begun = Instant::now();
    while begin(&mut connect(&server)) != "200" {
        assert!(begun.elapsed() < Duration::from_secs(60), "places are free again");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_is_brought_comes_to_the_page_and_too_much_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let readers = secret(&folder, "readers", 0o640);
    let options = Options { basic_auth: Some(readers), ..options("127.0.0.1:0") };
    let server = Server::start(&options, Arc::new(Echo(AtomicUsize::new(0)))).unwrap();
    let post = |bytes: usize| {
        let head = format!("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {bytes}\r\n\r\n");
        ask(&server, &[head.as_bytes(), &vec![b'x'; bytes]].concat())
    };
    assert!(post(5).ends_with("\r\n\r\nxxxxx"), "a page that changes something asks for its own proof");
    assert_eq!(status(&post(100_000)), "413");
}

#[test]
fn slow_readers_do_not_shut_out_others() {
    let (server, _) = server();
    let mut slow: Vec<_> = (0..40).map(|_| connect(&server)).collect();
    slow.iter_mut().for_each(|stream| _ = stream.write_all(b"GET /x HTTP/1.1\r\nX: "));
    for round in 0..20 {
        assert_eq!(status(&ask(&server, GOOD)), "200", "round {round}");
        // They go on as slowly as before, and those who lost their place come again.
        for stream in &mut slow {
            if stream.write_all(b"a").is_err() {
                *stream = connect(&server);
                let _ = stream.write_all(b"GET /x HTTP/1.1\r\nX: ");
            }
        }
    }
}

#[test]
fn a_key_or_a_password_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let complaint = |options: Options| {
        Server::start(&options, Arc::new(Echo(AtomicUsize::new(0)))).map(drop).unwrap_err().to_string()
    };
    let readers = secret(&folder, "readers", 0o644);
    let said = complaint(Options { basic_auth: Some(readers), ..options("127.0.0.1:0") });
    assert!(said.contains("readers is open to others") && said.contains("chmod 600"), "{said}");
    let tls = Some((data("certificate.pem"), secret(&folder, "key.pem", 0o604)));
    let said = complaint(Options { tls, ..options("127.0.0.1:0") });
    assert!(said.contains("key.pem is open to others") && said.contains("chmod 600"), "{said}");
}

/// A copy of a file of this test's that is as open as this.
fn secret(folder: &tempfile::TempDir, name: &str, mode: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.path().join(name);
    std::fs::write(&path, std::fs::read(data(name)).unwrap()).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// A file of this test's.
fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[test]
fn with_a_certificate_everything_is_said_in_secret() {
    let folder = tempfile::tempdir().unwrap();
    let key = secret(&folder, "key.pem", 0o600);
    let tls = Some((data("certificate.pem"), key.clone()));
    let options = Options { tls, ..options("127.0.0.1:0") };
    let server = Server::start(&options, Arc::new(Echo(AtomicUsize::new(0)))).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(data("certificate.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = StreamOwned::new(ClientConnection::new(config, name).unwrap(), connect(&server));
    stream.write_all(GOOD).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("you asked for /x"), "{answer}");
    assert_eq!(ask(&server, GOOD).find("you asked"), None, "not in the clear");
    let missing = Options { tls: Some((key.clone(), key)), ..options };
    assert!(Server::start(&missing, Arc::new(Echo(AtomicUsize::new(0)))).is_err());
}

#[test]
fn where_readers_are_named_others_are_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let readers = secret(&folder, "readers", 0o640);
    let options = Options { basic_auth: Some(readers), ..options("127.0.0.1:0") };
    let server = Server::start(&options, Arc::new(Echo(AtomicUsize::new(0)))).unwrap();
    let refused = ask(&server, GOOD);
    assert!(
        status(&refused) == "401" && refused.contains("WWW-Authenticate: Basic realm=\"ebb\""),
        "{refused}"
    );
    let with = |secret: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {secret}\r\n\r\n");
        ask(&server, request.as_bytes())
    };
    // prometheus:open sesame, and prometheus:open barley.
    assert_eq!(status(&with("cHJvbWV0aGV1czpvcGVuIHNlc2FtZQ==")), "200");
    assert_eq!(status(&with("cHJvbWV0aGV1czpvcGVuIGJhcmxleQ==")), "401");
}
