//! Simulated seconds per second, for every scenario of the lab's suites in every way of sharing. Time is that of this thread, and the
//! best of some runs, because other programs on the machine cost time by the caches that they empty.
//!
//! ```sh
//! cargo bench -p sim --bench suites                       # a line for each scenario, then a table
//! cargo bench -p sim --bench suites -- disb mps,fikit     # scenarios whose names contain this, in these ways
//! cargo bench -p sim --bench suites -- --digest           # a word for each log, to be compared before and after a change
//! ```

use std::hash::{DefaultHasher, Hash, Hasher};

use rustix::time::{ClockId, clock_gettime};
use scenario::Suite;
use scenario::profile::Profile;
use sim::stage::{Stage, Way};
use sim::{Card, Hand, World};

/// Every way there is, in the columns of `docs/sim.md`.
const WAYS: &str = "strict@shared,gaps@shared,slo@shared,fair@shared,deadline@shared,strict,gaps,slo,fair,deadline,switch,\
                    timeslice,mps,mps-priority,fikit,hummingbird,tally,reef,reef-n";

/// How often each world is played.
const RUNS: usize = 7;

/// What is wanted of every world.
const WANTED: f64 = 1_000.0;

fn cpu_time() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

fn speed(world: &World, way: &Way) -> f64 {
    let run = |_| {
        let mut scheduler = way.scheduler();
        let begin = cpu_time();
        sim::run(world, scheduler.as_mut()).expect("the world is in order");
        cpu_time() - begin
    };
    world.until.as_secs_f64() / (0..RUNS).map(run).fold(f64::MAX, f64::min)
}

/// Of everything that happened, but for how often the engine looked.
fn digest(world: &World, way: &Way) -> u64 {
    let mut log = sim::run(world, way.scheduler().as_mut()).expect("the world is in order");
    log.events = 0;
    let mut hasher = DefaultHasher::new();
    format!("{log:?}").hash(&mut hasher);
    hasher.finish()
}

fn main() {
    let (options, words): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let digests = options.iter().any(|option| option == "--digest");
    let part = words.first().map_or("", String::as_str);
    let named = words.get(1).map_or(WAYS, String::as_str).split(',');
    let ways: Vec<Way> = named.map(|word| Way::parse(word, None, Hand::default()).expect("a way")).collect();
    let mut speeds: Vec<Vec<(f64, String)>> = vec![Vec::new(); ways.len()];
    for name in Suite::names() {
        for scenario in Suite::named(name).expect("it is embedded").scenarios {
            let full = format!("{name}/{}", scenario.name);
            let stage = Stage::of_scenario(name, &scenario, &Card::h200(), &Profile::built_in);
            let Some(stage) = stage.ok().filter(|_| full.contains(part)) else { continue };
            print!("{full}");
            for (way, speeds) in ways.iter().zip(&mut speeds) {
                let world = stage.world(way.sharing(), 0);
                if digests {
                    print!(" | {way} {:016x}", digest(&world, way));
                } else {
                    let speed = speed(&world, way);
                    print!(" | {way} {speed:.0}");
                    speeds.push((speed, full.clone()));
                }
            }
            println!();
        }
    }
    if !digests {
        summary(&ways, speeds);
    }
}

/// As in `docs/sim.md`.
fn summary(ways: &[Way], speeds: Vec<Vec<(f64, String)>>) {
    println!("\n| way | slowest | in | half are above | below {WANTED} |\n|---|---|---|---|---|");
    for (way, mut speeds) in ways.iter().zip(speeds) {
        speeds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let Some((slowest, scenario)) = speeds.first() else { continue };
        let below = speeds.iter().filter(|(speed, _)| *speed < WANTED).count();
        let half = speeds[speeds.len() / 2].0;
        println!("| `{way}` | {slowest:.0} | {scenario} | {half:.0} | {below} of {} |", speeds.len());
    }
}
