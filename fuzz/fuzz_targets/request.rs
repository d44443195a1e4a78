//! Any bytes as a request in words: what is accepted makes sense, and is the same when it is said again.
#![no_main]

use daemon::request::Request;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(request) = Request::parse(data) else { return };
    assert_eq!(Request::parse(&request.line()), Ok(request.clone()));
    if let Some(Ok((_, wish))) = request.wish() {
        assert!(wish.weight.is_none_or(|weight| (1..=board::HIGHEST_WEIGHT).contains(&weight)));
        assert!(wish.priority.is_none_or(|priority| priority <= board::HIGHEST_PRIORITY));
    }
});
