//! `ebb soft`: a software GPU seen and set from outside.

use anyhow::Result;
use model::Nanos;
use softgpu::card::{Card, ContextView};

use crate::arguments::{Output, SoftVerb};

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
        SoftVerb::Set { card, domain, switch_cost, timeslice } => {
            let card = Card::attach(&card.card)?;
            if let Some(domain) = domain {
                card.set_domain(*domain);
            }
            if let Some(micros) = switch_cost {
                card.set_switch_cost(Nanos::from_micros(*micros));
            }
            for (context, micros) in timeslice {
                card.set_timeslice(*context, Nanos::from_micros(*micros))?;
            }
        }
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

fn state(context: &ContextView) -> &'static str {
    match (context.runnable, context.on) {
        (true, true) => "running",
        (true, false) => "waiting",
        (false, _) => "idle",
    }
}
