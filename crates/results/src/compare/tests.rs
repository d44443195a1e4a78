use super::*;
use crate::draw::Draw;
use crate::record::{ALONE, Record, Run};
use crate::sample;

/// One scenario of the sample, with its runs changed.
fn archive(change: impl Fn(&mut Run)) -> Archive {
    let ours = |suite: &str, name: &str| suite == "disb-a" && name == "disb-a";
    let records = sample::records().into_iter().filter_map(|record| match record {
        Record::Scenario(scenario) if !ours(&scenario.suite, &scenario.name) => None,
        Record::Run(run) if !ours(&run.suite, &run.scenario) => None,
        Record::Run(mut run) => {
            change(&mut run);
            Some(Record::Run(run))
        }
        other => Some(other),
    });
    Archive::of(records.collect::<Vec<_>>())
}

/// A fresh draw of the same experiment: each request's service with noise of its own, each run with noise of its own.
fn noisy(seed: u64, run: &mut Run) {
    let mut draw = Draw::named(seed, &run.id);
    let whole = 1.0 + 0.02 * (draw.unit() + draw.unit() + draw.unit() - 1.5);
    for tenant in &mut run.tenants {
        let mut free = 0;
        for (start, end) in tenant.start_us.iter_mut().zip(&mut tenant.end_us) {
            let length = (*end - *start) as f64 * whole * (0.95 + 0.1 * draw.unit());
            let begin = if tenant.class == Class::Latency { free.max(*start) } else { free };
            if tenant.class == Class::Latency {
                *start = begin;
            }
            // Iterations are handed over one ahead, so half of their time is waiting.
            let length = if tenant.class == Class::Latency { length } else { length / 2.0 };
            *end = begin + length as u64;
            free = *end;
        }
    }
}

fn find<'a>(comparison: &'a Comparison, mode: &str, figure: Figure) -> &'a Change {
    let found = comparison.changes.iter().find(|change| change.mode == mode && change.figure == figure);
    found.expect("the sample has every mode and figure")
}

#[test]
fn an_archive_beside_itself_has_changed_nowhere() {
    let archive = archive(|_| {});
    let comparison = Comparison::of(&archive, &archive);
    assert_eq!(comparison.changes.len(), 6 * 4, "six modes of two tenants");
    assert_eq!(comparison.count(Verdict::Unchanged), comparison.changes.len());
    assert!(comparison.only_before.is_empty() && comparison.only_after.is_empty());
    assert!(comparison.remarks.is_empty());
}

#[test]
fn noise_is_no_change() {
    let (mut figures, mut alarms) = (0, Vec::new());
    for seed in 0..12 {
        let one = archive(|run| noisy(2 * seed, run));
        let two = archive(|run| noisy(2 * seed + 1, run));
        let comparison = Comparison::of(&one, &two);
        figures += comparison.changes.len();
        alarms.extend(comparison.changes.into_iter().filter(|change| change.verdict != Verdict::Unchanged));
    }
    assert!(alarms.len() * 200 <= figures, "{} of {figures}: {alarms:#?}", alarms.len());
}

#[test]
fn what_got_slower_is_worse_and_the_rest_is_silent() {
    let slower = |run: &mut Run| {
        noisy(8, run);
        if run.mode == "ebb-isolated" {
            let due = run.tenants[0].due_us.clone().expect("requests arrive as planned");
            for (due, end) in due.iter().zip(&mut run.tenants[0].end_us) {
                *end = due + (*end - due) * 4 / 3;
            }
        }
    };
    let (before, after) = (archive(|run| noisy(7, run)), archive(slower));
    let comparison = Comparison::of(&before, &after);
    assert_eq!(find(&comparison, "ebb-isolated", Figure::P99).verdict, Verdict::Worse);
    assert_eq!(find(&comparison, "ebb-isolated", Figure::P50).verdict, Verdict::Worse);
    assert_eq!(find(&comparison, "ebb-isolated", Figure::Rate).verdict, Verdict::Unchanged);
    assert_eq!(find(&comparison, "mps", Figure::P99).verdict, Verdict::Unchanged);
    let back = Comparison::of(&after, &before);
    assert_eq!(find(&back, "ebb-isolated", Figure::P99).verdict, Verdict::Better);
}

#[test]
fn a_lost_tenth_of_the_throughput_is_worse() {
    let slower = |run: &mut Run| {
        noisy(8, run);
        for tenant in run.tenants.iter_mut().filter(|tenant| tenant.class == Class::BestEffort) {
            for end in &mut tenant.end_us {
                *end = *end * 11 / 10;
            }
        }
    };
    let comparison = Comparison::of(&archive(|run| noisy(7, run)), &archive(slower));
    assert_eq!(find(&comparison, "mps", Figure::Rate).verdict, Verdict::Worse);
}

#[test]
fn results_that_became_wrong_are_worse() {
    let wrong = |run: &mut Run| {
        if run.mode == "mps" {
            run.tenants[1].checks.iter_mut().for_each(|check| *check = "wrong".to_owned());
        }
    };
    let comparison = Comparison::of(&archive(|_| {}), &archive(wrong));
    let change = find(&comparison, "mps", Figure::Rate);
    assert_eq!((change.verdict, change.after), (Verdict::Worse, 0.0));
}

#[test]
fn overload_is_worse_and_recovery_better() {
    let overload = |run: &mut Run| {
        if run.mode == "mps" {
            let served = run.tenants[0].end_us.len() * 9 / 10;
            run.tenants[0].start_us.truncate(served);
            run.tenants[0].end_us.truncate(served);
        }
    };
    let (fine, overloaded) = (archive(|_| {}), archive(overload));
    let change = |before, after| find(&Comparison::of(before, after), "mps", Figure::P99).verdict;
    assert_eq!(change(&fine, &overloaded), Verdict::Worse);
    assert_eq!(change(&overloaded, &fine), Verdict::Better);
}

#[test]
fn one_repetition_is_not_trusted_with_a_small_change() {
    let first = |slower: bool| {
        let mut archive = archive(|run| {
            for tenant in run.tenants.iter_mut().filter(|tenant| slower && tenant.class == Class::Latency) {
                for (start, end) in tenant.start_us.iter().zip(&mut tenant.end_us) {
                    *end = start + (*end - start) * 106 / 100;
                }
            }
        });
        archive.runs.retain(|run| run.repetition == 0);
        archive
    };
    let comparison = Comparison::of(&first(false), &first(true));
    let change = find(&comparison, ALONE, Figure::P50);
    assert!(change.ratio.excludes(1.0) && change.ratio.value > 1.02, "{change:?}");
    assert_eq!(change.verdict, Verdict::Unchanged);
}

#[test]
fn what_only_one_has_is_named() {
    let whole = archive(|_| {});
    let mut part = whole.clone();
    part.runs.retain(|run| run.mode != "mps");
    let comparison = Comparison::of(&whole, &part);
    assert_eq!(comparison.only_before, ["disb-a/disb-a, mps, vgg19", "disb-a/disb-a, mps, resnet152"]);
    assert_eq!(Comparison::of(&part, &whole).only_after, comparison.only_before);
}

#[test]
fn a_redefined_scenario_is_not_compared() {
    let before = archive(|_| {});
    let mut after = before.clone();
    after.scenarios[0].digest = "other".to_owned();
    let comparison = Comparison::of(&before, &after);
    assert_eq!(comparison.redefined, ["disb-a/disb-a"]);
    assert!(comparison.changes.is_empty());
}

#[test]
fn different_machines_are_remarked() {
    let before = archive(|_| {});
    let mut after = before.clone();
    after.machines[0].device.driver = "581".to_owned();
    assert!(Comparison::of(&before, &after).remarks[0].contains("different machines"));
}
