//! The report for programs. Its keys are described in `docs/run.md` and stay what they are.

use telemetry::{Counter, KernelReading, Reading, UnwrittenLedger};

use super::{Report, Sight};
use crate::json::Json;
use crate::run::supervise::End;
use crate::run::watch::Bypass;
use crate::verdicts::json as verdicts;

pub fn write(report: &Report) -> Json {
    let signal = match report.end {
        End::Killed(signal) => Some(u32::from(signal)),
        End::Exited(_) => None,
    };
    let blind = match &report.sight {
        Sight::Blind(reason) => Some(reason.as_str()),
        Sight::Clear => None,
    };
    let duration = u64::try_from(report.lasted.as_nanos()).unwrap_or(u64::MAX);
    Json::object([
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("command", Json::list(report.command.iter().map(String::as_str))),
        ("status", u32::from(report.end.status()).into()),
        ("signal", signal.into()),
        ("duration_ns", duration.into()),
        ("cuda_used", report.used().into()),
        ("blind", blind.into()),
        ("processes", Json::List(report.readings.iter().map(process).collect())),
        ("unwritten", Json::List(report.unwritten.iter().map(unwritten).collect())),
        ("round_ebb", Json::List(report.round.iter().map(round).collect())),
        ("total", counters(|counter| report.total(counter))),
        ("kernels", Json::List(report.kernels().iter().map(kernel).collect())),
        ("verdicts", verdicts::totals(&report.kernels())),
        ("sentences", Json::list(report.sentences())),
    ])
}

fn process(reading: &Reading) -> Json {
    Json::object([
        ("pid", reading.pid.into()),
        ("program", reading.program.as_str().into()),
        ("started_ns", reading.started.into()),
        ("driver", Some(reading.driver.as_str()).filter(|driver| !driver.is_empty()).into()),
        ("driver_version", Some(reading.driver_version).filter(|&version| version != 0).into()),
        ("notes", Json::list(reading.notes.iter().map(|note| note.name()))),
        ("detail", Some(reading.detail.as_str()).filter(|detail| !detail.is_empty()).into()),
        ("kernels_run", reading.kernels_run().into()),
        ("bytes_allocated", reading.bytes_allocated().into()),
        ("counters", counters(|counter| reading.count(counter))),
        ("kernels", Json::List(reading.kernels.iter().map(kernel).collect())),
    ])
}

fn unwritten(missing: &UnwrittenLedger) -> Json {
    Json::object([("pid", missing.pid.into()), ("reason", missing.reason().to_string().into())])
}

fn round(bypass: &Bypass) -> Json {
    Json::object([
        ("pid", bypass.pid.into()),
        ("program", bypass.program.as_str().into()),
        ("library", bypass.library.to_string_lossy().into_owned().into()),
    ])
}

fn kernel(kernel: &KernelReading) -> Json {
    let described = Json::object([
        ("name", kernel.name.as_str().into()),
        ("module", format!("{:032x}", kernel.module_hash).into()),
        ("parameter_bytes", kernel.parameter_bytes.into()),
        ("parameter_count", kernel.parameter_count.into()),
        ("launches", kernel.launches.into()),
        ("in_graphs", kernel.in_graphs.into()),
        ("blocks", kernel.blocks.into()),
    ]);
    described.and(verdicts::judgement(kernel))
}

/// All counters, the words of their names as keys in each other: `launches.plain.default` is
/// `{"launches":{"plain":{"default":…}}}`.
fn counters(count: impl Fn(Counter) -> u64) -> Json {
    let mut all = Json::Object(Vec::new());
    for &counter in Counter::ALL {
        *place(&mut all, counter.name()) = count(counter).into();
    }
    all
}

fn place<'a>(object: &'a mut Json, name: &str) -> &'a mut Json {
    name.split('.').fold(object, |object, word| {
        if !matches!(object, Json::Object(_)) {
            *object = Json::Object(Vec::new());
        }
        let Json::Object(members) = object else { unreachable!("it was made one") };
        let at = members.iter().position(|(key, _)| key == word).unwrap_or_else(|| {
            members.push((word.to_owned(), Json::Null));
            members.len() - 1
        });
        &mut members[at].1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_place() {
        let all = counters(|counter| counter as u64 + 1);
        let mut object = all.clone();
        for &counter in Counter::ALL {
            assert_eq!(*place(&mut object, counter.name()), Json::from(counter as u64 + 1));
        }
        assert_eq!(object, all, "looking changed nothing, so no name is the beginning of another");
        assert!(all.to_string().starts_with(r#"{"launches":{"plain":{"default":1,"per_thread":2,"#), "{all}");
    }
}
