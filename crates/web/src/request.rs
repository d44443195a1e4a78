//! What was asked: the head of a request, read with bounds.

use std::io::Read;
use std::net::IpAddr;

/// A head is no longer than this. Browsers send about a tenth of it.
const LONGEST: usize = 8 * 1024;
const MOST_HEADERS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Get,
    Head,
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
    pub authorization: Option<String>,
}

/// Why a request is not answered as it wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The reader has gone or says nothing more.
    Gone,
    Malformed,
    /// The head is too long.
    TooLong,
    /// It asks for something to be done, or brings something.
    NotAllowed,
    Body,
}

/// Reads a head, and not a byte behind it that matters: there is one request to a connection.
pub fn read(from: &mut impl Read) -> Result<Request, Refusal> {
    let mut bytes = [0; LONGEST];
    let mut length = 0;
    loop {
        match from.read(&mut bytes[length..]) {
            Ok(0) | Err(_) => return Err(Refusal::Gone),
            Ok(more) => length += more,
        }
        if let Some(request) = parse(&bytes[..length])? {
            return Ok(request);
        }
        if length == LONGEST {
            return Err(Refusal::TooLong);
        }
    }
}

/// `None`: it is not complete.
fn parse(bytes: &[u8]) -> Result<Option<Request>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut head = httparse::Request::new(&mut headers);
    match head.parse(bytes) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLong),
        Err(_) => return Err(Refusal::Malformed),
    }
    let method = match head.method {
        Some("GET") => Method::Get,
        Some("HEAD") => Method::Head,
        _ => return Err(Refusal::NotAllowed),
    };
    let header = |name: &str| {
        let mut found = head.headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
        let first = found.next().map(|header| std::str::from_utf8(header.value).map(str::to_owned));
        // What is said twice means different things to different readers.
        let again = found.next().is_some();
        if again { Err(Refusal::Malformed) } else { first.transpose().map_err(|_| Refusal::Malformed) }
    };
    let brings = header("content-length")?.is_some_and(|length| length.trim() != "0");
    if brings || header("transfer-encoding")?.is_some() {
        return Err(Refusal::Body);
    }
    let target = head.path.ok_or(Refusal::Malformed)?;
    if !target.starts_with('/') {
        return Err(Refusal::Malformed);
    }
    let path = target.split(['?', '#']).next().unwrap_or_default();
    Ok(Some(Request {
        method,
        path: path.to_owned(),
        // This one may be said in pieces.
        accept: accept(head.headers),
        host: header("host")?,
        authorization: header("authorization")?,
    }))
}

fn accept(headers: &[httparse::Header<'_>]) -> String {
    let own = headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
    let texts: Vec<_> = own.filter_map(|header| std::str::from_utf8(header.value).ok()).collect();
    texts.join(",")
}

impl Request {
    /// Whether it was sent to this machine by a name that means this machine from wherever it is asked.
    pub fn is_for_loopback(&self) -> bool {
        // Readers older than the header are no browsers.
        let Some(host) = &self.host else { return true };
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(text: &str) -> Result<Request, Refusal> {
        read(&mut text.as_bytes())
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
        assert_eq!(asked("POST /metrics HTTP/1.1\r\n\r\n"), Err(Refusal::NotAllowed));
        assert_eq!(asked("GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"), Err(Refusal::Body));
        assert!(asked("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n").is_ok());
        assert_eq!(asked("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), Err(Refusal::Body));
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), Err(Refusal::Malformed));
        assert_eq!(asked("GET http://x/ HTTP/1.1\r\n\r\n"), Err(Refusal::Malformed));
        assert_eq!(asked("nonsense\r\n\r\n"), Err(Refusal::Malformed));
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
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = read(&mut bytes.as_slice());
        }

        #[test]
        fn a_head_may_come_in_pieces(cut in 1usize..60) {
            let text = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/plain\r\n\r\n";
            let (first, second) = text.split_at(cut.min(text.len()));
            prop_assert_eq!(read(&mut first.chain(second)).unwrap().path, "/metrics");
        }
    }
}
