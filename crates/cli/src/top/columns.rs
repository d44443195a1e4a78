//! The columns: what is in a cell, how wide it is, how rows are ordered by it, and which fit beside each other.

use std::cmp::Ordering;

use daemon::report::State;

use super::history::KEPT;
use super::short;
use daemon::scene::{Figures, Service, Stop, Tenant, Verdict, rank};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Name,
    User,
    Class,
    Doing,
    Gpu,
    Curve,
    Objective,
    Wait,
    Launches,
    Priority,
    Weight,
    Preemptions,
    Memory,
    Processes,
}

use Column::{
    Class, Curve, Doing, Gpu, Launches, Memory, Name, Objective, Preemptions, Priority, Processes, User,
    Wait, Weight,
};

/// From left to right.
const ORDER: [Column; 14] = [
    Name,
    User,
    Class,
    Doing,
    Gpu,
    Curve,
    Objective,
    Wait,
    Launches,
    Priority,
    Weight,
    Preemptions,
    Memory,
    Processes,
];

/// Those that are given room first stand first. The kind of objective or stop tells the class, so the class may wait.
const IMPORTANCE: [Column; 14] = [
    Name,
    Gpu,
    Objective,
    Doing,
    User,
    Class,
    Wait,
    Launches,
    Curve,
    Priority,
    Weight,
    Preemptions,
    Memory,
    Processes,
];

/// Room that is left over goes to these in turn, up to so much each.
const STRETCHED: [(Column, u16); 6] =
    [(Name, 16), (Processes, 16), (Name, 24), (Curve, 20), (Processes, 40), (Curve, KEPT as u16)];

/// A column and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub column: Column,
    pub x: u16,
    pub width: u16,
}

/// What fits into a width, of the columns there is something to say in.
pub fn fitting(width: u16, wanted: impl Fn(Column) -> bool) -> Vec<Place> {
    let mut left = width;
    let mut chosen = Vec::new();
    for column in IMPORTANCE.into_iter().filter(|column| wanted(*column)) {
        let needed = column.width() + u16::from(!chosen.is_empty());
        if needed > left {
            break;
        }
        left -= needed;
        chosen.push(column);
    }
    let place = |column: Column| Place { column, x: 0, width: column.width() };
    let mut places: Vec<Place> =
        ORDER.into_iter().filter(|column| chosen.contains(column)).map(place).collect();
    for (column, most) in STRETCHED {
        for place in places.iter_mut().filter(|place| place.column == column) {
            let more = left.min(most.saturating_sub(place.width));
            place.width += more;
            left -= more;
        }
    }
    let mut x = 0;
    for place in &mut places {
        place.x = x;
        x += place.width + 1;
    }
    places
}

impl Column {
    pub fn title(self) -> &'static str {
        match self {
            Name => "tenant",
            User => "user",
            Class => "class",
            Doing => "state",
            Gpu => "GPU",
            Curve => "lately",
            Objective => "SLO p99, or stop p99",
            Wait => "wait",
            Launches => "launch/s",
            Priority => "prio",
            Weight => "weight",
            Preemptions => "preempt/s",
            Memory => "memory",
            Processes => "pids",
        }
    }

    /// As little as it can do with.
    fn width(self) -> u16 {
        match self {
            // With the mark of the selected row.
            Name => 11,
            Class => 9,
            User => 8,
            Gpu => 4,
            Curve => 6,
            Doing => 7,
            Objective => 22,
            Wait => 5,
            Launches => 8,
            Priority => 4,
            Weight => 6,
            Preemptions => 9,
            Memory => 13,
            Processes => 7,
        }
    }

    pub fn is_right_aligned(self) -> bool {
        matches!(self, Gpu | Wait | Launches | Priority | Weight | Preemptions | Memory)
    }

    /// What can be said of a tenant and of one of its processes alike; the other columns are the view's.
    pub fn cell(self, figures: &Figures, width: u16) -> String {
        let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), short::rate);
        match self {
            Name | User | Curve | Processes => String::new(),
            Class => class(figures),
            Doing => figures.state.word().to_owned(),
            Gpu => figures.rates.map_or("–".to_owned(), |rates| short::percent(rates.gpu)),
            Objective => match (&figures.service, &figures.stop) {
                (Some(service), _) => self::service(service, width),
                (None, Some(stop)) => self::stop(stop),
                (None, None) => String::new(),
            },
            Wait => figures.wait_p99.map_or("–".to_owned(), short::time),
            Launches => rate(figures.rates.map(|rates| rates.launches)),
            Priority => figures.priority.to_string(),
            Weight => figures.weight.to_string(),
            Preemptions => rate(figures.rates.map(|rates| rates.preemptions)),
            Memory => match figures.memory {
                None => "–".to_owned(),
                Some((used, None)) => short::bytes(used),
                Some((used, Some(limit))) => format!("{}/{}", short::bytes(used), short::bytes(limit)),
            },
        }
    }

    /// What one looks for first comes first: much before little, and words by the alphabet.
    pub fn compare(self, one: &Tenant, other: &Tenant) -> Ordering {
        let rates = |tenant: &Tenant| tenant.figures.rates.unwrap_or_default();
        let (a, b) = (&one.figures, &other.figures);
        match self {
            Name => one.name.cmp(&other.name),
            Curve | User => Ordering::Equal,
            // `latency` is the more urgent, and behind `best-effort` in the alphabet.
            Class => b.class.cmp(&a.class),
            Doing => rank(a.state).cmp(&rank(b.state)),
            Gpu => rates(other).gpu.total_cmp(&rates(one).gpu),
            Objective => urgency(b).total_cmp(&urgency(a)),
            Wait => b.wait_p99.cmp(&a.wait_p99),
            Launches => rates(other).launches.total_cmp(&rates(one).launches),
            Priority => b.priority.cmp(&a.priority),
            Weight => b.weight.cmp(&a.weight),
            Preemptions => rates(other).preemptions.total_cmp(&rates(one).preemptions),
            Memory => b.memory.cmp(&a.memory),
            Processes => one.processes[0].pid.cmp(&other.processes[0].pid),
        }
    }

    /// Whether rows can be ordered by it.
    fn is_order(self) -> bool {
        !matches!(self, Curve | User)
    }

    /// Of the columns by which rows can be ordered, in a circle, the one after this or before it.
    pub fn neighbour(self, forward: bool) -> Column {
        let columns: Vec<Column> = ORDER.into_iter().filter(|column| column.is_order()).collect();
        let here = columns.iter().position(|column| *column == self).unwrap_or(0);
        let step = if forward { 1 } else { columns.len() - 1 };
        columns[(here + step) % columns.len()]
    }
}

/// A star says that more was asked for. The whole word does not fit, and its beginning says enough.
fn class(figures: &Figures) -> String {
    let word = if figures.service.is_some() { "latency" } else { "best-eff" };
    format!("{word}{}", if figures.lowered { "*" } else { "" })
}

/// Whether an objective is kept, p99 against it, and how many times as long as alone requests take, or how many were seen
/// alone of those that it takes to know. If that is too long, the last goes first.
fn service(service: &Service, width: u16) -> String {
    let mut words = Vec::new();
    words.extend(service.verdict().map(|verdict| verdict.word().to_owned()));
    match (service.p99, service.objective) {
        _ if service.verdict() == Some(Verdict::Unattainable) => {}
        (Some(p99), Some(objective)) => words.push(short::against(p99, objective)),
        (Some(p99), None) => words.push(short::time(p99)),
        (None, Some(objective)) => words.push(format!("–/{}", short::time(objective))),
        (None, None) => words.push("–".to_owned()),
    }
    words.extend(service.slowdown.map(short::times));
    if let Some(samples) = service.alone_samples {
        let room = usize::from(width).saturating_sub(words.join(" ").chars().count() + 1);
        let long = format!("alone: {}", samples.words());
        let fits = long.chars().count() <= room;
        words.push(if fits { long } else { format!("{}/{}", samples.seen, samples.needed) });
    }
    while words.len() > 1 && words.join(" ").chars().count() > usize::from(width) {
        words.pop();
    }
    words.join(" ")
}

fn stop(stop: &Stop) -> String {
    let time = stop.p99.map_or("–".to_owned(), short::time);
    format!("{} {time}", stop.rung)
}

/// How near an objective is to being missed; without one, how much slower requests are than alone.
fn urgency(figures: &Figures) -> f64 {
    let Some(service) = &figures.service else { return -1.0 };
    match (service.verdict(), service.p99, service.objective) {
        (Some(Verdict::Unattainable), _, _) => f64::INFINITY,
        (_, Some(p99), Some(objective)) => p99.0 as f64 / objective.0.max(1) as f64,
        _ => service.slowdown.map_or(0.0, |slowdown| slowdown as f64 * 1e-6),
    }
}

/// Rows of what stands still are drawn less strongly.
pub fn is_at_rest(figures: &Figures) -> bool {
    matches!(figures.state, State::Paused | State::Idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(width: u16) -> Vec<Column> {
        fitting(width, |column| column != Memory && column != User)
            .into_iter()
            .map(|place| place.column)
            .collect()
    }

    #[test]
    fn what_matters_most_has_room_first() {
        assert_eq!(columns(10), []);
        assert_eq!(columns(40), [Name, Gpu, Objective]);
        assert_eq!(columns(80), [Name, Class, Doing, Gpu, Curve, Objective, Wait, Launches]);
        assert!(columns(120).contains(&Preemptions) && columns(120).contains(&Processes));
    }

    #[test]
    fn columns_stay_within_any_width_and_apart() {
        for width in 0..300 {
            let places = fitting(width, |_| true);
            let ends: Vec<u16> = places.iter().map(|place| place.x + place.width).collect();
            assert!(ends.iter().all(|end| *end <= width), "{width}: {places:?}");
            assert!(places.iter().skip(1).zip(&ends).all(|(place, end)| place.x == end + 1), "{places:?}");
        }
    }

    #[test]
    fn all_columns_that_order_rows_come_round() {
        for forward in [true, false] {
            let mut seen = vec![Name];
            while seen.len() < 12 {
                seen.push(seen[seen.len() - 1].neighbour(forward));
            }
            assert_eq!(seen[11].neighbour(forward), Name);
            assert!(ORDER.into_iter().all(|column| seen.contains(&column) == column.is_order()));
        }
    }
}
