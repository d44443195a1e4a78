//! `ebb sim fleet`: how many GPUs many tenants need.

use std::fs;
use std::time::Instant;

use anyhow::{Context as _, Result};
use model::Nanos;
use scenario::{Pace, Workload};
use sim::stage::fleet::{Answer, Fleet, Group, Planner, Wants, parse};
use sim::{Card, Hand};

use super::arguments::FleetOptions;
use super::{choice, show};
use crate::arguments::Output;
use crate::json::Json;

/// What a fleet without a file consists of: the share of each sort, its workload, and its memory in GiB.
const SERVICES: [(&str, &str, u32, f64); 4] = [
    ("bert", "bert-inference-graph-b1-t128", 40, 4.0),
    ("resnet50", "resnet50-inference-graph-b1", 30, 4.0),
    ("yolo", "yolo-inference-graph-b1", 20, 6.0),
    ("gpt2", "gpt2-large-inference-graph-b1-t128", 10, 10.0),
];
const JOBS: [(&str, &str, u32, f64); 3] = [
    ("resnet50-training", "resnet50-training-eager-b128", 40, 40.0),
    ("bert-training", "bert-training-eager-b32-t128", 40, 30.0),
    ("gpt2-training", "gpt2-large-training-eager-b1-t1024", 20, 60.0),
];
const MEMORY_GIB: f64 = 141.0;
const PROMISES: [f64; 4] = [1.05, 1.2, 1.5, 2.0];
const WATCHED: Nanos = Nanos::from_millis(4_000);

/// What one policy needs.
struct Needs {
    way: String,
    answers: Vec<Answer>,
}

pub fn run(options: &FleetOptions) -> Result<()> {
    let fleet = read(options)?;
    let ways = choice::ways(&options.policies, None, Hand::default())?;
    let card = Card::h200();
    let (began, mut simulated) = (Instant::now(), Nanos::ZERO);
    let bar = show::bar(ways.len() * fleet.promises.len());
    let mut needs = Vec::new();
    for way in &ways {
        let mut planner = Planner::new(&fleet, way, &card)?;
        let mut answers = Vec::new();
        for &promise in &fleet.promises {
            answers.push(planner.answer(promise)?);
            bar.inc(1);
        }
        simulated += planner.simulated;
        needs.push(Needs { way: way.to_string(), answers });
    }
    bar.finish_and_clear();
    eprintln!("{}", show::pace(simulated, began.elapsed()));
    match options.output {
        Output::Text => print!("{}", page(&fleet, &needs, options.placements)),
        Output::Json => println!("{}", json(&fleet, &needs)),
    }
    Ok(())
}

fn read(options: &FleetOptions) -> Result<Fleet> {
    let mut fleet = match &options.file {
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            parse(&text, &path.display().to_string())?
        }
        None => usual(options)?,
    };
    if !options.promises.is_empty() {
        fleet.promises = options.promises.clone();
    }
    fleet.seed = options.seed.unwrap_or(fleet.seed);
    Ok(fleet)
}

/// A fleet of several sorts of services and jobs.
fn usual(options: &FleetOptions) -> Result<Fleet> {
    let mut groups = Vec::new();
    let sorts = [
        (&SERVICES[..], options.services, Wants::Requests(Pace::Load(options.load))),
        (&JOBS[..], options.jobs, Wants::Share(options.share)),
    ];
    for (sorts, all, wants) in sorts {
        let mut left = all;
        for (place, &(name, workload, percent, memory_gib)) in sorts.iter().enumerate() {
            let last = place + 1 == sorts.len();
            let count = if last { left } else { (u64::from(all) * u64::from(percent) / 100) as u32 };
            left -= count;
            if count > 0 {
                let workload = built_in(workload)?;
                groups.push(Group { name: name.to_owned(), count, workload, wants, memory_gib });
            }
        }
    }
    Ok(Fleet {
        title: format!("{} services at load {}, {} jobs", options.services, options.load, options.jobs),
        memory_gib: MEMORY_GIB,
        promises: PROMISES.to_vec(),
        watched: WATCHED,
        seed: 0,
        groups,
    })
}

fn built_in(id: &str) -> Result<Workload> {
    scenario::profile::workload(id).map_err(anyhow::Error::msg)
}

fn page(fleet: &Fleet, needs: &[Needs], placements: bool) -> String {
    let mut text = String::new();
    if !fleet.title.is_empty() {
        text += &format!("{}\n\n", fleet.title);
    }
    let head = ["policy", "p99 promised", "GPUs", "apart", "saved", "saved"].map(str::to_owned);
    let mut rows = vec![head.to_vec()];
    for Needs { way, answers } in needs {
        for Answer { promise, apart, shared, .. } in answers {
            let saved = apart.saturating_sub(*shared);
            let share = saved as f64 / (*apart).max(1) as f64;
            rows.push(vec![
                way.clone(),
                format!("{promise}x alone"),
                shared.to_string(),
                apart.to_string(),
                saved.to_string(),
                format!("{:.1}%", share * 100.0),
            ]);
        }
    }
    text += &show::table(&rows, 1);
    if placements {
        for Needs { way, answers } in needs {
            for answer in answers {
                text += &format!("\n{way}, p99 of {}x alone:\n", answer.promise);
                for (tenants, count) in &answer.placed {
                    text += &format!("  {count:>6} with {}\n", together(fleet, tenants));
                }
            }
        }
    }
    text
}

fn together(fleet: &Fleet, tenants: &[u32]) -> String {
    let there = fleet.groups.iter().zip(tenants).filter(|(_, count)| **count > 0);
    let named = there.map(
        |(group, count)| if *count == 1 { group.name.clone() } else { format!("{count} {}", group.name) },
    );
    named.collect::<Vec<_>>().join(" + ")
}

fn json(fleet: &Fleet, needs: &[Needs]) -> Json {
    let answer = |answer: &Answer| {
        let placed = answer.placed.iter().map(|(tenants, count)| {
            Json::object([("gpus", (*count).into()), ("tenants", together(fleet, tenants).as_str().into())])
        });
        Json::object([
            ("promise", Json::Real(answer.promise)),
            ("apart", answer.apart.into()),
            ("gpus", answer.shared.into()),
            ("placed", Json::List(placed.collect())),
        ])
    };
    let policy = |needs: &Needs| {
        Json::object([
            ("policy", needs.way.as_str().into()),
            ("answers", Json::List(needs.answers.iter().map(answer).collect())),
        ])
    };
    Json::object([
        ("title", fleet.title.as_str().into()),
        ("policies", Json::List(needs.iter().map(policy).collect())),
    ])
}
