//! Any bytes as what a browser sends: what is read of it is within its bounds, the same in whatever pieces it comes, and a
//! change that it asks for is one request of the daemon's and no more.
#![no_main]

use std::io::{self, Read};

use daemon::request::Request as Change;
use libfuzzer_sys::fuzz_target;
use web::{LONGEST_BODY, Method, Refusal, Request};

// The first byte says how long the pieces are.
fuzz_target!(|data: &[u8]| {
    let Some((piece, bytes)) = data.split_first() else { return };
    let read = Request::read(&mut &*bytes);
    let again = Request::read(&mut Pieces { bytes, most: usize::from(*piece) + 1 });
    assert_eq!(read, again);
    match read {
        Ok(request) => look(&request, bytes),
        // Somebody who sends too much is told so, and does not wait for a deadline.
        Err(refusal) => assert!(refusal != Refusal::Gone || bytes.len() < 3 * LONGEST_BODY),
    }
});

/// What is there, a little at a time.
struct Pieces<'a> {
    bytes: &'a [u8],
    most: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = self.most.min(into.len());
        self.bytes.read(&mut into[..most])
    }
}

fn look(request: &Request, bytes: &[u8]) {
    let Request { method, path, body, .. } = request;
    assert!(path.starts_with('/') && !path.contains(|c: char| "?# ".contains(c) || c.is_ascii_control()));
    assert!(body.len() <= LONGEST_BODY && (body.is_empty() || *method == Method::Post));
    assert!(body.is_empty() || bytes.windows(body.len()).any(|window| window == body));
    for header in [&request.host, &request.origin, &request.authorization].into_iter().flatten() {
        assert!(!header.contains(['\r', '\n', '\0']));
    }
    let _ = request.is_for_loopback();
    // As the dashboard makes a change of a path: whatever stands there, it is a name and nothing more.
    for target in path.split('/').map(str::to_owned) {
        let change = Change::Pause { target };
        let line = change.line();
        assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1));
        assert_eq!(Change::parse(&line), Ok(change));
    }
}
