//! The synthetic tenants, of the shape measured on an H200: requests of a few short launches, and an endless
//! job of grids that fill the GPU. Of each there are two, by *scene*.
//!
//! A tenant is a process of its own. It says `ready` when it has a context and its kernel, waits for a line
//! on standard input, works for the given time with `progress` lines in between, and ends with its report. It ends
//! early when its standard input ends after that line: whoever started it wants no more of it, or is no more.

use std::fmt;
use std::io::{BufRead, Write};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::{Class, Nanos, UnknownWord};
use scenario::Draw;

use crate::driver::{Driver, Function};
use crate::{Error, Quantiles, Report};

const SOURCE: &str = include_str!("../kernels/tenant.ptx");
const MULTIPROCESSORS: u32 = 16;

/// What a tenant does.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    pub class: Class,
    pub scene: Scene,
    pub span: Duration,
    pub seed: u64,
}

/// What the tenants are like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scene {
    /// Requests come by chance and hand over all their launches at once; best-effort blocks are long.
    #[default]
    Bursts,
    /// A request prepares its launches one by one, for most of its time, and the next one follows at once: nearly all the time
    /// that the GPU is idle lies inside requests. Best-effort blocks are short.
    LaunchBound,
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scene::Bursts => "bursts",
            Scene::LaunchBound => "launch-bound",
        })
    }
}

impl FromStr for Scene {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Scene, UnknownWord> {
        let named = [Scene::Bursts, Scene::LaunchBound].into_iter().find(|scene| scene.to_string() == word);
        named.ok_or_else(|| UnknownWord { word: word.to_owned(), expected: "bursts, launch-bound" })
    }
}

/// Launches per request, their blocks' length, and the mean time between arrivals: a model that answers in some
/// milliseconds and keeps a GPU busy for a tenth of the time.
pub const REQUEST_LAUNCHES: u32 = 8;
const REQUEST_BLOCK: Nanos = Nanos::from_micros(200);
const ARRIVALS: Duration = Duration::from_millis(16);
/// A request that is bound by its launches: to prepare each takes ten times as long as it runs.
pub const PREPARED_LAUNCHES: u32 = 20;
const PREPARED_BLOCK: Nanos = Nanos::from_micros(100);
const PREPARATION: Duration = Duration::from_millis(1);
/// So much shared memory that an SM has room for one block.
const WHOLE_SM: u32 = 200 << 10;
const THREADS: u32 = 32;

/// One best-effort iteration: so many waves of blocks of this length, one block to an SM.
fn iteration(scene: Scene) -> (u32, Nanos) {
    match scene {
        Scene::Bursts => (20, Nanos::from_micros(1000)),
        Scene::LaunchBound => (400, Nanos::from_micros(100)),
    }
}

/// Runs a tenant to its end, talking over the given streams.
pub fn serve(
    path: &Path,
    job: Job,
    mut commands: impl BufRead + Send + 'static,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let mut tenant = Tenant::prepare(path, job.class)?;
    say(out, "ready")?;
    // Where there is nobody to say the word, nobody can take it back either.
    if commands.read_line(&mut String::new()).map_err(Error::Start)? > 0 {
        let enough = Arc::clone(&tenant.enough);
        std::thread::spawn(move || {
            let _ = commands.read_line(&mut String::new());
            enough.store(true, Ordering::Relaxed);
        });
    }
    let report = match job.class {
        Class::Latency if job.scene == Scene::LaunchBound => tenant.answer_one_by_one(job, out)?,
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
    sms: u32,
    /// What the blocks launched so far take of the GPU.
    busy: Nanos,
    /// When it finished something last, or began; and the longest time between two such moments.
    last_finished: Instant,
    longest_pause: Nanos,
    /// Nobody wants any more of it.
    enough: Arc<AtomicBool>,
}

/// Where the blocks of some launches leave their traces, and what must stand there when all have run.
struct Trace {
    counts: u64,
    expected: [u64; 2],
}

impl Trace {
    fn new(driver: &Driver) -> Result<Trace, Error> {
        Ok(Trace { counts: driver.allocate(2)?, expected: [0, 0] })
    }

    /// Whether every block launched so far has run exactly once.
    fn is_right(&self, driver: &Driver) -> Result<bool, Error> {
        Ok(driver.read::<2>(self.counts)? == self.expected)
    }
}

impl Tenant {
    fn prepare(path: &Path, class: Class) -> Result<Tenant, Error> {
        let priority = if class == Class::Latency { -5 } else { 0 };
        let driver = Driver::open(path, priority)?;
        let work = driver.function(SOURCE, "work")?;
        driver.allow_shared(work, WHOLE_SM)?;
        let sms = driver.attribute(MULTIPROCESSORS)?.unsigned_abs();
        let (last_finished, longest_pause) = (Instant::now(), Nanos::ZERO);
        Ok(Tenant {
            driver,
            work,
            sms,
            busy: Nanos::ZERO,
            last_finished,
            longest_pause,
            enough: Arc::default(),
        })
    }

    /// It begins now; the time before that was nobody's.
    fn begin(&mut self) -> Instant {
        self.last_finished = Instant::now();
        self.last_finished
    }

    /// A request or an iteration is finished.
    fn finish(&mut self) {
        let now = Instant::now();
        self.longest_pause = self.longest_pause.max(Nanos::from(now - self.last_finished));
        self.last_finished = now;
    }

    /// Launches so many waves of blocks that each take an SM for `length`.
    fn launch(&mut self, trace: &mut Trace, waves: u32, shared: u32, length: Nanos) -> Result<(), Error> {
        let blocks = self.sms * waves;
        self.driver.launch(self.work, blocks, THREADS, shared, [trace.counts, length.0])?;
        self.busy += Nanos(length.0 * u64::from(waves));
        trace.expected[0] += u64::from(blocks);
        let each = |block: u32| u64::from(block.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
        trace.expected[1] = (0..blocks).map(each).fold(trace.expected[1], u64::wrapping_add);
        Ok(())
    }

    fn has_enough(&self) -> bool {
        self.enough.load(Ordering::Relaxed)
    }

    fn answer_requests(&mut self, job: Job, out: &mut dyn Write) -> Result<Report, Error> {
        let begin = self.begin();
        let mut arrivals = Arrivals { draw: Draw::new(job.seed), next: Duration::ZERO };
        let mut trace = Trace::new(&self.driver)?;
        let (mut latencies, mut right) = (Vec::new(), 0);
        let mut said = 0;
        loop {
            let arrival = arrivals.next();
            if arrival >= job.span || self.has_enough() {
                break;
            }
            std::thread::sleep(arrival.saturating_sub(begin.elapsed()));
            for _ in 0..REQUEST_LAUNCHES {
                self.launch(&mut trace, 1, 0, REQUEST_BLOCK)?;
            }
            self.driver.synchronize()?;
            self.finish();
            latencies.push(Nanos::from(begin.elapsed() - arrival));
            right += u64::from(trace.is_right(&self.driver)?);
            progress(out, &mut said, begin.elapsed(), job.span)?;
        }
        Ok(self.report(begin, latencies, right))
    }

    /// As a program whose processor is slower than its GPU. A launch is handed over when it is prepared, whether or not those before
    /// it have run. When that is, counts from the beginning of the request: a processor that comes late, because it has others to
    /// serve here, catches up, as the software GPU itself does.
    fn answer_one_by_one(&mut self, job: Job, out: &mut dyn Write) -> Result<Report, Error> {
        let begin = self.begin();
        let mut trace = Trace::new(&self.driver)?;
        let (mut latencies, mut right) = (Vec::new(), 0);
        let mut said = 0;
        while begin.elapsed() < job.span && !self.has_enough() {
            let arrival = Instant::now();
            for launch in 1..=PREPARED_LAUNCHES {
                std::thread::sleep((PREPARATION * launch).saturating_sub(arrival.elapsed()));
                self.launch(&mut trace, 1, WHOLE_SM, PREPARED_BLOCK)?;
            }
            self.driver.synchronize()?;
            self.finish();
            latencies.push(Nanos::from(arrival.elapsed()));
            right += u64::from(trace.is_right(&self.driver)?);
            progress(out, &mut said, begin.elapsed(), job.span)?;
        }
        Ok(self.report(begin, latencies, right))
    }

    fn report(&self, begin: Instant, latencies: Vec<Nanos>, right: u64) -> Report {
        let (done, span) = (latencies.len() as u64, Nanos::from(begin.elapsed()));
        let (busy, longest_pause) = (self.busy, self.longest_pause);
        Report { done, right, span, busy, longest_pause, latencies: Quantiles::of(latencies) }
    }

    /// One iteration is always handed over ahead, as a training does it, so that the GPU need not wait for us.
    fn iterate(&mut self, job: Job, out: &mut dyn Write) -> Result<Report, Error> {
        let begin = self.begin();
        let mut report = Report::default();
        let mut said = 0;
        let (waves, block) = iteration(job.scene);
        let mut traces = [Trace::new(&self.driver)?, Trace::new(&self.driver)?];
        let events = [self.driver.event()?, self.driver.event()?];
        for turn in [0, 1].into_iter().cycle() {
            let more = begin.elapsed() < job.span && !self.has_enough();
            if more {
                self.launch(&mut traces[turn], waves, WHOLE_SM, block)?;
                self.driver.record(events[turn])?;
                report.done += 1;
            }
            if report.done > u64::from(more) {
                let before = 1 - turn;
                self.driver.await_event(events[before])?;
                self.finish();
                report.right += u64::from(traces[before].is_right(&self.driver)?);
                progress(out, &mut said, begin.elapsed(), job.span)?;
            }
            if !more {
                break;
            }
        }
        report.span = Nanos::from(begin.elapsed());
        (report.busy, report.longest_pause) = (self.busy, self.longest_pause);
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
    draw: Draw,
    next: Duration,
}

impl Arrivals {
    fn next(&mut self) -> Duration {
        self.next += ARRIVALS.mul_f64(self.draw.exponential());
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenes_are_named() {
        for scene in [Scene::Bursts, Scene::LaunchBound] {
            assert_eq!(scene.to_string().parse::<Scene>().unwrap(), scene);
        }
        assert!("bound".parse::<Scene>().is_err());
    }

    #[test]
    fn arrivals_have_the_mean_they_promise_and_repeat() {
        let last = |seed| {
            let mut arrivals = Arrivals { draw: Draw::new(seed), next: Duration::ZERO };
            (0..10_000).map(|_| arrivals.next()).last().unwrap()
        };
        let mean = last(1).as_secs_f64() / 10_000.0;
        assert!((mean / ARRIVALS.as_secs_f64() - 1.0).abs() < 0.05, "{mean}");
        assert_eq!(last(1), last(1));
        assert_ne!(last(1), last(2));
    }
}
