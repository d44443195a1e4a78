//! The device as the player sees it: what it is, how much room its SMs have, and how long arithmetic takes on it.

use model::Nanos;

use crate::Error;
use crate::driver::{Driver, Function, Shape};

/// What the software GPU calls itself. Its blocks sleep; those of any other device compute.
const SOFTWARE: &str = "ebb software GPU";

const MULTIPROCESSORS: u32 = 16;
const SHARED_PER_SM: u32 = 81;
const MOST_SHARED_PER_BLOCK: u32 = 97;
const RESERVED_SHARED_PER_BLOCK: u32 = 111;
/// Shared memory is handed out in pieces of so many bytes.
const PIECE: u32 = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    pub name: String,
    pub sms: u32,
    shared_per_sm: u32,
    most_shared: u32,
    reserved: u32,
}

impl Card {
    pub fn of(driver: &Driver) -> Result<Card, Error> {
        let ask = |attribute| driver.attribute(attribute).map(i32::unsigned_abs);
        Ok(Card {
            name: driver.device_name()?,
            sms: ask(MULTIPROCESSORS)?.max(1),
            shared_per_sm: ask(SHARED_PER_SM)?,
            most_shared: ask(MOST_SHARED_PER_BLOCK)?,
            reserved: ask(RESERVED_SHARED_PER_BLOCK)?,
        })
    }

    pub fn is_software(&self) -> bool {
        self.name == SOFTWARE
    }

    /// The dynamic shared memory by which a block takes `part` of `whole` of an SM, and so `whole / part` of them fit.
    pub fn room(&self, part: u32, whole: u32) -> u32 {
        let share = u64::from(self.shared_per_sm) * u64::from(part) / u64::from(whole.max(1));
        let share = u32::try_from(share).unwrap_or(u32::MAX) / PIECE * PIECE;
        share.saturating_sub(self.reserved).min(self.most_shared)
    }

    /// The largest piece that `room` gives.
    pub fn whole_room(&self) -> u32 {
        self.room(1, 1)
    }
}

/// How long a round of the kernel's arithmetic takes at the card's full speed, in blocks of this shape.
///
/// Players are started side by side, on a card that has been idle and that they share: the time that some work takes
/// would be another for each of them. The cycles that a block counts are not.
pub fn nanos_per_round(driver: &Driver, pace: Function, shape: Shape, scratch: u64) -> Result<f64, Error> {
    const TRIAL: u64 = 20_000;
    const TRIES: u32 = 20;
    const CLOCK_KHZ: u32 = 13;
    let cycles = |rounds: u64| -> Result<u64, Error> {
        let mut fewest = u64::MAX;
        for _ in 0..TRIES {
            driver.launch_shaped(pace, Shape { blocks: 1, ..shape }, [scratch, rounds])?;
            driver.synchronize()?;
            // A context that was off the card meanwhile has counted that, too; hardly every time.
            fewest = fewest.min(driver.read::<1>(scratch)?[0]);
        }
        Ok(fewest)
    };
    let (once, twice) = (cycles(TRIAL)?, cycles(2 * TRIAL)?);
    let megahertz = f64::from(driver.attribute(CLOCK_KHZ)?) / 1e3;
    if twice <= once || megahertz <= 0.0 {
        return Err(Error::Player(format!(
            "the card's speed cannot be measured: {once} cycles, {twice} for twice the work, at {megahertz} MHz"
        )));
    }
    // What lies around the rounds is in both.
    Ok((twice - once) as f64 / TRIAL as f64 * 1e3 / megahertz)
}

/// The shortest of some times that `work` takes on the GPU, handed over behind `ahead`: somebody else's context may come
/// between, but hardly every time.
pub fn shortest(
    driver: &Driver,
    tries: u32,
    ahead: impl Fn() -> Result<(), Error>,
    work: impl Fn() -> Result<(), Error>,
) -> Result<Nanos, Error> {
    let (begin, end) = (driver.timed_event()?, driver.timed_event()?);
    let mut shortest = Nanos::MAX;
    for _ in 0..tries {
        ahead()?;
        driver.record(begin)?;
        work()?;
        driver.record(end)?;
        driver.synchronize()?;
        shortest = shortest.min(driver.between(begin, end)?);
    }
    Ok(shortest)
}

#[cfg(test)]
impl Card {
    /// A software GPU with the SMs of a Hopper card.
    pub fn software(sms: u32) -> Card {
        let (shared_per_sm, most_shared, reserved) = (228 << 10, 227 << 10, 1 << 10);
        Card { name: SOFTWARE.to_owned(), sms, shared_per_sm, most_shared, reserved }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_blocks_fit_as_are_meant_to() {
        let card = Card::software(132);
        for per_sm in 1..=32 {
            let block = card.room(1, per_sm) + card.reserved;
            assert_eq!(card.shared_per_sm / block.next_multiple_of(PIECE), per_sm);
        }
    }

    #[test]
    fn blocks_that_stand_for_others_take_their_room() {
        let card = Card::software(132);
        for (part, whole) in [(2, 8), (3, 8), (7, 8), (31, 32)] {
            let block = card.room(part, whole) + card.reserved;
            let left = card.shared_per_sm - block.next_multiple_of(PIECE);
            let alone = card.room(whole - part, whole) + card.reserved;
            assert!(left >= alone.next_multiple_of(PIECE), "{part} of {whole}");
        }
        assert_eq!(card.room(8, 8), card.whole_room());
    }
}
