//! What was asked: the head of a request and what it brings, read with bounds.

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A head is no longer than this. Browsers send about a tenth of it.
const LONGEST: usize = 8 * 1024;
const MOST_HEADERS: usize = 64;
/// What a request may bring. Whoever wants something changed says so in a line.
pub const LONGEST_BODY: usize = 4 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
    /// Something is to be changed. Most pages refuse it.
    Post,
}

/// A request that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Without what comes behind a question mark.
    pub path: String,
    /// What the reader accepts; empty where it does not say.
    pub accept: String,
    pub host: Option<String>,
    /// The page in a browser from which it comes.
    pub origin: Option<String>,
    pub authorization: Option<String>,
    /// What it brings; nothing, unless something is to be changed.
    pub body: Vec<u8>,
}

/// Why a request is not answered as it wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The reader has gone or says nothing more.
    Gone,
    Malformed,
    /// The head is too long.
    TooLong,
    /// It asks for something that is not done here.
    NotAllowed,
    /// It brings something, or too much.
    Body,
}

/// A head, where it ends, and how much comes behind it: never more than there is room for.
struct Told {
    request: Request,
    begins: usize,
    brings: usize,
}

/// `None`: it is not complete.
fn parse(bytes: &[u8]) -> Result<Option<Told>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    let begins = match head.parse(bytes) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(begins)) => begins,
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
        Err(_) => return Err(Refusal::Malformed),
    };
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        Some("POST") => Method::Post,
        _ => return Err(Refusal::NotAllowed),
    };
    let header = |name: &str| {
        let mut found = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let first = found.next().map(|header| std::str::from_utf8(header.value).map(str::to_owned));
        // What is said twice means different things to different readers.
        let again = found.next().is_some();
        if again { Err(Refusal::Malformed) } else { first.transpose().map_err(|_| Refusal::Malformed) }
    };
    let brings = header("content-length")?.unwrap_or_default();
    let brings: usize = match brings.trim() {
        "" => 0,
        // Rust would take a plus before it, which others do not.
        length if !length.bytes().all(|byte| byte.is_ascii_digit()) => return Err(Refusal::Malformed),
        length => length.parse().map_err(|_| Refusal::Malformed)?,
    };
    let may = if method == Method::Post { LONGEST_BODY } else { 0 };
    if brings > may || header("transfer-encoding")?.is_some() {
        return Err(Refusal::Body);
    }
    let target = head.path.ok_or(Refusal::Malformed)?;
    if !target.starts_with('/') {
        return Err(Refusal::Malformed);
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let request = Request {
        method,
        path: path.to_owned(),
        // This one may be said in pieces.
        accept: accept(head.headers),
        host: header("host")?,
        origin: header("origin")?,
        authorization: header("authorization")?,
        body: Vec::new(),
    };
    Ok(Some(Told { request, begins, brings }))
}

fn accept(headers: &[httparse::Header<'_>]) -> String {
    let own = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let texts: Vec<_> = own.filter_map(|header| std::str::from_utf8(header.value).ok()).collect();
    texts.join(",")
}

impl Request {
    /// Reads a request, and not a byte behind it that matters: there is one to a connection.
    pub fn read(from: &mut impl Read) -> Result<Request, Refusal> {
        let mut bytes = [0; LONGEST + LONGEST_BODY];
        let mut length = 0;
        loop {
            match from.read(&mut bytes[length..]) {
                Ok(0) | Err(_) => return Err(Refusal::Gone),
                Ok(more) => length += more,
            }
            let told = match parse(&bytes[..length.min(LONGEST)])? {
                Some(told) => told,
                None if length >= LONGEST => return Err(Refusal::TooLong),
                None => continue,
            };
            let end = told.begins + told.brings;
            if length >= end {
                return Ok(Request { body: bytes[told.begins..end].to_vec(), ..told.request });
            }
        }
    }

    /// Whether it was sent to this machine by a name that means this machine from wherever it is asked.
    pub fn is_for_loopback(&self) -> bool {
        // Readers older than the header are no browsers.
        let Some(host) = &self.host else { return true };
        named(host).is_some_and(|name| match name {
            HostName::Word(word) => word.eq_ignore_ascii_case("localhost"),
            HostName::Address(address) => address.is_loopback(),
        })
    }
}

/// A machine, as a header names it.
enum HostName<'a> {
    Word(&'a str),
    Address(IpAddr),
}

/// The machine that a `Host` names, if the header is nothing but a name or an address, and a port. What stands in it besides, such as
/// `localhost:80@elsewhere`, others would read as another machine.
fn named(host: &str) -> Option<HostName<'_>> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (inside, behind) = rest.split_once(']')?;
            let address = HostName::Address(inside.parse::<Ipv6Addr>().ok()?.into());
            (address, if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) })
        }
        None => {
            let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
            let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
            if name.is_empty() || !name.bytes().all(is_letter) {
                return None;
            }
            (name.parse::<Ipv4Addr>().map_or(HostName::Word(name), |v4| HostName::Address(v4.into())), port)
        }
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    port.is_none_or(is_port).then_some(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(text: &str) -> Result<Request, Refusal> {
        Request::read(&mut text.as_bytes())
    }

    #[test]
    fn a_head_is_read() {
        let request = asked(
            "GET /metrics?x=1 HTTP/1.1\r\nHost: localhost:9463\r\nAccept: a\r\naccept: b\r\nAuthorization: Basic eA==\r\n\r\n",
        )
        .unwrap();
        assert_eq!((request.method, request.path.as_str()), (Method::Get, "/metrics"));
        assert_eq!((request.accept.as_str(), request.host.as_deref()), ("a,b", Some("localhost:9463")));
        assert_eq!(request.authorization.as_deref(), Some("Basic eA=="));
        assert_eq!(asked("HEAD / HTTP/1.0\r\n\r\n").unwrap().method, Method::Head);
    }

    #[test]
    fn what_is_more_than_a_question_is_refused() {
        assert_eq!(asked("PUT /metrics HTTP/1.1\r\n\r\n"), Err(Refusal::NotAllowed));
        let much = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", LONGEST_BODY + 1);
        assert_eq!(asked(&much), Err(Refusal::Body));
        for length in ["-1", "+1", "1 1", "0x1", "99999999999999999999"] {
            let wrong = format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n1");
            assert_eq!(asked(&wrong), Err(Refusal::Malformed), "{length}");
        }
        assert_eq!(asked("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), Err(Refusal::Body));
        assert!(asked("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").is_ok());
        assert_eq!(asked("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Refusal::Body));
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), Err(Refusal::Malformed));
        assert_eq!(asked("GET http://x/ HTTP/1.1\r\n\r\n"), Err(Refusal::Malformed));
        assert_eq!(asked("nonsense\r\n\r\n"), Err(Refusal::Malformed));
    }

    #[test]
    fn what_a_request_brings_is_read_to_its_end() {
        let text = "POST /x HTTP/1.1\r\nOrigin: http://a\r\nContent-Length: 5\r\n\r\nhello, and more";
        let request = asked(text).unwrap();
        assert_eq!((request.method, request.body.as_slice()), (Method::Post, b"hello".as_slice()));
        assert_eq!(request.origin.as_deref(), Some("http://a"));
        assert_eq!(asked("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhell"), Err(Refusal::Gone));
        assert!(asked("POST / HTTP/1.1\r\n\r\n").unwrap().body.is_empty());
    }

    #[test]
    fn a_head_that_does_not_end_is_given_up() {
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: "), Err(Refusal::Gone));
        assert_eq!(asked(""), Err(Refusal::Gone));
        let long = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "y".repeat(LONGEST));
        assert_eq!(asked(&long), Err(Refusal::TooLong));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(asked(&many), Err(Refusal::TooLong));
    }

    #[test]
    fn names_that_can_mean_another_machine_are_not_loopback() {
        let host = |host: &str| asked(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).unwrap();
        for own in ["localhost", "LOCALHOST:9463", "127.0.0.1:80", "127.9.9.9", "[::1]:9463", "[::1]"] {
            assert!(host(own).is_for_loopback(), "{own}");
        }
        for other in ["example.com", "localhost.example.com:9463", "10.0.0.1", "[fe80::1]", "[", "", ":80"] {
            assert!(!host(other).is_for_loopback(), "{other}");
        }
        let more_than_a_machine = [
            "localhost:80@evil",
            "localhost:80@evil.example:80",
            "user@localhost",
            "localhost:",
            "localhost:+80",
            "localhost:65536",
            "localhost:80:80",
            "localhost/evil",
            "localhost evil",
            "localhost#",
            "127.0.0.1.evil",
            "127.0.0.1:80@evil",
            "[::1]evil",
            "[::1]:80@evil",
            "[::1]@evil",
            "[127.0.0.1]",
            "::1",
        ];
        for odd in more_than_a_machine {
            assert!(!host(odd).is_for_loopback(), "{odd}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = Request::read(&mut bytes.as_slice());
        }

        #[test]
        fn a_head_may_come_in_pieces(cut in 1usize..60) {
            let text = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n";
            let (first, second) = text.split_at(cut.min(text.len()));
            prop_assert_eq!(Request::read(&mut first.chain(second)).unwrap().path, "/metrics");
        }
    }
}
