//! Speed of a software GPU, seen through its C ABI.
//!
//! Every figure is a rate or a ratio. Rates per core divide by the CPU time this process used, not by the time
//! that passed, so that a busy machine and the number of cores do not count.

use std::path::Path;
use std::time::{Duration, Instant};

use model::Nanos;

use crate::driver::{Driver, Function};
use crate::{Error, Quantiles};

const SOURCE: &str = include_str!("../kernels/bench.ptx");
const MULTIPROCESSORS: u32 = 16;
const WARP: u32 = 32;
/// So much shared memory that an SM has room for one block.
const WHOLE_SM: u32 = 200 << 10;

pub struct Bench {
    driver: Driver,
    sink: u64,
    sms: u32,
}

/// How well a load of sleeping blocks kept its pace.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub sms: u32,
    /// Blocks ended over blocks that nominally could have.
    pub share: f64,
    /// CPU time over time passed: cores kept busy.
    pub cores: f64,
}

impl Bench {
    pub fn new(path: &Path) -> Result<Bench, Error> {
        let driver = Driver::open(path, 0)?;
        let sink = driver.allocate(1)?;
        let sms = driver.attribute(MULTIPROCESSORS)?.unsigned_abs();
        Ok(Bench { driver, sink, sms })
    }

    /// Lane-instructions per second and core; one instruction for 32 lanes counts 32.
    pub fn integers(&self) -> Result<f64, Error> {
        self.lane_rate("integers")
    }

    pub fn floats(&self) -> Result<f64, Error> {
        self.lane_rate("floats")
    }

    fn lane_rate(&self, kernel: &str) -> Result<f64, Error> {
        const ROUNDS: u32 = 20_000;
        const PER_ROUND: u64 = 19;
        const AROUND: u64 = 7;
        let function = self.driver.function(SOURCE, kernel)?;
        let (blocks, threads) = (64, 4 * WARP);
        self.run(function, blocks, threads, 0, u64::from(ROUNDS / 10))?;
        let before = cpu_time();
        self.run(function, blocks, threads, 0, u64::from(ROUNDS))?;
        let lanes = u64::from(blocks) * u64::from(threads);
        let instructions = u64::from(ROUNDS) * PER_ROUND + AROUND;
        Ok((lanes * instructions) as f64 / (cpu_time() - before).as_secs_f64())
    }

    /// Empty blocks of one warp per second, all cores together.
    pub fn blocks(&self) -> Result<f64, Error> {
        const BLOCKS: u32 = 2_000_000;
        let function = self.driver.function(SOURCE, "empty")?;
        let begin = Instant::now();
        self.run(function, BLOCKS, WARP, 0, 0)?;
        Ok(f64::from(BLOCKS) / begin.elapsed().as_secs_f64())
    }

    /// From the call of an empty launch to the return of the synchronisation behind it.
    pub fn launches(&self) -> Result<Quantiles, Error> {
        let function = self.driver.function(SOURCE, "empty")?;
        let mut samples = Vec::new();
        for round in 0..12_000 {
            let begin = Instant::now();
            self.run(function, 1, WARP, 0, 0)?;
            // The first rounds warm up threads and caches.
            if round >= 2_000 {
                samples.push(Nanos::from(begin.elapsed()));
            }
        }
        Ok(Quantiles::of(samples))
    }

    /// Every SM busy with one block that sleeps 50 µs, one after another, for about `span`.
    pub fn sleepers(&self, span: Duration) -> Result<Pace, Error> {
        const BLOCK: Duration = Duration::from_micros(50);
        let function = self.driver.function(SOURCE, "sleep")?;
        self.driver.allow_shared(function, WHOLE_SM)?;
        let waves = u32::try_from(span.as_micros() / BLOCK.as_micros()).unwrap_or(u32::MAX);
        let nanos = u64::try_from(BLOCK.as_nanos()).expect("50 µs fit");
        self.run(function, self.sms, WARP, WHOLE_SM, nanos)?;
        let (begin, before) = (Instant::now(), cpu_time());
        self.run(function, self.sms.saturating_mul(waves), WARP, WHOLE_SM, nanos)?;
        let passed = begin.elapsed();
        Ok(Pace {
            sms: self.sms,
            share: (BLOCK * waves).as_secs_f64() / passed.as_secs_f64(),
            cores: (cpu_time() - before).as_secs_f64() / passed.as_secs_f64(),
        })
    }

    fn run(
        &self,
        function: Function,
        blocks: u32,
        threads: u32,
        shared: u32,
        argument: u64,
    ) -> Result<(), Error> {
        self.driver.launch(function, blocks, threads, shared, [self.sink, argument])?;
        self.driver.synchronize()
    }
}

/// CPU time of this process so far, in user and kernel mode.
fn cpu_time() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: a valid place for the answer.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: zeroes are a value of this struct of numbers, and the call can only have written numbers.
    let usage = unsafe { usage.assume_init() };
    let span = |time: libc::timeval| {
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        Duration::from_secs(u64::try_from(time.tv_sec).unwrap_or(0)) + Duration::from_micros(micros)
    };
    span(usage.ru_utime) + span(usage.ru_stime)
}
