//! Any bytes as what a tenant and the daemon tell each other: what is accepted could have been sent.
#![no_main]

use board::link::{Malformed, Reply, Request};
use libfuzzer_sys::fuzz_target;

// The beginning is right, or nearly nothing would be read; the first byte says which kind of message to try.
fuzz_target!(|data: &[u8]| {
    look(data);
    let Some((kind, rest)) = data.split_first() else { return };
    let mut bytes = b"ebb1".to_vec();
    bytes.extend(board::VERSION.to_le_bytes());
    bytes.extend(u32::from(kind % 5).to_le_bytes());
    bytes.extend(rest);
    look(&bytes);
});

fn look(bytes: &[u8]) {
    match Request::decode(bytes) {
        Ok(request) => assert_eq!(request.encode(), bytes),
        Err(Malformed::Length(length)) => assert!(length <= bytes.len()),
        Err(_) => {}
    }
    match Reply::decode(bytes) {
        Ok(reply @ (Reply::Granted(_) | Reply::NewTerms(_))) => assert_eq!(reply.encode(), bytes),
        // Of a refusal, which may be another version's, only the reason is read.
        Ok(Reply::Refused(reason)) => {
            assert_eq!(Reply::decode(&Reply::Refused(reason).encode()), Ok(Reply::Refused(reason)));
        }
        Err(_) => {}
    }
}
