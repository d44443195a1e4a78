//! A section for each suite: its maps and sweeps, then its scenarios, folded.

use maud::{Markup, html};

use super::{headline, pairs, scenario, stops};
use crate::numbers::many;
use crate::view::{Suite, anchor};

pub fn section(suite: &Suite) -> Markup {
    // A suite of one scenario has nothing to be found among others.
    let single = suite.scenarios.len() == 1;
    html! {
        section id=(anchor(&["suite", suite.name])) {
            h2 { "Suite " (suite.name) }
            (pairs::maps(suite))
            (pairs::sweeps(suite))
            (stops::stops(suite))
            @if !single {
                h3 { (many(suite.scenarios.len(), "scenario")) }
                p.folds.note { "p99 over alone by mode; open one for its tables and charts. " }
            }
            @for one in &suite.scenarios {
                details id=(one.anchor()) open[single] {
                    summary { b { (one.record.title) } (headline::brief(one)) }
                    div.inside { (scenario::inside(one)) }
                }
            }
        }
    }
}
