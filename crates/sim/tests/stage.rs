//! Scenarios, archives and fleets on the stage.

mod common;

use model::{Class, Domain, Kind, Nanos};
use results::{Archive, Figures, Record};
use scenario::profile::Profile;
use scenario::{Origin, Suite};
use sim::stage::fleet::{Fleet, Planner, parse};
use sim::stage::{KIND, Stage, Way, alone_time, device, play, set, work_of};
use sim::{Arrivals, Card, Ebb, Hand, Sharing};

const SHORT: &str = r#"
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

fn short() -> Stage {
    let scenario =
        scenario::parse(SHORT, &Origin::text("short.toml")).expect("the scenario is right").remove(0);
    Stage::of_scenario("own", &scenario, &Card::h200(), &Profile::built_in).expect("it is synthetic")
}

fn played(stage: Stage, ways: &[Way], threads: usize) -> Vec<Record> {
    play(&mut [stage], ways, threads, &|| {}).expect("it can be played").records
}

#[test]
fn every_scenario_of_every_suite_can_be_staged_but_where_nobody_recorded_the_kernels() {
    let (mut staged, mut refused) = (0, Vec::new());
    for name in Suite::names() {
        for scenario in Suite::named(name).unwrap().scenarios {
            match Stage::of_scenario(name, &scenario, &Card::h200(), &Profile::built_in) {
                Ok(stage) => {
                    stage.world(Sharing::Isolated, 0).check().unwrap();
                    staged += 1;
                }
                Err(error) => refused.push(error.to_string()),
            }
        }
    }
    assert!(staged > 60, "only {staged}");
    assert!(refused.iter().all(|reason| reason.contains("there is no profile of")), "{refused:?}");
}

#[test]
fn arrivals_are_those_that_the_lab_offers() {
    let scenario = scenario::parse(SHORT, &Origin::text("short.toml")).unwrap().remove(0);
    let seed = scenario.arrival_seed(&scenario.tenants[0], 1);
    let due = scenario.tenants[0].arrival.due(seed, Some(150.0), scenario.until()).unwrap();
    assert_eq!(short().world(Sharing::Shared, 1).tenants[0].arrivals, Arrivals::Open(due));
}

#[test]
fn work_is_made_as_long_as_it_was_measured() {
    let card = Card::h200();
    for (id, class) in [
        ("bert-inference-graph-b1-t128", Class::Latency),
        ("vgg19-inference-eager-b1", Class::Latency),
        ("gpt2-large-training-eager-b1-t1024", Class::BestEffort),
        ("burst-10x132x20us", Class::Latency),
    ] {
        let workload = scenario::profile::workload(id).unwrap();
        let work = work_of(&workload, class, &card, &Profile::built_in).unwrap();
        let alone = alone_time(&work, class, &card).unwrap();
        for stretch in [0.7, 1.0, 1.6] {
            let wanted = Nanos((alone.0 as f64 * stretch) as u64);
            let fitted = work.clone().with_time(class, &card, wanted).unwrap();
            let taken = alone_time(&fitted, class, &card).unwrap();
            let error = taken.0 as f64 / wanted.0 as f64 - 1.0;
            assert!(error.abs() < 0.02, "{id} times {stretch}: {taken} where {wanted} was wanted");
        }
    }
}

#[test]
fn an_answer_token_by_token_waits_between_them() {
    let workload = scenario::profile::workload("llama-inference-graph-b1-p128-o32").unwrap();
    let work = work_of(&workload, Class::Latency, &Card::h200(), &Profile::built_in).unwrap();
    assert_eq!(work.syncs.len(), 31);
    // 71 ms on an H200; the recorder's host was a little slower.
    let alone = alone_time(&work, Class::Latency, &Card::h200()).unwrap();
    assert!((60.0..90.0).contains(&(alone.as_secs_f64() * 1e3)), "{alone}");
}

#[test]
fn simulated_results_are_results() {
    let ways = [Way::Switch, Way::Plain(Sharing::TimeSlicing)];
    let archive = Archive::of(played(short(), &ways, 2));
    let figures = Figures::of(&archive);
    let scenario = figures.scenario("own", "short").unwrap();
    for mode in ["alone", "switch", "timeslice"] {
        let figures = scenario.mode(mode).unwrap();
        assert_eq!(figures.repetitions, 2, "{mode}");
        let latency = figures.latency_of("requests").unwrap();
        assert!(latency.offered > 400 && latency.wrong == 0 && latency.attainment.is_some());
        let best_effort = figures.best_effort_of("grids").unwrap();
        assert!(best_effort.rate.value > 50.0 && best_effort.wrong + best_effort.unchecked == 0, "{mode}");
    }
    let overhead =
        |mode: &str| scenario.mode(mode).unwrap().latency_of("requests").unwrap().overhead.unwrap().value;
    assert!(overhead("switch") < overhead("timeslice"), "the short slice is what ebb is for");
    assert_eq!(device(&Card::h200()).kind, KIND);
}

#[test]
fn the_same_worlds_give_the_same_file_however_many_threads_play_them() {
    let ways = [Way::parse("slo@shared", None, Hand::default()).unwrap(), Way::Switch];
    let text = |threads| serde_json::to_string(&played(short(), &ways, threads)).unwrap();
    assert_eq!(text(1), text(3));
}

#[test]
fn an_archive_is_replayed_from_its_runs_alone() {
    let archive = results::sample::archive();
    let stage = Stage::of_archive(&archive, "disb-a", "disb-a", &Card::h200()).unwrap();
    assert_eq!(stage.repetitions(), 3);
    let run = archive.runs_of("disb-a", "disb-a", "mps")[0];
    let due = run.tenants[0].due_us.as_ref().unwrap().iter().map(|us| Nanos(us * 1_000)).collect();
    assert_eq!(stage.world(Sharing::Mps, 0).tenants[0].arrivals, Arrivals::Open(due));
    let error = Stage::of_archive(&archive, "disb-a", "nowhere", &Card::h200()).unwrap_err().to_string();
    assert!(error.contains("no scenario disb-a/nowhere"), "{error}");
    let mut company = archive.clone();
    company.runs.retain(|run| run.mode != "alone");
    let error = Stage::of_archive(&company, "disb-a", "disb-a", &Card::h200()).unwrap_err().to_string();
    assert!(error.contains("no run of disb-a/disb-a/vgg19 alone"), "{error}");
}

#[test]
fn ways_are_named_and_dials_are_set_as_people_write_them() {
    let named = |text: &str| Way::parse(text, None, Hand::default()).map(|way| way.to_string());
    assert_eq!(named("strict").unwrap(), "strict-isolated");
    assert_eq!(named("slo@shared:quiet=50us,beside=20us").unwrap(), "slo-shared quiet=50us beside=20us");
    assert_eq!(named("reef-n").unwrap(), "reef-n");
    assert!(named("tally@isolated").is_err() && named("mps:quiet=1us").is_err() && named("").is_err());
    let shared = Way::parse("gaps", Some(Domain::Shared), Hand::default()).unwrap();
    assert_eq!(shared.sharing(), Sharing::Shared);
    let mut hand = Hand::default();
    set(&mut hand, "solo-share=25").unwrap();
    assert_eq!(hand.solo_share, Some(25));
    assert!(set(&mut hand, "solo-share=2000").is_err() && set(&mut hand, "quiet").is_err());
    assert_eq!(
        named("slo@shared:confine=0").unwrap(),
        "slo-shared confine=0",
        "to set it so is not to leave it"
    );
}

#[test]
fn what_a_person_has_set_the_controller_leaves_alone() {
    let world = common::serving(Sharing::Shared, common::ms(2_000));
    let mut ebb = Ebb::by_hand(Kind::Slo, Hand { quiet: Some(common::us(333)), ..Hand::default() });
    sim::run(&world, &mut ebb).unwrap();
    assert_eq!(ebb.dials().quiet, common::us(333));
}

const FLEET: &str = r#"
schema = 1
slo = [1.1, 3.0]
seconds = 1

[[latency]]
name = "bert"
workload = { model = "bert", form = "graph" }
count = 40
load = 0.05

[[best-effort]]
name = "training"
workload = { model = "resnet50", task = "training", batch = 128 }
count = 30
share = 0.3
memory = 60
"#;

#[test]
fn a_fleet_needs_fewer_gpus_the_less_is_promised_and_never_more_than_one_for_each() {
    let fleet: Fleet = parse(FLEET, "fleet.toml").unwrap();
    let (card, way) = (Card::h200(), Way::Switch);
    let mut planner = Planner::new(&fleet, &way, &card).unwrap();
    let strict = planner.answer(1.1).unwrap();
    let loose = planner.answer(3.0).unwrap();
    assert_eq!(strict.apart, 70);
    assert!(loose.shared <= strict.shared && strict.shared <= strict.apart, "{loose:?} {strict:?}");
    assert!(loose.shared < 60, "{loose:?}");
    for answer in [&strict, &loose] {
        let placed = |group: usize| -> u64 {
            answer.placed.iter().map(|(tenants, count)| u64::from(tenants[group]) * count).sum()
        };
        assert_eq!((placed(0), placed(1)), (40, 30), "{answer:?}");
        // Three trainings would not fit into the memory of one.
        assert!(answer.placed.iter().all(|(tenants, _)| tenants[1] <= 2), "{answer:?}");
    }
    let again = Planner::new(&fleet, &way, &card).unwrap().answer(3.0).unwrap();
    assert_eq!(again, loose);
}

#[test]
fn mistakes_in_a_fleet_are_told_with_their_lines() {
    let told = |from: &str, to: &str| parse(&FLEET.replace(from, to), "fleet.toml").unwrap_err().to_string();
    assert!(told("load = 0.05", "load = 1.5").starts_with("fleet.toml:10: load is 1.5"));
    assert!(told("load = 0.05", "").contains("fleet.toml:7: `bert` wants either a load or a rate"));
    assert!(told("count = 30", "count = 0").contains("fleet.toml:15: count is 0"));
    assert!(told("slo = [1.1, 3.0]", "slo = [0.5]").contains("fleet.toml:3: slo is a list of multiples"));
    assert!(told("name = \"training\"", "name = \"bert\"").contains("two groups are called `bert`"));
    assert!(told("model = \"bert\"", "model = \"brt\"").contains("`brt` is no model"));
    assert!(told("seconds = 1", "secnds = 1").contains("fleet.toml:4: unknown field `secnds`"));
    assert!(told("schema = 1", "schema = 7").contains("schema is 7"));
}
