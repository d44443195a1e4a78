//! `ebb soft`: a software GPU seen and set from outside.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use lab::Bench;
use model::Nanos;
use softgpu::card::{Card, ContextView};

use crate::arguments::{Output, SetOptions, SoftVerb};
use crate::beside::software_driver;

pub fn run(verb: &SoftVerb) -> Result<()> {
    match verb {
        SoftVerb::Show { card, output } => {
            let card = Card::attach(&card.card)?;
            card.reap_dead();
            match output {
                Output::Text => show(&card),
                Output::Json => show_json(&card),
            }
        }
        SoftVerb::Bench { driver, output } => bench(driver.as_deref(), *output)?,
        SoftVerb::Set(options) => set(options)?,
    }
    Ok(())
}

fn set(options: &SetOptions) -> Result<()> {
    let SetOptions { card, domain, switch_cost, timeslice, disable, enable, preempt } = options;
    if let Some(both) = disable.iter().find(|context| enable.contains(context)) {
        bail!("context {both} is to be disabled and enabled at once; ask for one of them");
    }
    let card = Card::attach(&card.card)?;
    card.reap_dead();
    // Nothing is done by halves because of a mistyped number.
    let sliced = timeslice.iter().map(|(context, _)| context);
    for context in sliced.chain(disable).chain(enable).chain(preempt) {
        card.timeslice(*context)?;
    }
    if let Some(domain) = domain {
        card.set_domain(*domain);
    }
    if let Some(micros) = switch_cost {
        card.set_switch_cost(Nanos::from_micros(*micros));
    }
    for (context, micros) in timeslice {
        card.set_timeslice(*context, Nanos::from_micros(*micros))?;
    }
    for context in disable {
        card.disable(*context)?;
    }
    for context in enable {
        card.enable(*context)?;
    }
    for context in preempt {
        card.preempt(*context)?;
    }
    Ok(())
}

fn show(card: &Card) {
    let properties = card.properties();
    println!("card         {}", card.path().display());
    println!("SMs          {}", properties.sms);
    println!("memory       {} of {} MiB in use", card.memory_used() >> 20, properties.memory_bytes >> 20);
    println!("domain       {}", card.domain());
    println!("switch cost  {}", card.switch_cost());
    println!("switches     {}", card.switches());
    let contexts = card.contexts();
    if contexts.is_empty() {
        println!("no contexts");
        return;
    }
    println!("\n{:>8} {:>8} {:>12} {:>12}  state", "context", "pid", "timeslice", "time on GPU");
    for context in contexts {
        let ContextView { id, pid, timeslice, on_time, .. } = context;
        println!(
            "{id:>8} {pid:>8} {:>12} {:>12}  {}",
            timeslice.to_string(),
            on_time.to_string(),
            state(&context)
        );
    }
}

fn show_json(card: &Card) {
    let contexts: Vec<String> = card.contexts().iter().map(context_json).collect();
    println!(
        "{{\"sms\":{},\"memory_bytes\":{},\"memory_used\":{},\"domain\":\"{}\",\"switch_cost_ns\":{},\"switches\":{},\"contexts\":[{}]}}",
        card.properties().sms,
        card.properties().memory_bytes,
        card.memory_used(),
        card.domain(),
        card.switch_cost().0,
        card.switches(),
        contexts.join(",")
    );
}

fn context_json(context: &ContextView) -> String {
    format!(
        "{{\"id\":{},\"pid\":{},\"timeslice_ns\":{},\"on_time_ns\":{},\"state\":\"{}\"}}",
        context.id,
        context.pid,
        context.timeslice.0,
        context.on_time.0,
        state(context)
    )
}

/// A figure, what it must reach, and whether it does.
struct Figure {
    name: &'static str,
    key: &'static str,
    value: f64,
    unit: &'static str,
    bar: Option<(&'static str, bool)>,
}

fn bench(driver: Option<&Path>, output: Output) -> Result<()> {
    let driver = driver.map_or_else(software_driver, |path| Ok(path.to_owned()))?;
    let bench = Bench::new(&driver)?;
    eprintln!("measuring for about ten seconds");
    let integers = bench.integers()? / 1e6;
    let floats = bench.floats()? / 1e6;
    let launches = bench.launches()?;
    let launch = |q| launches.at(q).unwrap_or_default().as_micros_f64();
    let blocks = bench.blocks()? / 1e6;
    let pace = bench.sleepers(Duration::from_secs(5))?;
    let figure = |name, key, value, unit, bar| Figure { name, key, value, unit, bar };
    let figures = [
        figure(
            "integer instructions",
            "integer",
            integers,
            "M lanes/s/core",
            Some((">= 300", integers >= 300.0)),
        ),
        figure("f32 multiply-adds", "f32_fma", floats, "M lanes/s/core", Some((">= 300", floats >= 300.0))),
        figure("blocks dispatched", "blocks", blocks, "M/s", None),
        figure(
            "empty launch and wait, p50",
            "launch_p50",
            launch(0.5),
            "µs",
            Some(("< 20", launch(0.5) < 20.0)),
        ),
        figure("empty launch and wait, p99", "launch_p99", launch(0.99), "µs", None),
        figure(
            "50 µs blocks, share of pace",
            "pace",
            pace.share * 100.0,
            "%",
            Some((">= 95", pace.share >= 0.95)),
        ),
        figure("50 µs blocks, load", "load", pace.cores, "cores", Some(("< 0.5", pace.cores < 0.5))),
    ];
    match output {
        Output::Text => {
            println!("{:30} {:>10} {:16} {:>8}", "figure", "measured", "", "bar");
            for Figure { name, value, unit, bar, .. } in &figures {
                let verdict = bar.map_or(String::new(), |(bar, met)| {
                    format!("{bar:>8}  {}", if met { "met" } else { "MISSED" })
                });
                println!("{name:30} {value:>10.2} {unit:16} {verdict}");
            }
            println!("\n{} SMs; rates per core divide by CPU time", pace.sms);
        }
        Output::Json => {
            let fields: Vec<_> =
                figures.iter().map(|figure| format!("\"{}\":{:.4}", figure.key, figure.value)).collect();
            println!("{{{}}}", fields.join(","));
        }
    }
    Ok(())
}

fn state(context: &ContextView) -> &'static str {
    match (context.disabled, context.runnable, context.on) {
        (true, ..) => "disabled",
        (_, true, true) => "running",
        (_, true, false) => "waiting",
        (_, false, _) => "idle",
    }
}
