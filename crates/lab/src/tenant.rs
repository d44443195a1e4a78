//! The synthetic tenants, of the shape measured on an H200: requests of a few short launches, and an endless
//! job of grids that fill the GPU.
//!
//! A tenant is a process of its own. It says `ready` when it has a context and its kernel, waits for a line
//! on standard input, works for the given time with `progress` lines in between, and ends with its report.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use model::{Class, Nanos};

use crate::driver::{Driver, Function};
use crate::{Error, Quantiles, Report};

const SOURCE: &str = include_str!("../kernels/tenant.ptx");
const MULTIPROCESSORS: u32 = 16;

/// What a tenant does.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub class: Class,
    pub span: Duration,
    pub seed: u64,
}

/// Launches per request, their blocks' length, and the mean time between arrivals: a model that answers in some
/// milliseconds and keeps a GPU busy for a tenth of the time.
pub const REQUEST_LAUNCHES: u32 = 8;
const REQUEST_BLOCK: Nanos = Nanos::from_micros(200);
const ARRIVALS: Duration = Duration::from_millis(16);
/// One best-effort iteration: so many waves of blocks of this length, one block to an SM.
const WAVES: u32 = 20;
const ITERATION_BLOCK: Nanos = Nanos::from_micros(1000);
/// So much shared memory that an SM has room for one block.
const WHOLE_SM: u32 = 200 << 10;
const THREADS: u32 = 32;

/// Runs a tenant to its end, talking over the given streams.
pub fn serve(path: &Path, job: Job, commands: &mut dyn BufRead, out: &mut dyn Write) -> Result<(), Error> {
    let mut tenant = Tenant::prepare(path, job.class)?;
    say(out, "ready")?;
    commands.read_line(&mut String::new()).map_err(Error::Start)?;
    let report = match job.class {
        Class::Latency => tenant.answer_requests(job, out)?,
        Class::BestEffort => tenant.iterate(job, out)?,
    };
    say(out, &report.to_string())
}

fn say(out: &mut dyn Write, line: &str) -> Result<(), Error> {
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::Start)
}

struct Tenant {
    driver: Driver,
    work: Function,
    counts: u64,
    sms: u32,
    expected: [u64; 2],
    /// What the blocks launched so far take of the GPU.
    busy: Nanos,
}

impl Tenant {
    fn prepare(path: &Path, class: Class) -> Result<Tenant, Error> {
        let priority = if class == Class::Latency { -5 } else { 0 };
        let driver = Driver::open(path, priority)?;
        let work = driver.function(SOURCE, "work")?;
        driver.allow_shared(work, WHOLE_SM)?;
        let counts = driver.allocate(2)?;
        let sms = driver.attribute(MULTIPROCESSORS)?;
        Ok(Tenant { driver, work, counts, sms: sms.unsigned_abs(), expected: [0, 0], busy: Nanos::ZERO })
    }

    /// Launches so many waves of blocks that each take an SM for `length`.
    fn launch(&mut self, waves: u32, shared: u32, length: Nanos) -> Result<(), Error> {
        let blocks = self.sms * waves;
        self.driver.launch(self.work, blocks, THREADS, shared, [self.counts, length.0])?;
        self.busy += Nanos(length.0 * u64::from(waves));
        self.expected[0] += u64::from(blocks);
        let trace = |block: u32| u64::from(block.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        self.expected[1] = (0..blocks).map(trace).fold(self.expected[1], u64::wrapping_add);
        Ok(())
    }

    /// Whether every block launched so far has run exactly once.
    fn check(&self) -> Result<bool, Error> {
        Ok(self.driver.read::<2>(self.counts)? == self.expected)
    }

    fn answer_requests(&mut self, job: Job, out: &mut dyn Write) -> Result<Report, Error> {
        let begin = Instant::now();
        let mut arrivals = Arrivals { seed: job.seed, next: Duration::ZERO };
        let (mut latencies, mut right) = (Vec::new(), 0);
        let mut said = 0;
        loop {
            let arrival = arrivals.next();
            if arrival >= job.span {
                break;
            }
            std::thread::sleep(arrival.saturating_sub(begin.elapsed()));
            for _ in 0..REQUEST_LAUNCHES {
                self.launch(1, 0, REQUEST_BLOCK)?;
            }
            self.driver.synchronize()?;
            latencies.push(Nanos::from(begin.elapsed() - arrival));
            right += u64::from(self.check()?);
            progress(out, &mut said, begin.elapsed(), job.span)?;
        }
        let latencies = Quantiles::of(latencies);
        let at = |q| latencies.at(q).unwrap_or_default();
        let done = latencies.count() as u64;
        let span = Nanos::from(begin.elapsed());
        Ok(Report { done, right, p50: at(0.5), p99: at(0.99), max: at(1.0), span, busy: self.busy })
    }

    fn iterate(&mut self, job: Job, out: &mut dyn Write) -> Result<Report, Error> {
        let begin = Instant::now();
        let mut report = Report::default();
        let mut said = 0;
        while begin.elapsed() < job.span {
            self.launch(WAVES, WHOLE_SM, ITERATION_BLOCK)?;
            self.driver.synchronize()?;
            report.done += 1;
            report.right += u64::from(self.check()?);
            progress(out, &mut said, begin.elapsed(), job.span)?;
        }
        report.span = Nanos::from(begin.elapsed());
        report.busy = self.busy;
        Ok(report)
    }
}

/// Says how far the tenant is, in per cent, when that has changed.
fn progress(out: &mut dyn Write, said: &mut u128, elapsed: Duration, span: Duration) -> Result<(), Error> {
    let percent = (elapsed.as_micros() * 100 / span.as_micros().max(1)).min(100);
    if percent > *said {
        *said = percent;
        say(out, &format!("progress {percent}"))?;
    }
    Ok(())
}

/// Poisson arrivals, the same for the same seed.
struct Arrivals {
    seed: u64,
    next: Duration,
}

impl Arrivals {
    fn next(&mut self) -> Duration {
        // splitmix64: small, and good enough for inter-arrival times.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.seed;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let uniform = ((bits >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        self.next += ARRIVALS.mul_f64(-uniform.ln());
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_have_the_mean_they_promise_and_repeat() {
        let last = |seed| {
            let mut arrivals = Arrivals { seed, next: Duration::ZERO };
            (0..10_000).map(|_| arrivals.next()).last().unwrap()
        };
        let mean = last(1).as_secs_f64() / 10_000.0;
        assert!((mean / ARRIVALS.as_secs_f64() - 1.0).abs() < 0.05, "{mean}");
        assert_eq!(last(1), last(1));
        assert_ne!(last(1), last(2));
    }
}
