//! How a thread waits for the GPU: awake while that is short, and then not at the expense of others.

use std::time::Duration;

/// Looks so far. What is not so by then will not be so in the next microsecond either.
#[derive(Default)]
pub struct Pace(u32);

impl Pace {
    const AWAKE: u32 = 4_000;
    const NAP: Duration = Duration::from_micros(20);

    /// Between two looks; whether it took a nap.
    pub fn slept(&mut self) -> bool {
        self.0 = self.0.saturating_add(1);
        if self.0 < Pace::AWAKE {
            std::hint::spin_loop();
            return false;
        }
        std::thread::sleep(Pace::NAP);
        true
    }
}
