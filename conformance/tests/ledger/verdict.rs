//! Ledgers against tallies.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use telemetry::{Counter, Reading};

use crate::Place;
use crate::tally::{KernelName, KernelTally, Tally};

/// How many differences are worth reading.
const MOST: usize = 12;

/// Every process of the section has left a ledger for every tally, in the same order, and each says what its tally says.
pub fn compare(place: &Place) -> Result<()> {
    let (ledgers, tallies) = (read_ledgers(&place.ledgers())?, read_tallies(&place.tallies())?);
    let processes = |pids: &BTreeMap<u32, usize>| format!("{pids:?}");
    let (counted, told) = (lengths(&ledgers), lengths(&tallies));
    ensure!(counted == told, "ledgers by process: {}, tallies: {}", processes(&counted), processes(&told));
    let (mut complaints, mut images) = (Vec::new(), Images::default());
    for (ledger, tally) in ledgers.values().flatten().zip(tallies.values().flatten()) {
        complaints.extend(header(ledger, place));
        complaints.extend(differences(ledger, tally, &mut images));
    }
    match complaints.len() {
        0 => Ok(()),
        number => bail!("{number} differences:\n{}", complaints[..number.min(MOST)].join("\n")),
    }
}

fn lengths<T>(by_process: &BTreeMap<u32, Vec<T>>) -> BTreeMap<u32, usize> {
    by_process.iter().map(|(pid, list)| (*pid, list.len())).collect()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)?;
    Ok(entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?)
}

/// By process, oldest first.
pub fn read_ledgers(folder: &Path) -> Result<BTreeMap<u32, Vec<Reading>>> {
    let mut by_process: BTreeMap<u32, Vec<Reading>> = BTreeMap::new();
    for path in files(folder)?.into_iter().filter(|path| Reading::is_called_so(path)) {
        let reading = Reading::open(&path)?;
        by_process.entry(reading.pid).or_default().push(reading);
    }
    by_process.values_mut().for_each(|list| list.sort_by_key(|reading| reading.started));
    Ok(by_process)
}

/// By process, oldest first: a tally's file is called `<pid>-<time>`.
pub fn read_tallies(folder: &Path) -> Result<BTreeMap<u32, Vec<Tally>>> {
    let mut paths = Vec::new();
    for path in files(folder)? {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
        let (pid, time) = name.context("a tally is called after its process and time")?;
        paths.push((pid.parse::<u32>()?, time.parse::<u128>()?, path));
    }
    paths.sort();
    let mut by_process: BTreeMap<u32, Vec<Tally>> = BTreeMap::new();
    for (pid, _, path) in paths {
        by_process.entry(pid).or_default().push(Tally::read(&path)?);
    }
    Ok(by_process)
}

/// What the head of every ledger of this test must say.
fn header(ledger: &Reading, place: &Place) -> Vec<String> {
    let mut complaints = Vec::new();
    if !ledger.program.ends_with(&format!("--section {}", place.section.name)) {
        complaints.push(format!("the program is called {:?}", ledger.program));
    }
    if Path::new(&ledger.driver) != place.section.driver.as_path() || ledger.driver_version < 13000 {
        complaints.push(format!("the driver is {} {}", ledger.driver, ledger.driver_version));
    }
    if !ledger.detail.is_empty() {
        complaints.push(format!("the ledger says {:?}", ledger.detail));
    }
    complaints
}

fn differences(ledger: &Reading, tally: &Tally, images: &mut Images) -> Vec<String> {
    let mut complaints = Vec::new();
    for &counter in Counter::ALL {
        let (counted, did) = (ledger.count(counter), tally.count(counter));
        if counted != did {
            complaints.push(format!("{}: counted {counted}, did {did}", counter.name()));
        }
    }
    let notes: BTreeSet<_> = ledger.notes.iter().copied().collect();
    if notes != tally.notes {
        complaints.push(format!("the notes are {notes:?}, should be {:?}", tally.notes));
    }
    let mut missing = tally.kernels.clone();
    for kernel in &ledger.kernels {
        let listed = KernelTally {
            parameter_bytes: kernel.parameter_bytes,
            parameter_count: kernel.parameter_count,
            launches: kernel.launches,
            in_graphs: kernel.in_graphs,
            blocks: kernel.blocks,
        };
        let image = images.of(&kernel.name, kernel.module_hash, listed, tally).unwrap_or_default();
        match missing.remove(&KernelName { name: kernel.name.clone(), image }) {
            None => complaints.push(format!("listed and never launched: {kernel:x?}")),
            Some(did) if did != listed => {
                complaints.push(format!("{}: counted {listed:?}, did {did:?}", kernel.name));
            }
            Some(_) => {}
        }
    }
    complaints.extend(missing.keys().map(|kernel| format!("not listed: {kernel:?}")));
    let listed: u64 = ledger.kernels.iter().map(telemetry::KernelReading::total).sum();
    let apart = ledger.count(Counter::KernelsUnknown) + ledger.count(Counter::KernelsUnlisted);
    if ledger.kernels_run() != listed + apart {
        let run = ledger.kernels_run();
        complaints.push(format!("{run} kernels were run, {listed} are listed and {apart} known not to be"));
    }
    complaints
}

/// Which hash belongs to which image. One hash is one image, and one image is one hash.
#[derive(Default)]
struct Images {
    words: BTreeMap<u128, String>,
}

impl Images {
    /// The image that a kernel's hash stands for. A hash that is met for the first time stands for an image that has
    /// such a kernel and has no hash yet: where several have, for the one whose kernel was used as is listed.
    fn of(&mut self, kernel: &str, hash: u128, listed: KernelTally, tally: &Tally) -> Option<String> {
        if hash == 0 {
            return None;
        }
        if let Some(word) = self.words.get(&hash) {
            return Some(word.clone());
        }
        let taken: BTreeSet<&String> = self.words.values().collect();
        let named = tally.kernels.iter().filter(|(known, _)| known.name == kernel);
        let free: Vec<_> = named.filter(|(known, _)| !taken.contains(&known.image)).collect();
        let meant = free.iter().find(|(_, did)| **did == listed).or(free.first());
        let word = meant.map(|(known, _)| known.image.clone())?;
        self.words.insert(hash, word.clone());
        Some(word)
    }
}
