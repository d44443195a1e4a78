//! A kernel with its memory, as it is and with a guard.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use guard::rule::Cell;
use guard::{Control, Mode, Rule};
use model::Dim3;
use softgpu::memory::{AddressSpace, Word};
use softgpu::simt::{Kernel, Launch, Output};

use super::grid::{End, Grid};
use super::schedule::{Schedule, orders};

const SERIAL: u32 = 77;
/// In how many orders the original runs before a difference is the guard's fault.
const MANY: u64 = 500;

/// A kernel and everything it needs to be launched.
pub struct Subject {
    pub name: String,
    pub rule: Rule,
    pub space: Arc<AddressSpace>,
    /// Both count their blocks.
    pub original: Kernel,
    pub guarded: Kernel,
    pub control_offset: u32,
    pub grid: Dim3,
    pub block: Dim3,
    pub dynamic_shared: u32,
    /// The kernel's own arguments.
    pub parameters: Vec<u8>,
    /// Memory that the kernel may use, and what is in it when it begins.
    pub memory: Vec<(u64, Vec<u8>)>,
    pub words: Words,
    /// What the memory holds when the original is done.
    pub expected: Vec<Vec<u8>>,
    pub order_matters: OnceLock<bool>,
    /// There is one memory, so one trial at a time.
    pub turn: Mutex<()>,
}

/// Addresses of what the guard and the count need.
#[derive(Clone, Copy)]
pub struct Words {
    pub stop: u64,
    pub away: u64,
    pub marks: u64,
    pub tally: u64,
}

impl Subject {
    pub fn blocks(&self) -> usize {
        self.grid.volume().unwrap_or(0) as usize
    }

    /// What the count must be: one for each block.
    pub fn once(&self) -> Vec<u32> {
        vec![1; self.blocks()]
    }

    pub fn tally(&self) -> Vec<u32> {
        self.read_words(self.words.tally, self.blocks())
    }

    pub fn is_newest(&self) -> bool {
        self.name.contains("compute_90.O3")
    }

    /// Runs the original; what it leaves in memory, or nothing if it does not come to an end.
    pub fn run_original(&self, schedule: &Schedule) -> Option<Vec<Vec<u8>>> {
        self.reset();
        let grid = self.launch(&self.original, &self.parameters, schedule);
        grid.run(&mut schedule.moves.clone().into_iter()).ok()?;
        (self.tally() == self.once()).then(|| self.contents())
    }

    /// Runs the guarded kernel by a schedule, relaunching it until it is whole, and says what is wrong.
    pub fn check(&self, schedule: &Schedule) -> Result<(), String> {
        let _one_at_a_time = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.reset();
        let mut moves = schedule.moves.clone().into_iter();
        let mut attempt = 0;
        loop {
            match self.attempt(self.rule, attempt, schedule.room, &mut moves) {
                End::Whole => break,
                End::Cut => self.check_cut()?,
                end => return Err(format!("attempt {attempt} ends as {end:?}")),
            }
            attempt += 1;
            // Every attempt but the last uses up a move.
            if attempt > schedule.moves.len() + 2 {
                return Err("it never becomes whole".into());
            }
        }
        self.check_whole()?;
        let result = self.contents();
        // A launch that is whole may be launched again, whatever the stop word says.
        for stop in [1, 0] {
            self.set(self.words.stop, stop);
            attempt += 1;
            let end = self.attempt(self.rule, attempt, schedule.room, &mut Vec::new().into_iter());
            if end != End::Whole {
                return Err(format!("relaunched when it was whole, it ends as {end:?}"));
            }
            self.check_whole()?;
            if self.contents() != result {
                return Err("relaunched when it was whole, it changed something".into());
            }
        }
        match result.iter().zip(&self.expected).position(|(is, was)| is != was) {
            Some(buffer) if !self.order_matters() => {
                Err(format!("buffer {buffer} differs from the original's"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the original's results depend on the order of events after all, which a few tries need not show.
    fn order_matters(&self) -> bool {
        let differs = |schedule: &Schedule| self.run_original(schedule).as_ref() != Some(&self.expected);
        *self.order_matters.get_or_init(|| orders(self.rule, MANY).iter().any(differs))
    }

    /// A first attempt under any rule, from the beginning.
    pub fn attempt_under(&self, rule: Rule, schedule: &Schedule) -> End {
        let _one_at_a_time = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.reset();
        self.attempt(rule, 0, schedule.room, &mut schedule.moves.clone().into_iter())
    }

    /// One attempt. The host's part: an empty `away` word, and under the ordered rule an empty cell.
    fn attempt(
        &self,
        rule: Rule,
        attempt: usize,
        room: usize,
        moves: &mut std::vec::IntoIter<super::schedule::Move>,
    ) -> End {
        let again = if attempt > 0 { Mode::AGAIN } else { Mode::FIRST };
        let second = if attempt % 2 == 1 { Mode::SECOND_CELL } else { Mode::FIRST };
        let ordered = if rule == Rule::Ordered { Mode::ORDERED } else { Mode::FIRST };
        let mode = again | second | ordered;
        self.set(self.words.away, 0);
        if attempt > 0 && rule == Rule::Ordered {
            let cell = self.words.marks + 8 * (attempt as u64 % 2);
            self.space.store_word(cell, Word::Eight, 0).expect("marks are in memory");
        }
        let parameters = self.with_control(mode);
        let schedule = Schedule { room, ..Schedule::new(Vec::new()) };
        match self.launch(&self.guarded, &parameters, &schedule).run(moves) {
            Err(end) => end,
            Ok(()) if self.get(self.words.away) == 0 => End::Whole,
            Ok(()) => End::Cut,
        }
    }

    fn with_control(&self, mode: Mode) -> Vec<u8> {
        let mut parameters = self.parameters.clone();
        parameters.resize(self.control_offset as usize, 0);
        for address in [self.words.stop, self.words.marks, self.words.away] {
            parameters.extend(address.to_le_bytes());
        }
        parameters.extend(SERIAL.to_le_bytes());
        parameters.extend(mode.0.to_le_bytes());
        assert_eq!(parameters.len(), (self.control_offset + Control::SIZE) as usize);
        parameters
    }

    fn launch(&self, kernel: &Kernel, parameters: &[u8], schedule: &Schedule) -> Grid<'_> {
        let launch = Launch {
            kernel: kernel.clone(),
            grid: self.grid,
            block: self.block,
            dynamic_shared: self.dynamic_shared,
            parameters: parameters.into(),
            grid_workspace: 0,
            grid_id: 7,
            sm_count: 4,
            sms: None,
            stack_limit: 64 << 10,
            output: Arc::new(Output::default()),
        };
        Grid {
            space: &self.space,
            launch: Arc::new(launch),
            stop: self.words.stop,
            room: schedule.room,
            order: schedule.order,
        }
    }

    /// What must hold of a launch that was cut.
    fn check_cut(&self) -> Result<(), String> {
        let tally = self.tally();
        if self.get(self.words.away) != SERIAL {
            return Err(format!("an attempt ended with `away` = {}", self.get(self.words.away)));
        }
        if tally.iter().any(|&runs| runs > 1) {
            return Err(format!("a block ran twice: {tally:?}"));
        }
        if tally == self.once() {
            return Err("a whole launch is said to be cut".into());
        }
        if self.rule == Rule::Ordered && !tally.is_sorted_by(|a, b| a >= b) {
            return Err(format!("what ran is no prefix: {tally:?}"));
        }
        Ok(())
    }

    fn check_whole(&self) -> Result<(), String> {
        let tally = self.tally();
        if tally != self.once() {
            return Err(format!("not every block ran exactly once: {tally:?}"));
        }
        let marked = match self.rule {
            Rule::Plain => {
                self.read_words(self.words.marks, self.blocks()).iter().all(|&mark| mark == SERIAL)
            }
            Rule::Ordered => {
                self.cells().iter().any(|cell| cell.serial == SERIAL && cell.limit as usize >= self.blocks())
            }
        };
        if !marked {
            return Err("the marks do not say that it is whole".into());
        }
        Ok(())
    }

    fn cells(&self) -> [Cell; 2] {
        [0, 8].map(|offset| {
            let word = self.space.load_word(self.words.marks + offset, Word::Eight);
            Cell::from_word(word.expect("marks are in memory"))
        })
    }

    fn set(&self, address: u64, value: u64) {
        self.space.store_word(address, Word::Four, value).expect("the word is in memory");
    }

    fn get(&self, address: u64) -> u32 {
        self.space.load_word(address, Word::Four).expect("the word is in memory") as u32
    }

    fn read_words(&self, address: u64, count: usize) -> Vec<u32> {
        (0..count as u64).map(|i| self.get(address + 4 * i)).collect()
    }

    /// Everything as before the launch; in the marks, what another launch has left.
    fn reset(&self) {
        for (address, bytes) in &self.memory {
            self.space.write(*address, bytes).expect("buffers are in memory");
        }
        let leftover = vec![0xa5; 4 * self.blocks().max(4)];
        self.space.write(self.words.marks, &leftover).expect("marks are in memory");
        let none = vec![0; 4 * self.blocks()];
        self.space.write(self.words.tally, &none).expect("the count is in memory");
        self.set(self.words.stop, 0);
    }

    fn contents(&self) -> Vec<Vec<u8>> {
        let read = |(address, bytes): &(u64, Vec<u8>)| {
            let mut now = vec![0; bytes.len()];
            self.space.read(*address, &mut now).expect("buffers are in memory");
            now
        };
        self.memory.iter().map(read).collect()
    }
}
