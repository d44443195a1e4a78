//! Any bytes as the file of demotions: what the guard reads of it, it writes again; and who only shows it reads the same.
#![no_main]

use guard::demotion::Demotion;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    guard::trials::demotions(data);
    let shown = profile::demoted::read_lines(data);
    let text = String::from_utf8_lossy(data);
    for line in text.lines().filter_map(Demotion::parse) {
        let same = |one: &profile::Demoted| one.code == line.key && one.name == line.name;
        // Later times do not fit into nanoseconds, and some names are not shown.
        let unshown = line.seconds > u64::MAX / 1_000_000_000 || line.name.contains(model::text::is_hidden);
        assert!(unshown || shown.iter().any(same), "{line}");
    }
});
