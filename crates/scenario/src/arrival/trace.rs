//! Arrivals as somebody wrote them down: offsets in milliseconds, one to a line, in order. Blank lines and what follows a
//! `#` do not count.

use model::Nanos;
use serde::Serialize;

use super::keys::FASTEST;

/// Far more than a run can serve, and little enough to read at once.
const MOST: usize = 1_000_000;

/// The arrivals of a file. It can be repeated: the mean gap lies between its last arrival and its first one again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trace {
    pub file: String,
    /// In milliseconds, ascending, at least two and not all the same.
    pub(super) offsets: Vec<f64>,
}

impl Trace {
    /// Reads a file's text; a mistake is told with its line.
    pub(crate) fn read(file: &str, text: &str) -> Result<Trace, String> {
        let mut offsets = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let place = number + 1;
            let written = line.split('#').next().unwrap_or_default().trim();
            if written.is_empty() {
                continue;
            }
            let offset = written.parse().ok().filter(|offset: &f64| (0.0..=1e9).contains(offset));
            let Some(offset) = offset else {
                return Err(format!(
                    "{file}:{place}: `{written}` is no offset in milliseconds, from 0 to 1e9"
                ));
            };
            if offsets.last().is_some_and(|last| *last > offset) {
                return Err(format!(
                    "{file}:{place}: {offset} comes after a later one; offsets are in order"
                ));
            }
            offsets.push(offset);
        }
        let trace = Trace { file: file.to_owned(), offsets };
        if trace.offsets.len() > MOST {
            return Err(format!("{file} has more than {MOST} arrivals"));
        }
        if trace.period() <= 0.0 {
            return Err(format!("{file} has fewer than two arrivals, or all at once"));
        }
        if trace.rate() > FASTEST {
            return Err(format!("{file} has more than {FASTEST} arrivals per second"));
        }
        Ok(trace)
    }

    /// After how many milliseconds it begins again.
    pub(super) fn period(&self) -> f64 {
        let [first, .., last] = self.offsets[..] else { return 0.0 };
        (last - first) * self.offsets.len() as f64 / (self.offsets.len() - 1) as f64
    }

    /// Requests per second as written.
    pub fn rate(&self) -> f64 {
        self.offsets.len() as f64 / self.period() * 1e3
    }

    /// All arrivals before `until`, at the given rate.
    pub(super) fn due(&self, rate: f64, until: Nanos) -> Vec<Nanos> {
        let stretch = self.rate() / rate * 1e6;
        let rounds = (0u32..).map(|round| f64::from(round) * self.period());
        let all = rounds.flat_map(|begin| self.offsets.iter().map(move |offset| (begin + offset) * stretch));
        all.map(|nanos| Nanos(nanos as u64)).take_while(|due| *due < until).collect()
    }
}
