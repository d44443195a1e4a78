//! Archives made out of the sample, with what the sample lacks.

use results::record::{Record, Run, Scenario};
use results::{Archive, Figures, sample};

/// A load sweep: one pair of the sample under five names, each further one with its latencies drawn out, the last one
/// with most requests never served.
pub fn swept() -> Archive {
    let mut archive = sample::archive();
    let scenario = archive.scenario("tally", "vgg19-whisper").expect("it is in the sample").clone();
    for (index, load) in [0.1, 0.3, 0.5, 0.7, 0.9].into_iter().enumerate() {
        let name = format!("swept-{index}");
        let runs: Vec<Run> = archive
            .runs
            .iter()
            .filter(|run| run.is_of("tally", "vgg19-whisper"))
            .map(|run| Run {
                id: run.id.replace("vgg19-whisper", &name),
                scenario: name.clone(),
                ..run.clone()
            })
            .map(|run| if run.mode == "alone" { run } else { drawn_out(run, index as u64) })
            .collect();
        archive.runs.extend(runs);
        let mut copy = Scenario { name, title: format!("Swept, load {load}"), ..scenario.clone() };
        copy.tenants[0].arrival = format!("gamma with cv 2 at load {load}");
        archive.scenarios.push(copy);
    }
    archive
}

fn drawn_out(mut run: Run, index: u64) -> Run {
    let tenant = &mut run.tenants[0];
    for (end, start) in tenant.end_us.iter_mut().zip(&tenant.start_us) {
        *end += (*end - *start) * index;
    }
    if index == 4 && run.mode != "ebb-isolated" {
        let served = tenant.end_us.len() / 3;
        tenant.end_us.truncate(served);
        tenant.start_us.truncate(served);
    }
    run
}

/// The sample with every name that comes from outside turned into an attack.
pub fn hostile() -> Archive {
    const ATTACK: &str =
        "</script><script>document.title='taken'</script>\"'><img src=x onerror=alert(1)>&|`";
    let mut records = sample::records();
    for record in &mut records {
        match record {
            Record::Machine(machine) => {
                machine.device.name = ATTACK.into();
                machine.host.cpu = ATTACK.into();
                machine.command.push(ATTACK.into());
                machine.libraries.insert(ATTACK.into(), ATTACK.into());
            }
            Record::Scenario(scenario) => {
                scenario.title = ATTACK.into();
                scenario.about = Some(ATTACK.into());
                scenario.source = Some(ATTACK.into());
                scenario.modes.push(ATTACK.into());
                for tenant in &mut scenario.tenants {
                    tenant.arrival = ATTACK.into();
                    tenant.workload += ATTACK;
                }
            }
            Record::Failure(failure) => failure.reason = ATTACK.into(),
            Record::Absent(absent) => {
                absent.reason = ATTACK.into();
                absent.mode = ATTACK.into();
            }
            _ => {}
        }
    }
    Archive::of(records)
}

pub fn page(archive: &Archive) -> String {
    report::html(archive, &Figures::of(archive))
}
