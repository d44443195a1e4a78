//! What is shown.

use lab::{Cost, Forwarding, StartUp};
use model::{Class, Nanos};
use serde_json::json;

const MOST_START_UP: Nanos = Nanos::from_millis(10);

pub struct Table {
    /// Each with the class of the tenant in which it was measured.
    pub rows: Vec<(Option<Class>, Cost)>,
    /// Of no tenant, and without events.
    pub without: Vec<Cost>,
    pub start_up: StartUp,
}

/// What a launch may cost because it is written down, in nanoseconds.
const MOST_EVENT: f64 = 50.0;

impl Table {
    pub fn all_met(&self) -> bool {
        self.start_up.added() <= MOST_START_UP
            && self.rows.iter().all(|(class, cost)| is_met(*class, cost))
            && self.events().all(|(with, without)| with.through - without.through <= MOST_EVENT)
    }

    /// Launches of no tenant with events and without.
    fn events(&self) -> impl Iterator<Item = (&Cost, &Cost)> {
        let of_nobody =
            self.rows.iter().filter(|(class, cost)| class.is_none() && cost.call.is_plain_launch());
        of_nobody.filter_map(|(_, with)| {
            let same = |cost: &&Cost| cost.call == with.call && cost.threads == with.threads;
            Some((with, self.without.iter().find(same)?))
        })
    }

    fn print_events(&self) {
        println!("\nwhat of that is because events are written down:");
        for (with, without) in self.events() {
            let added = with.through - without.through;
            println!(
                "{:36} {:11} {:>7} {:>7.2} ns {:>9.2} ns {added:>7.2} ns {:>8}  {}  ({:.2}x)",
                with.call.name(),
                name(None),
                with.threads,
                without.through,
                with.through,
                format!("<= {MOST_EVENT}"),
                verdict(added <= MOST_EVENT),
                with.through / without.through
            );
        }
    }

    pub fn print(&self) {
        println!(
            "{:36} {:11} {:>7} {:>10} {:>12} {:>10} {:>8}",
            "call", "class", "threads", "direct", "through ebb", "added", "bar"
        );
        for (class, cost) in &self.rows {
            let Cost { call, threads, direct, through } = cost;
            println!(
                "{:36} {:11} {threads:>7} {direct:>7.2} ns {through:>9.2} ns {:>7.2} ns {:>8}  {}",
                call.name(),
                name(*class),
                cost.added(),
                format!("<= {}", call.bar(*class)),
                verdict(is_met(*class, cost))
            );
        }
        let millis = |time: Nanos| time.as_micros_f64() / 1e3;
        println!(
            "{:36} {:11} {:>7} {:>7.2} ms {:>9.2} ms {:>7.2} ms {:>8}  {}",
            "start to end of cuInit",
            name(None),
            1,
            millis(self.start_up.direct),
            millis(self.start_up.through),
            millis(self.start_up.added()),
            "<= 10",
            verdict(self.start_up.added() <= MOST_START_UP)
        );
        self.print_events();
        println!("\nmedians; calls in CPU time of their thread, {} calls each and thread", Forwarding::CALLS);
    }

    pub fn print_json(&self) {
        let calls = self.rows.iter().map(|(class, cost)| {
            json!({
                "call": cost.call.name(),
                "class": class.map(|class| class.to_string()),
                "threads": cost.threads,
                "direct_ns": cost.direct,
                "through_ns": cost.through,
                "bar_ns": cost.call.bar(*class),
            })
        });
        let events = self.events().map(|(with, without)| {
            json!({
                "call": with.call.name(),
                "threads": with.threads,
                "without_ns": without.through,
                "with_ns": with.through,
                "bar_ns": MOST_EVENT,
            })
        });
        let events: Vec<_> = events.collect();
        let StartUp { direct, through } = self.start_up;
        let start_up = json!({ "direct_ns": direct.0, "through_ns": through.0 });
        println!("{}", json!({ "calls": calls.collect::<Vec<_>>(), "events": events, "start_up": start_up }));
    }
}

fn is_met(class: Option<Class>, cost: &Cost) -> bool {
    cost.added() <= cost.call.bar(class)
}

fn name(class: Option<Class>) -> String {
    class.map_or_else(|| "none".to_owned(), |class| class.to_string())
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}
