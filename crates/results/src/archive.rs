//! Reading result files back.
//!
//! Files are read in the order given and merged. What comes later supersedes: a run the run or the failure of the same
//! id, a scenario of another digest everything measured for it before, since figures must not mix two definitions of
//! one scenario. Records of two devices are refused altogether.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::record::{ALONE, Absent, Calibration, Failure, Machine, Run, SCHEMA, Scenario};
use crate::{Error, Record};

/// The name of a result file in its folder.
pub const FILE: &str = "results.jsonl";
/// The same, packed for keeping.
pub const PACKED: &str = "results.jsonl.gz";

/// Everything that some result files say, with what was superseded left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Archive {
    pub machines: Vec<Machine>,
    pub scenarios: Vec<Scenario>,
    pub calibrations: Vec<Calibration>,
    pub runs: Vec<Run>,
    /// Only those that no run superseded.
    pub failures: Vec<Failure>,
    pub absent: Vec<Absent>,
    /// What a reader of the figures should know about the files.
    pub remarks: Vec<String>,
}

#[derive(Deserialize)]
struct Tag<'a> {
    #[serde(borrow)]
    record: std::borrow::Cow<'a, str>,
}

#[derive(Deserialize)]
struct Version {
    schema: u64,
}

impl Archive {
    /// Reads files, and folders that hold one under its usual name.
    pub fn read<P: AsRef<Path>>(paths: &[P]) -> Result<Archive, Error> {
        let mut archive = Archive::default();
        for path in paths {
            let path = find(path.as_ref())?;
            let text = text(&path)?;
            Reading { archive: &mut archive, path: &path, begun: false, unknown: BTreeMap::new() }
                .all(&text)?;
        }
        archive.settle();
        Ok(archive)
    }

    /// The archive of records at hand.
    pub fn of(records: impl IntoIterator<Item = Record>) -> Archive {
        let mut archive = Archive::default();
        for record in records {
            archive.take(record);
        }
        archive.settle();
        archive
    }

    /// The runs that need not be made again.
    pub fn done_ids(&self) -> BTreeSet<&str> {
        self.runs.iter().map(|run| run.id.as_str()).collect()
    }

    pub fn scenario(&self, suite: &str, name: &str) -> Option<&Scenario> {
        self.scenarios.iter().find(|scenario| scenario.suite == suite && scenario.name == name)
    }

    pub fn calibration(&self, workload: &str) -> Option<&Calibration> {
        self.calibrations.iter().find(|calibration| calibration.workload == workload)
    }

    /// The runs of a scenario in one mode, by repetition. In the mode `alone` there is one per tenant and repetition.
    pub fn runs_of<'a>(&'a self, suite: &str, scenario: &str, mode: &str) -> Vec<&'a Run> {
        let wanted = |run: &&Run| {
            run.mode == mode
                && if mode == ALONE {
                    run.is_of(suite, scenario)
                } else {
                    run.suite == suite && run.scenario == scenario
                }
        };
        let mut runs: Vec<&Run> = self.runs.iter().filter(wanted).collect();
        runs.sort_by_key(|run| run.repetition);
        runs
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Machine(machine) => self.machines.push(machine),
            Record::Scenario(scenario) => self.take_scenario(scenario),
            Record::Calibration(calibration) => self.take_calibration(calibration),
            Record::Run(mut run) => {
                run.machine = self.machines.len().saturating_sub(1);
                self.take_run(run);
            }
            Record::Failure(failure) => self.take_failure(failure),
            Record::Absent(absent) => self.absent.push(absent),
        }
    }

    fn take_scenario(&mut self, new: Scenario) {
        let same = |old: &Scenario| old.suite == new.suite && old.name == new.name;
        match self.scenarios.iter().position(same) {
            None => self.scenarios.push(new),
            Some(place) => {
                if self.scenarios[place].digest != new.digest {
                    let before = self.runs.len();
                    // What was measured since the machine was last described is of the scenario as it is now: one alone may serve several, and
                    // be there before the last of them is described.
                    let now = self.machines.len().saturating_sub(1);
                    self.runs.retain_mut(|run| run.machine == now || !run.forget(&new.suite, &new.name));
                    self.failures
                        .retain(|failure| (&failure.suite, &failure.scenario) != (&new.suite, &new.name));
                    self.remarks.push(format!(
                        "{}/{} was changed in between: {} earlier runs are left out",
                        new.suite,
                        new.name,
                        before - self.runs.len()
                    ));
                }
                self.scenarios[place] = new;
            }
        }
    }

    fn take_run(&mut self, new: Run) {
        self.failures.retain(|failure| failure.id != new.id);
        match self.runs.iter().position(|run| run.id == new.id) {
            None => self.runs.push(new),
            Some(place) => {
                self.remarks.push(format!("{} was run twice; the later one counts", new.id));
                self.runs[place] = new;
            }
        }
    }

    fn take_failure(&mut self, new: Failure) {
        self.failures.retain(|failure| failure.id != new.id);
        if !self.runs.iter().any(|run| run.id == new.id) {
            self.failures.push(new);
        }
    }

    fn take_calibration(&mut self, new: Calibration) {
        self.calibrations.retain(|old| old.workload != new.workload);
        self.calibrations.push(new);
    }

    /// A mode that is absent in one invocation may have been there in another.
    fn settle(&mut self) {
        let measured: BTreeSet<&str> = self.runs.iter().map(|run| run.mode.as_str()).collect();
        self.absent.retain(|absent| absent.scenario.is_some() || !measured.contains(absent.mode.as_str()));
        let mut seen = Vec::new();
        self.absent.retain(|absent| {
            let key = (absent.mode.clone(), absent.suite.clone(), absent.scenario.clone());
            let new = !seen.contains(&key);
            seen.push(key);
            new
        });
    }
}

/// One file on its way into an archive.
struct Reading<'a> {
    archive: &'a mut Archive,
    path: &'a Path,
    begun: bool,
    unknown: BTreeMap<String, usize>,
}

impl Reading<'_> {
    fn all(mut self, text: &str) -> Result<(), Error> {
        for (index, line) in text.split_inclusive('\n').enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            match self.line(index + 1, line) {
                // A writer ends every record with a newline: without one, it was interrupted.
                Err(Error::Line { .. }) if !line.ends_with('\n') => {
                    let remark = format!("{}: the last line is torn and left out", self.path.display());
                    self.archive.remarks.push(remark);
                }
                other => other?,
            }
        }
        for (tag, count) in std::mem::take(&mut self.unknown) {
            let remark = format!(
                "{}: {count} records of the kind `{tag}`, which this version does not know",
                self.path.display()
            );
            self.archive.remarks.push(remark);
        }
        Ok(())
    }

    fn line(&mut self, number: usize, line: &str) -> Result<(), Error> {
        let tag: Tag = self.parse(number, line)?;
        let record = match tag.record.as_ref() {
            "machine" => Record::Machine(self.machine(number, line)?),
            _ if !self.begun => return Err(self.wrong(number, "a record before any machine record")),
            "scenario" => Record::Scenario(self.parse(number, line)?),
            "calibration" => Record::Calibration(self.parse(number, line)?),
            "run" => {
                let run: Run = self.parse(number, line)?;
                if let Some(fault) = run.fault() {
                    return Err(self.wrong(number, &fault));
                }
                Record::Run(run)
            }
            "failure" => Record::Failure(self.parse(number, line)?),
            "absent" => Record::Absent(self.parse(number, line)?),
            other => {
                *self.unknown.entry(other.to_owned()).or_default() += 1;
                return Ok(());
            }
        };
        self.archive.take(record);
        Ok(())
    }

    fn machine(&mut self, number: usize, line: &str) -> Result<Machine, Error> {
        let Version { schema } = self.parse(number, line)?;
        if schema != u64::from(SCHEMA) {
            let (path, expected) = (self.path.to_owned(), SCHEMA);
            return Err(Error::Schema { path, line: number, found: schema, expected });
        }
        let machine: Machine = self.parse(number, line)?;
        let named = |machine: &Machine| format!("{} ({})", machine.device.name, machine.device.kind);
        if let Some(before) = self.archive.machines.first().map(named)
            && before != named(&machine)
        {
            let (path, found) = (self.path.to_owned(), named(&machine));
            return Err(Error::Device { path, line: number, found, before });
        }
        self.begun = true;
        Ok(machine)
    }

    fn parse<'de, T: Deserialize<'de>>(&self, number: usize, line: &'de str) -> Result<T, Error> {
        serde_json::from_str(line).map_err(|error| self.wrong(number, &error.to_string()))
    }

    fn wrong(&self, line: usize, reason: &str) -> Error {
        Error::Line { path: self.path.to_owned(), line, reason: reason.to_owned() }
    }
}

fn find(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let candidates = [path.join(FILE), path.join(PACKED)];
    candidates.into_iter().find(|file| file.is_file()).ok_or_else(|| Error::NoResults(path.to_owned()))
}

/// What a packed file may unpack to: some tens of millions of requests.
const LARGEST: u64 = 1 << 30;

fn text(path: &Path) -> Result<String, Error> {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let mut bytes = Vec::new();
        if path.extension().is_some_and(|extension| extension == "gz") {
            // A small file can unpack to more than there is memory.
            flate2::read::MultiGzDecoder::new(file).take(LARGEST + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > LARGEST {
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, "unpacked, it is larger than 1 GiB"));
            }
        } else {
            file.read_to_end(&mut bytes)?;
        }
        // A line may be torn in the middle of a letter.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map_err(|reason| Error::File { doing: "read", path: path.to_owned(), reason })
}

#[cfg(test)]
mod tests;
