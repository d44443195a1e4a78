//! One tenant at work: requests one at a time as they come, or iterations without end.
//!
//! A thread has a performer of its own, with a stream of its own in the context that all of them share.

use std::path::Path;

use model::{Class, Nanos};

use super::card::{Card, nanos_per_round, shortest};
use super::clock::{now, sleep_until, wait_until};
use super::plan::{Kernel, Part, Plan};
use super::protocol::Ran;
use super::trace::{Traces, Verdict, salt};
use crate::Error;
use crate::driver::{Driver, Event, Function};

const SOURCE: &str = include_str!("../../kernels/player.ptx");

/// When a run begins and ends, and what is asked in it.
pub struct Run {
    pub begin: Nanos,
    /// When requests arrive, from the begin; nothing for a closed loop.
    pub due: Option<Vec<Nanos>>,
    /// From here on a closed loop begins nothing new.
    pub until: Nanos,
    /// What has not begun by then stays undone.
    pub drained: Nanos,
}

pub struct Performer {
    driver: Driver,
    work: Function,
    pub card: Card,
    class: Class,
    plan: Plan,
    /// Of each kernel in the order of `Plan::kernels`: how long a block sleeps or how many rounds it computes.
    amounts: Vec<[u64; 2]>,
    traces: Traces,
    /// Marks behind the last two iterations.
    ends: [Event; 2],
    /// A mark whose time is known by our clock.
    origin: Event,
    /// What a request takes of the GPU.
    pub gpu: Nanos,
}

/// What a run of requests notes, in moments of our clock.
#[derive(Default)]
struct Notes {
    starts: Vec<Nanos>,
    firsts: Vec<Nanos>,
    ends: Vec<Nanos>,
    verdicts: Vec<Verdict>,
}

impl Performer {
    /// Opens the driver and learns what there is to learn; `plan` is told of the card and says what is to be done.
    pub fn prepare(
        path: &Path,
        priority: i32,
        class: Class,
        plan: impl FnOnce(&Card) -> Result<Plan, Error>,
    ) -> Result<Performer, Error> {
        let driver = Driver::open(path, priority)?;
        let card = Card::of(&driver)?;
        let plan = plan(&card)?;
        let work = driver.function(SOURCE, "work")?;
        driver.allow_shared(work, card.whole_room())?;
        let traces = Traces::new(&driver, &plan)?;
        let ends = [driver.timed_event()?, driver.timed_event()?];
        let origin = driver.timed_event()?;
        let gpu = plan.nominal();
        let amounts = plan.kernels().map(|kernel| [kernel.length.0, 0]).collect();
        let mut performer = Performer { driver, work, card, class, plan, amounts, traces, ends, origin, gpu };
        if !performer.card.is_software() {
            performer.measure_card()?;
        }
        // The first launch of a kernel loads it.
        performer.hand_over_all(0)?;
        performer.driver.synchronize()?;
        Ok(performer)
    }

    pub fn cuda_version(&self) -> Result<String, Error> {
        self.driver.version()
    }

    /// Turns the lengths of blocks into rounds of arithmetic, and measures what a request takes.
    fn measure_card(&mut self) -> Result<(), Error> {
        const LONG_ENOUGH: f64 = 2e6;
        const TRIES: u32 = 5;
        let scratch = self.driver.allocate(2)?;
        let first = *self.plan.kernels().next().expect("every workload launches something");
        let mut shape = first.shape;
        shape.blocks = shape.blocks.div_ceil(first.waves);
        let pace = self.driver.function(SOURCE, "pace")?;
        self.driver.allow_shared(pace, self.card.whole_room())?;
        let each = nanos_per_round(&self.driver, pace, shape, scratch)?;
        let rounds = |nanos: f64| ((nanos / each).round() as u64).clamp(1, u32::MAX.into());
        let lengths = self.plan.kernels().map(|kernel| [0, rounds(kernel.length.0 as f64)]);
        self.amounts = lengths.collect();
        let delay = || self.driver.launch_shaped(self.work, shape, [scratch, 0, rounds(LONG_ENOUGH), 0]);
        self.gpu = shortest(&self.driver, TRIES, delay, || self.hand_over_all(0))?;
        Ok(())
    }

    /// All launches of a request at once, for those who want no host in between.
    fn hand_over_all(&self, place: usize) -> Result<(), Error> {
        let mut launch = 0;
        let mut done = 0;
        for part in &self.plan.parts {
            for _ in 0..part.times {
                for (kernel, amount) in part.kernels.iter().zip(&self.amounts[done..]) {
                    self.launch(kernel, *amount, self.traces.at(place), salt(0, launch))?;
                    launch += 1;
                }
            }
            done += part.kernels.len();
        }
        Ok(())
    }

    fn launch(&self, kernel: &Kernel, amount: [u64; 2], trace: u64, salt: u64) -> Result<(), Error> {
        let [nanoseconds, rounds] = amount;
        self.driver.launch_shaped(self.work, kernel.shape, [trace, nanoseconds, rounds, salt])
    }

    /// Hands over the kernels of a part, each when its time has come.
    fn hand_over(
        &self,
        part: &Part,
        amounts: &[[u64; 2]],
        trace: u64,
        mut salt_of_next: impl FnMut() -> u64,
    ) -> Result<Nanos, Error> {
        let begin = now();
        for (kernel, amount) in part.kernels.iter().zip(amounts) {
            if kernel.at > Nanos::ZERO {
                self.pace(begin + kernel.at);
            }
            self.launch(kernel, *amount, trace, salt_of_next())?;
        }
        Ok(begin)
    }

    /// Waits for a moment within a request. A spinning host would take a core from the software GPU; and what wakes late
    /// there is not late the next time, because moments count from the begin.
    fn pace(&self, moment: Nanos) {
        if self.card.is_software() { sleep_until(moment) } else { wait_until(moment) }
    }

    /// Hands over a request, and waits for the end of all its parts, or of all but the last. Returns when the first part
    /// was over, if it was waited for.
    fn request(&self, number: usize, place: usize, wait_for_last: bool) -> Result<Option<Nanos>, Error> {
        let mut launches = 0..;
        let mut salt_of_next = || salt(number, launches.next().expect("it has no end"));
        let trace = self.traces.at(place);
        let mut left: u32 = self.plan.parts.iter().map(|part| part.times).sum();
        let (mut first, mut done) = (None, 0);
        for part in &self.plan.parts {
            for _ in 0..part.times {
                let begin = self.hand_over(part, &self.amounts[done..], trace, &mut salt_of_next)?;
                left -= 1;
                if left > 0 || wait_for_last {
                    self.driver.synchronize()?;
                }
                self.pace(begin + part.host);
                if left > 0 || wait_for_last {
                    first.get_or_insert_with(now);
                }
            }
            done += part.kernels.len();
        }
        Ok(first)
    }

    pub fn run(&mut self, run: &Run) -> Result<Ran, Error> {
        let expected = match &run.due {
            Some(due) => due.len(),
            None => self.most_in(run.until),
        };
        self.traces.begin(&self.driver, expected)?;
        let notes = match (&run.due, self.class) {
            (Some(due), _) => self.answer(run, due)?,
            (None, Class::Latency) => self.answer_in_turn(run)?,
            (None, Class::BestEffort) => self.iterate(run)?,
        };
        Ok(self.told(run.begin, notes))
    }

    /// More requests than this can hardly be served in a closed loop; if they are, there is a pause to look at them.
    fn most_in(&self, span: Nanos) -> usize {
        const MOST: u64 = 1 << 20;
        usize::try_from((span.0 / self.gpu.0.max(1) * 2).min(MOST)).unwrap_or(0)
    }

    /// Requests as they arrive, one at a time in their order, each served however late it is, until the run is drained.
    fn answer(&self, run: &Run, due: &[Nanos]) -> Result<Notes, Error> {
        let mut notes = Notes::default();
        for (number, &due) in due.iter().enumerate() {
            let due = run.begin + due;
            if due > run.begin + run.drained {
                break;
            }
            wait_until(due);
            if now() > run.begin + run.drained {
                break;
            }
            self.serve(number, number, &mut notes)?;
        }
        notes.verdicts = self.traces.verdicts(&self.driver, 0, notes.ends.len())?;
        Ok(notes)
    }

    /// A closed loop of requests.
    fn answer_in_turn(&self, run: &Run) -> Result<Notes, Error> {
        let mut notes = Notes::default();
        wait_until(run.begin);
        while now() < run.begin + run.until {
            let number = notes.ends.len();
            self.serve(number, number % self.traces.room(), &mut notes)?;
            self.look_if_full(number + 1, &mut notes)?;
        }
        self.look_at_rest(&mut notes)?;
        Ok(notes)
    }

    fn serve(&self, number: usize, place: usize, notes: &mut Notes) -> Result<(), Error> {
        notes.starts.push(now());
        let first = self.request(number, place, true)?;
        let end = now();
        notes.ends.push(end);
        notes.firsts.push(first.unwrap_or(end));
        Ok(())
    }

    /// A closed loop of iterations. One is always handed over ahead, as a training does it, so that the GPU need not wait for
    /// us; so when one has ended is not seen from here, and the GPU's own clock says it.
    fn iterate(&self, run: &Run) -> Result<Notes, Error> {
        let mut notes = Notes::default();
        self.driver.record(self.origin)?;
        self.driver.await_event(self.origin)?;
        let origin = now();
        wait_until(run.begin);
        while now() < run.begin + run.until {
            let number = notes.starts.len();
            notes.starts.push(now());
            self.request(number, number % self.traces.room(), false)?;
            self.driver.record(self.ends[number % 2])?;
            if number > 0 {
                self.note_end(origin, number - 1, &mut notes)?;
            }
            if (number + 1).is_multiple_of(self.traces.room()) {
                self.note_end(origin, number, &mut notes)?;
                self.look_if_full(number + 1, &mut notes)?;
            }
        }
        if notes.ends.len() < notes.starts.len() {
            self.note_end(origin, notes.starts.len() - 1, &mut notes)?;
        }
        self.look_at_rest(&mut notes)?;
        Ok(notes)
    }

    fn note_end(&self, origin: Nanos, number: usize, notes: &mut Notes) -> Result<(), Error> {
        // After a pause for looking, the one before is known already.
        if notes.ends.len() > number {
            return Ok(());
        }
        let end = self.ends[number % 2];
        self.driver.await_event(end)?;
        let by_gpu = origin + self.driver.between(self.origin, end)?;
        notes.ends.push(by_gpu.clamp(notes.starts[number], now()));
        Ok(())
    }

    /// Looks at what has been left when there is no room for more.
    fn look_if_full(&self, done: usize, notes: &mut Notes) -> Result<(), Error> {
        if done.is_multiple_of(self.traces.room()) {
            self.look_at_rest(notes)?;
            self.traces.clear(&self.driver)?;
        }
        Ok(())
    }

    fn look_at_rest(&self, notes: &mut Notes) -> Result<(), Error> {
        let first = notes.verdicts.len();
        notes.verdicts.extend(self.traces.verdicts(&self.driver, first, notes.ends.len() - first)?);
        Ok(())
    }

    /// What the lab is told of a run.
    fn told(&self, begin: Nanos, notes: Notes) -> Ran {
        let micros = |moments: &[Nanos]| moments.iter().map(|moment| moment.since(begin).0 / 1000).collect();
        let is_wrong = |(number, verdict): (usize, &Verdict)| (!verdict.is_right).then_some(number);
        let checks = || notes.verdicts.iter().map(|verdict| format!("{:016x}", verdict.check)).collect();
        Ran {
            start_us: micros(&notes.starts),
            end_us: micros(&notes.ends),
            wrong: notes.verdicts.iter().enumerate().filter_map(is_wrong).collect(),
            checks: (self.class == Class::BestEffort).then(checks),
            first_us: self.plan.tokens.filter(|_| !notes.firsts.is_empty()).map(|_| micros(&notes.firsts)),
            tokens: self.plan.tokens.map(|tokens| vec![tokens; notes.ends.len()]),
        }
    }
}
