//! Stop latency: how long a burst waits until best-effort work is off the GPU.
//!
//! It cannot be seen directly, from outside and on every driver alike. What can be seen is how much longer the same
//! burst takes in company: its service time less the median of the same burst alone. Service time and not latency from
//! arrival, because the wait for an earlier burst is no stop. What is faster than the median alone counts as zero.

use model::Nanos;

use crate::quantile::Quantiles;
use crate::record::Scenario;
use crate::request::{Request, offered};
use crate::{Archive, passage};

/// How long the requests of one tenant waited in one mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Stops {
    pub quantiles: Quantiles,
    /// What was taken off: the median service time alone.
    pub alone: Nanos,
    /// Sorted; without the requests that were never finished.
    pub waits: Vec<Nanos>,
}

/// A bar of a histogram: waits from `from` to below `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub from: Nanos,
    pub to: Nanos,
    pub count: usize,
}

/// `None` where the tenant was not measured in this mode, or not alone.
pub fn stops(archive: &Archive, scenario: &Scenario, mode: &str, tenant: &str) -> Option<Stops> {
    let passages = passage::of(archive, scenario, mode, tenant);
    let alone = passage::alone(archive, scenario, tenant, &passages);
    let services = |passages: &[passage::Passage<'_>]| -> Vec<Option<Nanos>> {
        let requests = passages.iter().flat_map(|passage| offered(passage.run, passage.tenant));
        requests.map(|request: Request| request.service()).collect()
    };
    let alone = Quantiles::of(services(&alone))?.p50?;
    let waits: Vec<Option<Nanos>> =
        services(&passages).into_iter().map(|service| service.map(|service| service.since(alone))).collect();
    let quantiles = Quantiles::of(waits.iter().copied())?;
    let mut waits: Vec<Nanos> = waits.into_iter().flatten().collect();
    waits.sort_unstable();
    Some(Stops { quantiles, alone, waits })
}

impl Stops {
    /// Bars of which each begins `10^(1/per_decade)` times later than the one before, from 1 µs on; the first begins
    /// at zero. They end with the last wait, and every wait is in exactly one.
    pub fn histogram(&self, per_decade: u32) -> Vec<Bar> {
        let edge = |n: u32| match n {
            0 => Nanos::ZERO,
            n => Nanos((1000.0 * 10f64.powf(f64::from(n - 1) / f64::from(per_decade.max(1)))).round() as u64),
        };
        let mut bars = Vec::new();
        let mut rest = self.waits.as_slice();
        while !rest.is_empty() {
            let n = bars.len() as u32;
            let (from, to) = (edge(n), edge(n + 1));
            let count = rest.partition_point(|wait| *wait < to);
            bars.push(Bar { from, to, count });
            rest = &rest[count..];
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample;

    #[test]
    fn the_wait_is_what_company_adds_to_the_median_alone() {
        let archive = sample::archive();
        let scenario = archive.scenario("micro", "stop-1ms").unwrap();
        let of = |mode| stops(&archive, scenario, mode, "burst").unwrap();
        // The model has waits of up to 3.8 ms under time slices and of up to 180 µs under ebb.
        assert!(of("timeslice").quantiles.p50.unwrap() > Nanos::from_millis(1));
        let ebb = of("ebb-isolated").quantiles.p99.unwrap();
        assert!((150..400).contains(&(ebb.0 / 1000)), "{ebb}");
        assert_eq!(stops(&archive, scenario, "hami", "burst"), None);
    }

    proptest! {
        #[test]
        fn every_wait_is_in_one_bar(mut waits in prop::collection::vec(0u64..1 << 34, 0..200), per_decade in 1u32..20) {
            waits.sort_unstable();
            let waits: Vec<Nanos> = waits.into_iter().map(Nanos).collect();
            let quantiles = Quantiles { offered: 0, p50: None, p90: None, p99: None, p999: None, max: None };
            let stops = Stops { quantiles, alone: Nanos::ZERO, waits: waits.clone() };
            let bars = stops.histogram(per_decade);
            prop_assert_eq!(bars.iter().map(|bar| bar.count).sum::<usize>(), waits.len());
            for bar in &bars {
                let inside = waits.iter().filter(|wait| (bar.from..bar.to).contains(*wait)).count();
                prop_assert_eq!(bar.count, inside);
            }
            prop_assert!(bars.windows(2).all(|pair| pair[0].to == pair[1].from));
        }
    }
}
