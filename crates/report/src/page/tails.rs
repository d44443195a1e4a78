//! The tails of one tenant's latencies, all modes in one chart: from arrival, and to the first and each further
//! token.

use maud::{Markup, html};
use model::Nanos;
use results::figures::ModeFigures;
use results::record::Tenant;
use results::request::Request;
use results::{passage, request};

use crate::charts::tail::{Series, tail};
use crate::numbers::{finite, time};
use crate::palette;
use crate::view::Scenario;

pub fn tails(scenario: &Scenario, tenant: &Tenant) -> Markup {
    let here = || scenario.modes().filter_map(|mode| Some((mode, mode.latency_of(&tenant.name)?)));
    let limits = here().find_map(|(_, figures)| figures.limits).unwrap_or_default();
    let streaming = here().any(|(_, figures)| figures.ttft.is_some());
    let chart = |what: &str, of: fn(&Request) -> Option<Nanos>, limit: Option<Nanos>| {
        let curves: Vec<(&ModeFigures, Curve)> =
            here().map(|(mode, _)| (mode, curve(scenario, mode, tenant, of))).collect();
        let series: Vec<Series> = curves.iter().map(|(mode, curve)| curve.series(mode)).collect();
        let name = format!("{what} of {} in {}", tenant.name, scenario.record.title);
        html! {
            // Nothing was offered in the counted time: nothing can be drawn.
            @if curves.iter().any(|(_, curve)| curve.offered > 0) {
                figure {
                    h4 { (tenant.name) ": " (what) }
                    (tail(&name, &format!("{what} (log) →"), &series, limit.map(|limit| limit.as_micros_f64())))
                }
            }
        }
    };
    html! {
        (chart("latency from arrival", Request::latency, limits.latency))
        @if streaming {
            (chart("time to first token", Request::ttft, limits.ttft))
            (chart("time per further token", Request::tpot, limits.tpot))
        }
    }
}

struct Curve {
    values: Vec<f64>,
    offered: usize,
}

impl Curve {
    fn series<'a>(&'a self, mode: &'a ModeFigures) -> Series<'a> {
        let at = |share: f64| {
            let place = results::quantile::rank(self.offered, share);
            finite(place.and_then(|place| self.values.get(place)).copied().unwrap_or(f64::INFINITY), time)
        };
        let tip =
            format!("{}: p50 {}, p99 {}, p99.9 {}", palette::label(&mode.mode), at(0.5), at(0.99), at(0.999));
        Series { mode: &mode.mode, served: &self.values, offered: self.offered, tip }
    }
}

/// The requests of all repetitions together.
fn curve(
    scenario: &Scenario,
    mode: &ModeFigures,
    tenant: &Tenant,
    of: fn(&Request) -> Option<Nanos>,
) -> Curve {
    let passages = passage::of(scenario.archive, scenario.record, &mode.mode, &tenant.name);
    let requests = || passages.iter().flat_map(|passage| request::offered(passage.run, passage.tenant));
    let mut values: Vec<f64> =
        requests().filter_map(|request| of(&request)).map(Nanos::as_micros_f64).collect();
    values.sort_by(f64::total_cmp);
    Curve { values, offered: requests().count() }
}
