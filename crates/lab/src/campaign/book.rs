//! The result file of a campaign: what it says already, and what is added.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use results::record::{Absent, Calibration, Failure, Machine, Run, Scenario};
use results::{Archive, FILE, Record, Writer};

use crate::Error;
use crate::crew::Ready;

pub struct Book {
    writer: Writer,
    done: BTreeSet<String>,
    scenarios: BTreeMap<String, Scenario>,
    calibrations: BTreeMap<String, Calibration>,
    /// Runs of tenants alone, by id, and for whom they are; they are made once for many.
    alone: BTreeMap<String, Run>,
    /// Not yet written: a worker may add what it knows about the libraries.
    machine: Option<Machine>,
    /// Neither are these, which would come before any worker.
    absent: Vec<Absent>,
}

impl Book {
    /// Opens the file of a folder. What was measured there on another device does not mix with this.
    pub fn open(folder: &Path, machine: Machine) -> Result<Book, Error> {
        let writer = Writer::open(folder)?;
        let has_any = std::fs::metadata(folder.join(FILE)).is_ok_and(|file| file.len() > 0);
        let archive = if has_any { Archive::read(&[folder])? } else { Archive::default() };
        if let Some(before) = archive.machines.first()
            && (&before.device.kind, &before.device.name) != (&machine.device.kind, &machine.device.name)
        {
            let (path, before) = (folder.to_owned(), before.device.name.clone());
            return Err(Error::OtherDevice { path, before, now: machine.device.name });
        }
        let done = archive.runs.iter().map(|run| run.id.clone()).collect();
        let full = |scenario: &Scenario| format!("{}/{}", scenario.suite, scenario.name);
        Ok(Book {
            writer,
            done,
            scenarios: archive.scenarios.into_iter().map(|scenario| (full(&scenario), scenario)).collect(),
            calibrations: archive
                .calibrations
                .into_iter()
                .map(|found| (found.workload.clone(), found))
                .collect(),
            alone: archive
                .runs
                .into_iter()
                .filter(|run| run.mode == results::record::ALONE)
                .map(|run| (run.id.clone(), run))
                .collect(),
            machine: Some(machine),
            absent: Vec::new(),
        })
    }

    pub fn is_done(&self, id: &str) -> bool {
        self.done.contains(id)
    }

    pub fn calibration(&self, workload: &str) -> Option<&Calibration> {
        self.calibrations.get(workload)
    }

    /// What a worker says of itself is what the record says of the machine, if it is the first.
    pub fn learn(&mut self, ready: &Ready) {
        let Some(machine) = &mut self.machine else { return };
        for (library, version) in &ready.versions {
            machine.libraries.entry(library.clone()).or_insert_with(|| version.clone());
        }
        if machine.device.sms == 0 {
            machine.device.sms = ready.gpu.sms;
        }
    }

    fn append(&mut self, record: &Record) -> Result<(), Error> {
        if let Some(machine) = self.machine.take() {
            self.writer.append(&Record::Machine(machine))?;
        }
        for absent in self.absent.drain(..) {
            self.writer.append(&Record::Absent(absent))?;
        }
        Ok(self.writer.append(record)?)
    }

    /// Writes a scenario down unless that has been done. One that was measured before in other modes or less often is
    /// still the same.
    pub fn scenario(&mut self, mut scenario: Scenario) -> Result<(), Error> {
        let name = format!("{}/{}", scenario.suite, scenario.name);
        if let Some(before) = self.scenarios.get(&name).filter(|before| before.digest == scenario.digest) {
            scenario.repetitions = scenario.repetitions.max(before.repetitions);
            let missing = before.modes.iter().filter(|mode| !scenario.modes.contains(mode));
            let missing: Vec<String> = missing.cloned().collect();
            scenario.modes.extend(missing);
            scenario.modes.sort();
            if *before == scenario {
                return Ok(());
            }
        }
        self.append(&Record::Scenario(scenario.clone()))?;
        self.scenarios.insert(name, scenario);
        Ok(())
    }

    pub fn calibrate(&mut self, calibration: Calibration) -> Result<(), Error> {
        self.append(&Record::Calibration(calibration.clone()))?;
        self.calibrations.insert(calibration.workload.clone(), calibration);
        Ok(())
    }

    pub fn run(&mut self, run: Run) -> Result<(), Error> {
        self.done.insert(run.id.clone());
        if run.mode == results::record::ALONE {
            self.alone.insert(run.id.clone(), run.clone());
        }
        self.append(&Record::Run(run))
    }

    /// A run of a tenant alone, if it is there.
    pub fn alone(&self, id: &str) -> Option<&Run> {
        self.alone.get(id)
    }

    pub fn failure(&mut self, failure: Failure) -> Result<(), Error> {
        self.append(&Record::Failure(failure))
    }

    /// Is written together with what can be had.
    pub fn absent(&mut self, absent: Absent) {
        self.absent.push(absent);
    }

    /// A run alone that is there already serves these as well, also where they were not thought of when it was made.
    pub fn serve(&mut self, id: &str, names: &[String]) -> Result<(), Error> {
        let Some(run) = self.alone.get_mut(id) else { return Ok(()) };
        let known = run.names();
        if names.iter().all(|name| known.contains(name)) {
            return Ok(());
        }
        run.serves = known;
        run.serves
            .extend(names.iter().filter(|name| !run.serves.contains(name)).cloned().collect::<Vec<_>>());
        let run = run.clone();
        self.append(&Record::Run(run))
    }

    /// Has everything on the disk.
    pub fn close(self) -> Result<(), Error> {
        Ok(self.writer.finish()?)
    }
}
