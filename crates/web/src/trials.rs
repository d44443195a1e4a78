//! Hostile input, and what must hold of whatever is read from it. Fuzzers call this, and tests with drawn input.

use crate::{Access, Method, Request};

/// A password of a higher cost takes too long to be tried again and again.
const QUICK: u32 = 5;

/// Any text as a file of readers and what somebody sends, a zero between them: who is in the file is there with what can be tried,
/// what is wrong has its line, and nobody comes in without a password.
pub fn password_file(data: &[u8]) {
    let (text, sent) = match data.iter().position(|&byte| byte == 0) {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let text = String::from_utf8_lossy(text);
    let access = match Access::parse(&text) {
        Ok(access) => access,
        Err((line, reason)) => {
            assert!((1..=text.lines().count().max(1)).contains(&line) && !reason.is_empty());
            return;
        }
    };
    let costs = access.lines().map(|(name, hash)| {
        assert!(!name.is_empty() && !name.contains(':') && text.contains(hash));
        let parts: bcrypt::HashParts = hash.parse().expect("only such are taken");
        parts.get_cost()
    });
    let costs: Vec<u32> = costs.collect();
    assert!((1..=text.lines().count()).contains(&costs.len()) && costs.iter().all(|&cost| cost <= 14));
    assert!(!access.admits(&request(None)));
    if costs.iter().all(|&cost| cost <= QUICK) {
        let admitted = || access.admits(&request(Some(String::from_utf8_lossy(sent).into_owned())));
        assert_eq!(admitted(), admitted());
    }
}

fn request(authorization: Option<String>) -> Request {
    let (path, accept) = ("/metrics".to_owned(), String::new());
    Request { method: Method::Get, path, accept, host: None, origin: None, authorization, body: Vec::new() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_password_file_is_too_odd(
            name in "[a-z: #]{0,6}",
            at in 0usize..60,
            odd in ".{0,3}",
            sent in "(Basic )?[A-Za-z0-9+/=]{0,12}",
        ) {
            let mut hash = "$2b$04$9eovBu2ifo7pbLojN4okzO/LXRBRupjZPZV1dNA7e.OWyagu6.StC".to_owned();
            hash.replace_range(at..(at + odd.len()).min(hash.len()), &odd);
            password_file(format!("{name}:{hash}\0{sent}").as_bytes());
        }

        #[test]
        fn no_bytes_are_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            password_file(&bytes);
        }
    }
}
