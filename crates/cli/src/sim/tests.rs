use model::Nanos;
use scenario::profile::Profile;
use scenario::{Origin, parse};
use sim::Hand;
use sim::stage::{Stage, play};

use super::*;

const SCENARIO: &str = r#"
schema = 1
title = "Short requests beside long grids"
duration = "2s"
warmup = "500ms"
repetitions = 2

[[tenant]]
name = "requests"
class = "latency"
workload = { model = "burst", launches = 10, blocks = 132, block = "20us" }
arrival = { process = "poisson", rate = 150 }

[[tenant]]
name = "grids"
class = "best-effort"
workload = { model = "grid", blocks = 1056, block = "1ms" }
"#;

fn figures() -> Figures {
    let scenario = parse(SCENARIO, &Origin::text("short.toml")).unwrap().remove(0);
    let mut stages = [Stage::of_scenario("own", &scenario, &Card::h200(), &Profile::built_in).unwrap()];
    let words = ["strict@shared,switch,timeslice".to_owned()];
    let ways = choice::ways(&words, None, Hand::default()).unwrap();
    let records = play(&mut stages, &ways, 2, &|| {}).unwrap().records;
    Figures::of(&Archive::of(records))
}

#[test]
fn a_page_of_tenants() {
    insta::assert_snapshot!(show::tenants(&figures()));
}

#[test]
fn a_line_for_each_way() {
    insta::assert_snapshot!(show::modes(&figures()));
}

#[test]
fn the_figures_for_programs() {
    insta::assert_snapshot!(show::json(&figures()));
}

#[test]
fn speed_is_told_in_simulated_seconds() {
    let told = show::pace(Nanos::from_millis(25_000), std::time::Duration::from_millis(5));
    assert_eq!(told, "25.0 simulated seconds in 0.01 s: 5000 simulated seconds per second");
}
