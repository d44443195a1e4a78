//! Any text as configuration files: every mistake has a line that is there, and what is accepted is within its bounds and
//! means the same when it is read again.
#![no_main]

use board::{HIGHEST_PRIORITY, HIGHEST_WEIGHT};
use daemon::{Configuration, Loaded, Mistake, Scope};
use libfuzzer_sys::fuzz_target;

// A file ends at a NUL, and there may be three. The schema is said, or nearly nothing would be read.
fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    look(&[text.to_owned()]);
    let files: Vec<String> = text.split('\0').take(3).map(|file| format!("schema_version = 1\n{file}")).collect();
    look(&files);
});

fn look(files: &[String]) {
    let parts: Vec<(&str, &str)> = ["a", "b", "c"].into_iter().zip(files.iter().map(String::as_str)).collect();
    match Loaded::of_texts(&parts, Scope::Machine, 0) {
        Ok(loaded) => {
            judge(&loaded.configuration);
            assert_eq!(loaded.files.len(), parts.len());
            assert!(loaded.entries.iter().all(|entry| entry.from.is_some() && !entry.value.is_empty()));
            assert_eq!(Loaded::of_texts(&parts, Scope::Machine, 0), Ok(loaded));
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty());
            for Mistake { file, line, message } in mistakes {
                let (_, text) = parts.iter().find(|(name, _)| file.as_os_str() == *name).expect("it is of a file");
                let lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
                assert!(line.is_some_and(|line| (1..=lines).contains(&line)) && !message.is_empty());
            }
        }
    }
}

fn judge(configuration: &Configuration) {
    assert_eq!(configuration.token, configuration.token.sane());
    for policy in configuration.gpus.values().chain([&configuration.policy]) {
        let dials = policy.over(model::Dials::default());
        assert_eq!(dials, dials.sane());
    }
    for rule in &configuration.ceilings.rules {
        assert!((1..=HIGHEST_WEIGHT).contains(&rule.ceiling.weight) && rule.ceiling.priority <= HIGHEST_PRIORITY);
    }
}
