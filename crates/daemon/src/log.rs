//! What the daemon says: on standard error, which is the journal of a service or `daemon.log`.
//!
//! Some of it is caused by peers, so there is a bound on how much is said, or a hostile one could fill the disk.

use std::io::{self, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use model::Nanos;

/// So many lines in so much time, and no more.
const LINES: u32 = 50;
const SPAN: Nanos = Nanos::from_millis(10_000);

#[derive(Debug, Default)]
pub struct Log {
    since: Nanos,
    said: u32,
    unsaid: u64,
}

impl Log {
    pub fn say(&mut self, sentence: &str) {
        let now = board::now();
        if now.since(self.since) >= SPAN {
            if self.unsaid > 0 {
                write(&format!("{} lines were left out", self.unsaid));
            }
            *self = Log { since: now, said: 0, unsaid: 0 };
        }
        if self.said < LINES {
            self.said += 1;
            write(sentence);
        } else {
            self.unsaid += 1;
        }
    }
}

/// Control characters and the like in what peers call themselves must not reach a terminal.
fn write(sentence: &str) {
    let clean = model::text::on_one_line(sentence);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // A log that cannot be written is no reason to end.
    let _ = writeln!(io::stderr(), "{}.{:03} ebb daemon: {clean}", time.as_secs(), time.subsec_millis());
}
