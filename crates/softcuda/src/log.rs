//! What the library says on stderr, if `EBB_LOG` asks for it.

use std::fmt::Arguments;
use std::io::Write;
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Silent,
    /// What is refused because it is missing here, and faults of kernels.
    Warn,
    /// Every call that fails, too.
    Debug,
}

fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| parse(std::env::var("EBB_LOG").ok().as_deref()))
}

fn parse(word: Option<&str>) -> Level {
    match word {
        None | Some("" | "0" | "off" | "none") => Level::Silent,
        Some("debug" | "trace" | "2") => Level::Debug,
        Some(_) => Level::Warn,
    }
}

pub fn enabled(at: Level) -> bool {
    level() >= at
}

/// Writes one line, if the level is asked for. A stderr that is closed is nobody's concern.
pub fn say(at: Level, line: Arguments<'_>) {
    if enabled(at) {
        let _ = writeln!(std::io::stderr(), "ebb softcuda: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_names_a_level() {
        assert_eq!(parse(None), Level::Silent);
        assert_eq!(parse(Some("0")), Level::Silent);
        assert_eq!(parse(Some("1")), Level::Warn);
        assert_eq!(parse(Some("warn")), Level::Warn);
        assert_eq!(parse(Some("debug")), Level::Debug);
    }
}
