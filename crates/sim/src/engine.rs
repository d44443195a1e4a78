//! The way in: a world and a scheduler become a log.

use model::{Class, Domain};
use policy::Who;

use crate::contexts::Contexts;
use crate::desk::Desk;
use crate::floor::Floor;
use crate::lane::Lane;
use crate::log::Log;
use crate::{Error, Scheduler, World};

/// Plays the world from its beginning to its end.
///
/// Tenants are played in an order of their own, by class, priority and name, so that the order in which a world lists them changes
/// nothing but the order of the log. Seats that a scheduler sees are places in that order.
pub fn run(world: &World, scheduler: &mut dyn Scheduler) -> Result<Log, Error> {
    world.check()?;
    let means = scheduler.means();
    let order = order(world);
    let lanes: Vec<Lane> =
        order.iter().map(|&place| Lane::new(&world.tenants[place], world, &means)).collect();
    let desk = Desk::new(scheduler, world, &lanes);
    let log = match world.sharing.domain() {
        Domain::Isolated => Contexts::new(world, lanes, desk).play(),
        Domain::Shared => Floor::new(world, lanes, means, desk).play(),
    };
    Ok(as_listed(log, &order))
}

/// The tenants' places in the world, in the order in which they are seated.
fn order(world: &World) -> Vec<usize> {
    let mut order: Vec<usize> = (0..world.tenants.len()).collect();
    order.sort_by(|&a, &b| {
        let key = |place: usize| {
            let tenant = &world.tenants[place];
            (tenant.class == Class::BestEffort, u32::MAX - tenant.priority, &tenant.name)
        };
        key(a).cmp(&key(b))
    });
    order
}

/// The log, by places in the world's list instead of seats.
fn as_listed(mut log: Log, order: &[usize]) -> Log {
    let mut places: Vec<_> = order.iter().copied().zip(log.tenants).collect();
    places.sort_by_key(|&(place, _)| place);
    log.tenants = places.into_iter().map(|(_, played)| played).collect();
    for decided in &mut log.decisions {
        if let Who::One(seat) = decided.who {
            let place = order.get(seat as usize).copied().unwrap_or(seat as usize);
            decided.who = Who::One(place as u32);
        }
    }
    log
}
