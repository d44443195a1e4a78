//! How large the report of a large archive is, and how long it takes: the made-up archive, many times over.
//!
//! `cargo run --release -p report --example large [-- FOLDER]`

use std::time::Instant;

use results::record::{Run, Scenario};
use results::{Archive, Figures, sample};

/// So many times the sample's fifteen scenarios and two hundred thousand requests.
const TIMES: usize = 5;

fn main() -> std::io::Result<()> {
    let archive = many(&sample::archive());
    let requests =
        archive.runs.iter().flat_map(|run| &run.tenants).filter_map(|tenant| tenant.due_us.as_ref());
    let requests: usize = requests.map(Vec::len).sum();
    let begin = Instant::now();
    let figures = Figures::of(&archive);
    let derived = begin.elapsed();
    let page = report::html(&archive, &figures);
    println!(
        "{} runs of {} scenarios, {requests} requests: figures in {:.1} s, page in {:.1} s, {:.2} MB",
        archive.runs.len(),
        archive.scenarios.len(),
        derived.as_secs_f64(),
        (begin.elapsed() - derived).as_secs_f64(),
        page.len() as f64 / 1e6,
    );
    match std::env::args().nth(1) {
        Some(folder) => std::fs::write(std::path::Path::new(&folder).join("large.html"), page),
        None => Ok(()),
    }
}

fn many(sample: &Archive) -> Archive {
    let mut archive = sample.clone();
    for copy in 1..TIMES {
        let name = |name: &str| format!("{name}-{copy}");
        let scenario = |one: &Scenario| Scenario { name: name(&one.name), ..one.clone() };
        let run = |one: &Run| Run { id: name(&one.id), scenario: name(&one.scenario), ..one.clone() };
        archive.scenarios.extend(sample.scenarios.iter().map(scenario));
        archive.runs.extend(sample.runs.iter().map(run));
    }
    archive
}
