//! What only one of the pages shows: all about a tenant, and the verdicts of all kernels.

use daemon::picture::Picture;
use daemon::report::Process;
use export::readable;
use guard::{Finding, Rule, Verdict};
use serde::Serialize;
use telemetry::KernelReading;

use crate::shelf::{Shelf, everybody};

/// A program may have thousands of kernels; those that are not among the busiest so many are not looked for on a page.
const KERNELS: usize = 400;

/// All about a tenant on a GPU.
#[derive(Debug, Serialize)]
pub struct Detail<'a> {
    pub tenant: &'a str,
    pub gpu: &'a str,
    /// How long requests took: up to which time, how many. Empty where none was seen.
    pub bursts: Vec<(u64, u64)>,
    pub processes: Vec<&'a Process>,
    pub kernels: Vec<Kernel>,
    /// Processes whose ledgers cannot be read.
    pub unread: Vec<u32>,
    /// What processes say of themselves, in sentences.
    pub notes: Vec<String>,
}

/// A kernel of a tenant, and what is known about stopping it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    pub tenant: String,
    pub owner: String,
    pub name: String,
    /// `guard`, `ordered`, `refuse` or `unknown`.
    pub verdict: &'static str,
    /// What is said of it to people.
    pub words: String,
    pub launches: u64,
    pub guarded: u64,
    pub cut: u64,
    pub gpu_ns: Option<u64>,
    pub certificate_ns: Option<u64>,
    pub block_ns: Option<u64>,
}

/// `None`: there is no such tenant.
pub fn tenant<'a>(picture: &'a Picture, shelf: &mut Shelf, gpu: &str, tenant: &str) -> Option<Detail<'a>> {
    let told = picture.report.gpus.iter().find(|told| told.uuid == gpu)?;
    let processes: Vec<&Process> = told.processes.iter().filter(|process| process.tenant == tenant).collect();
    let first = *processes.first()?;
    let own = picture.bursts.iter().find(|bursts| bursts.gpu == gpu && bursts.tenant == tenant);
    let bursts = own.map(|own| own.times.buckets().map(|(end, count)| (end.0, count)).collect());
    let (mut kernels, mut unread, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for process in &processes {
        match shelf.ledger(process.pid) {
            Some(reading) => {
                kernels.extend(reading.kernels.iter().map(|kernel| judged(process, kernel)));
                let said = reading.notes.iter().map(|note| note.sentence());
                notes.extend(said.map(|sentence| format!("{}: {sentence}", process.pid)));
            }
            None => unread.push(process.pid),
        }
    }
    Some(Detail {
        tenant: &first.tenant,
        gpu: &told.uuid,
        bursts: bursts.unwrap_or_default(),
        processes,
        kernels: busiest(kernels),
        unread,
        notes,
    })
}

/// The kernels of everybody.
#[derive(Debug, Serialize)]
pub struct Verdicts {
    pub kernels: Vec<Kernel>,
    /// How many there are in all.
    pub known: usize,
    /// Processes whose ledgers cannot be read.
    pub unread: usize,
}

pub fn verdicts(picture: &Picture, shelf: &mut Shelf) -> Verdicts {
    let mut processes: Vec<&Process> = everybody(&picture.report).collect();
    processes.sort_by_key(|process| process.pid);
    processes.dedup_by_key(|process| process.pid);
    let (mut kernels, mut unread) = (Vec::new(), 0);
    for process in processes {
        match shelf.ledger(process.pid) {
            Some(reading) => kernels.extend(reading.kernels.iter().map(|kernel| judged(process, kernel))),
            None => unread += 1,
        }
    }
    let known = kernels.len();
    Verdicts { kernels: busiest(kernels), known, unread }
}

fn busiest(mut kernels: Vec<Kernel>) -> Vec<Kernel> {
    kernels.sort_by_key(|kernel| std::cmp::Reverse((kernel.gpu_ns, kernel.launches)));
    kernels.truncate(KERNELS);
    kernels
}

fn judged(process: &Process, kernel: &KernelReading) -> Kernel {
    let known = |time: u64| Some(time).filter(|&time| time > 0);
    let latency = process.class == model::Class::Latency.to_string();
    let (verdict, words) = words(kernel, latency);
    Kernel {
        tenant: process.tenant.clone(),
        owner: process.name.clone(),
        name: readable(&kernel.name),
        verdict,
        words,
        launches: kernel.total(),
        guarded: kernel.guarded,
        cut: kernel.cut,
        gpu_ns: kernel.gpu_ns(),
        certificate_ns: known(kernel.certificate_ns),
        block_ns: known(kernel.block_ns),
    }
}

/// A verdict in a word and in a sentence.
fn words(kernel: &KernelReading, latency: bool) -> (&'static str, String) {
    let verified = match kernel.finding.and_then(Finding::from_number) {
        Some(Finding::Equal { .. }) => "; trials gave the same results",
        Some(Finding::Unknown(_)) => "; trials could not tell",
        Some(Finding::Differs) => "; a trial gave other results",
        None => "",
    };
    match kernel.verdict.and_then(Verdict::from_number) {
        Some(Verdict::Guard(Rule::Plain)) => ("guard", format!("stops between any two blocks{verified}")),
        Some(Verdict::Guard(Rule::Ordered)) => {
            ("ordered", format!("stops between blocks, in their order{verified}"))
        }
        Some(Verdict::Refuse(reason)) => ("refuse", reason.sentence().to_owned()),
        None if latency => ("unknown", "of a latency tenant, which nobody stops".to_owned()),
        None => ("unknown", "nobody has looked whether it stops between its blocks".to_owned()),
    }
}
