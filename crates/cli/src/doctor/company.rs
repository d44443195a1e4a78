//! Who else is on the GPU.

use daemon::{Place, client};

use super::check::{Check, Status};
use crate::arguments::{Device, DoctorOptions};
use crate::company;

const NAME: &str = "company";

/// More than this are not named.
const NAMED: usize = 6;

pub fn check(options: &DoctorOptions) -> Check {
    let places = Place::candidates().unwrap_or_default();
    let answer = places.iter().find_map(|place| Some((place, client::report(place).ok()?)));
    let own = answer.as_ref().map(|(_, report)| report.daemon.pid);
    let tenants: Vec<u32> = answer
        .iter()
        .flat_map(|(_, report)| &report.gpus)
        .flat_map(|gpu| &gpu.processes)
        .map(|process| process.pid)
        .collect();
    let folder =
        answer.as_ref().map(|(place, _)| *place).or(places.last()).map(|place| place.folder().to_owned());
    let survey = daemon::survey(Some(company::cards), &folder.unwrap_or_default());
    let soft = options.device == Some(Device::Soft);
    // A GPU that is counted is a real one.
    let meant = survey.values().filter(|seen| seen.index.is_none() == soft);
    let strangers = meant.flat_map(|seen| seen.processes.iter().flatten());
    let strangers =
        strangers.filter(|stranger| !tenants.contains(&stranger.pid)).map(|stranger| stranger.words());
    let daemons = company::daemons(own);
    judge(daemons.iter().map(company::OtherDaemon::words).chain(strangers).collect())
}

fn judge(mut others: Vec<String>) -> Check {
    if others.is_empty() {
        return Check::ok(NAME, "nobody else is seen on the GPU, and no other daemon of ebb");
    }
    let more = others.len().saturating_sub(NAMED);
    others.truncate(NAMED);
    if more > 0 {
        others.push(format!("and {more} more"));
    }
    Check::new(NAME, Status::Note, others.join("; "), company::ADVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn company_is_a_note_with_advice() {
        assert_eq!(judge(Vec::new()).status, Status::Ok);
        let many = judge((1..9).map(|number| format!("pid {number}")).collect());
        assert_eq!(many.status, Status::Note);
        assert!(many.found.ends_with("pid 6; and 2 more"), "{}", many.found);
    }
}
