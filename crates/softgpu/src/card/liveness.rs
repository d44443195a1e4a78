//! Is the process that took a slot still there? A pid alone can be reused; a pid and its start time cannot.

use std::fs;

/// The start time of a living process, in clock ticks since boot. A zombie is not alive: it holds nothing.
pub fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse(&stat)
}

fn parse(stat: &str) -> Option<u64> {
    // The command name stands in parentheses and may hold anything, further parentheses included.
    let (_, fields) = stat.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_keeps_its_start_time() {
        let pid = std::process::id();
        assert!(start_time(pid).is_some());
        assert_eq!(start_time(pid), start_time(pid));
    }

    #[test]
    fn a_zombie_does_not_live() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        while start_time(pid).is_some() {
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }

    #[test]
    fn names_with_parentheses_are_skipped() {
        let stat = "7 (a) Z 1) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(parse(stat), Some(4242));
    }
}
