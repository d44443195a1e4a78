//! Simulated seconds per second, for one GPU. Time is that of this thread, so that a busy machine does not change the figures
//! much.
//!
//! `cargo bench -p sim --bench worlds`

#[path = "../tests/common/mod.rs"]
mod common;

use common::{eager, ebb, ms, serving};
use model::{Kind, Nanos};
use rustix::time::{ClockId, clock_gettime};
use sim::rivals::Rival;
use sim::{Scheduler, Sharing, Switch, World};

const LENGTH: Nanos = ms(20_000);

fn cpu_time() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

fn measure(what: &str, world: &World, scheduler: &mut dyn Scheduler) {
    let begin = cpu_time();
    let log = sim::run(world, scheduler).expect("the world is in order");
    let took = cpu_time() - begin;
    let speed = world.until.as_secs_f64() / took;
    println!(
        "{what:<44} {speed:>8.0} s/s {:>9} events, {:>5.0} ns each",
        log.events,
        took * 1e9 / log.events as f64
    );
}

fn main() {
    type Make = fn(Sharing, Nanos) -> World;
    let worlds: [(&str, Make); 2] =
        [("600 graphs/s of 165 kernels", serving), ("90 eager requests/s of 165 kernels", eager)];
    for (what, make) in worlds {
        let mut world = make(Sharing::Shared, LENGTH);
        world.decisions = 0;
        println!("{what}, beside a training of 900 launches an iteration");
        for kind in Kind::ALL {
            measure(&format!("  {}, shared", kind.name()), &world, &mut ebb(kind));
        }
        for rival in Rival::ALL {
            measure(&format!("  {}", rival.name()), &world, rival.scheduler().as_mut());
        }
        for sharing in [Sharing::Isolated, Sharing::TimeSlicing, Sharing::Mps, Sharing::MpsPriority] {
            let world = World { sharing, ..world.clone() };
            measure(&format!("  {sharing:?}, the token only"), &world, &mut Switch::default());
        }
        let world = World { sharing: Sharing::Isolated, ..world };
        measure("  slo, isolated", &world, &mut ebb(Kind::Slo));
    }
}
