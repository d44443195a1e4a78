//! What was found out about a kernel the hard way, as a line of text.
//!
//! The key of the code, what is to be thought of the kernel, when that was found (seconds since 1970), its name. Lines are added by
//! many processes and read by later ones, and `profile` reads them too; a line that makes no sense is none.

use std::fmt;

use crate::{Reason, Rule, Verdict};

const ORDERED: &str = "ordered";
/// Digits of a key.
const KEY: usize = 32;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demotion {
    pub key: u128,
    /// Never that a kernel is as plain as kernels are: there would be nothing to remember.
    pub verdict: Verdict,
    pub seconds: u64,
    pub name: String,
}

impl Demotion {
    /// `None` where there is nothing to remember, or it does not fit into a line.
    pub fn new(key: u128, verdict: Verdict, seconds: u64, name: &str) -> Option<Demotion> {
        let fits = verdict != Verdict::Guard(Rule::Plain) && is_name(name);
        fits.then(|| Demotion { key, verdict, seconds, name: name.to_owned() })
    }

    pub fn parse(line: &str) -> Option<Demotion> {
        let mut words = line.splitn(4, ' ');
        // A number may have a sign for Rust, and a key has none.
        let key = words
            .next()
            .filter(|key| key.len() == KEY && key.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let key = u128::from_str_radix(key, 16).ok()?;
        let word = words.next()?;
        let verdict = match Reason::ALL.iter().find(|reason| reason.name() == word) {
            Some(&reason) => Verdict::Refuse(reason),
            None if word == ORDERED => Verdict::Guard(Rule::Ordered),
            None => return None,
        };
        let seconds = words.next().filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        Demotion::new(key, verdict, seconds.parse().ok()?, words.next()?)
    }
}

/// What can stand at the end of a line and is read as it was written.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(char::is_control)
}

impl fmt::Display for Demotion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.verdict {
            Verdict::Guard(_) => ORDERED,
            Verdict::Refuse(reason) => reason.name(),
        };
        write!(f, "{:032x} {word} {} {}", self.key, self.seconds, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HANGS: Verdict = Verdict::Refuse(Reason::WaitsForOthers);

    #[test]
    fn what_is_written_is_read() {
        let line = Demotion::new(7, HANGS, 17, "void add(int, int)").unwrap();
        assert_eq!(line.to_string(), format!("{:032x} waits-for-others 17 void add(int, int)", 7));
        assert_eq!(Demotion::parse(&line.to_string()), Some(line));
    }

    #[test]
    fn what_would_not_be_read_as_it_was_written_is_not_written() {
        assert_eq!(Demotion::new(7, Verdict::Guard(Rule::Plain), 17, "add"), None);
        for name in ["", "two\nlines", "an end of other systems\r", "\u{1b}[2J"] {
            assert_eq!(Demotion::new(7, HANGS, 17, name), None, "{name:?}");
        }
    }

    #[test]
    fn signs_are_no_digits() {
        assert_eq!(Demotion::parse(&format!("+{:031x} ordered 17 add", 7)), None);
        assert_eq!(Demotion::parse(&format!("{:032x} ordered +17 add", 7)), None);
    }
}
