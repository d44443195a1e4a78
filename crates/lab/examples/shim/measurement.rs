//! One process that measures, from both of its sides.
//!
//! A shim that is not attached costs nothing, and neither does a tenant without a seat. So whoever starts the process
//! looks, before and after, what the daemon says about it, and counts in the end what the shim has counted.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Instant;

use lab::{Call, Cost, Forwarding, Guarding};
use model::{Class, Nanos};
use telemetry::{LaunchKind, Reading, StreamKind};

use crate::house::{House, Sight};
use crate::{Result, THREADS};

/// The side that is started. It says when it is ready, measures when it is told to, and stays for as long as it is looked
/// at.
pub fn serve(null: &Path, shim: &Path, class: Option<Class>) -> Result<()> {
    let forwarding = Forwarding::open(null, shim)?;
    let mut word = String::new();
    println!("ready");
    std::io::stdin().read_line(&mut word)?;
    for threads in THREADS {
        for &call in Call::within(class) {
            println!("{}", forwarding.cost(call, threads));
        }
    }
    println!("done");
    std::io::stdin().read_line(&mut word)?;
    Ok(())
}

/// The same for guarded launches, which nobody has to look at meanwhile.
pub fn serve_guarded(soft: &Path, shim: &Path) -> Result<()> {
    let guarding = Guarding::open(soft, shim)?;
    for call in Call::GUARDED {
        println!("{}", guarding.cost(call)?);
    }
    Ok(())
}

/// Measures guarded launches, on the software GPU, in a process that is no tenant and guards all of them.
pub fn guarded(house: &House, soft: &Path, shim: &Path) -> Result<Vec<Cost>> {
    let (ledgers, cache) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut command = house.ebb();
    command.args(["run", "--no-daemon", "--driver"]).arg(soft);
    command.arg("--").arg(std::env::current_exe()?).arg("--guarded").args([soft, shim]);
    command.env("EBB_RUN", ledgers.path()).env("EBB_GUARD", "now").env("EBB_GUARD_CACHE", cache.path());
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the process that measured guarded launches ended with {}", output.status).into());
    }
    let (mut guarded, made) = (0, Call::GUARDED.len() as u64 * Guarding::CALLS);
    for path in self::ledgers(ledgers.path())? {
        guarded += Reading::open(&path)?.kernels.iter().map(|kernel| kernel.guarded).sum::<u64>();
    }
    if guarded != made {
        return Err(format!("{guarded} launches were guarded of {made}").into());
    }
    String::from_utf8(output.stdout)?.lines().map(|line| Ok(line.parse()?)).collect()
}

/// The side that starts it.
pub struct Measurement<'a> {
    pub house: &'a House,
    pub null: &'a Path,
    pub shim: &'a Path,
    pub class: Option<Class>,
    /// Whether events are written down, as they are unless somebody switches them off.
    pub events: bool,
}

impl Measurement<'_> {
    pub fn run(&self) -> Result<Vec<Cost>> {
        let ledgers = tempfile::tempdir()?;
        let mut child = self.start(ledgers.path())?;
        let measured = self.watch(&mut child);
        if measured.is_err() {
            let _ = child.kill();
        }
        let status = child.wait()?;
        let costs = measured?;
        if !status.success() {
            return Err(format!("the process that measured ended with {status}").into());
        }
        self.check_ledgers(ledgers.path())?;
        Ok(costs)
    }

    /// `ebb run` becomes the program, so the child is the process that will have the seat.
    fn start(&self, ledgers: &Path) -> Result<Child> {
        let class = self.class.map(|class| class.to_string());
        let mut command = self.house.ebb();
        command.args(["run", "--driver"]).arg(self.null);
        match &class {
            Some(class) => command.args(["--class", class]),
            None => command.arg("--no-daemon"),
        };
        command.arg("--").arg(std::env::current_exe()?).arg("--measured").args([self.null, self.shim]);
        command.arg(class.as_deref().unwrap_or("none")).env("EBB_RUN", ledgers);
        if !self.events {
            command.env("EBB_EVENTS", "0");
        }
        Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
    }

    fn watch(&self, child: &mut Child) -> Result<Vec<Cost>> {
        let pid = child.id();
        let mut stdin = child.stdin.take().expect("standard input was piped");
        let stdout = child.stdout.take().expect("standard output was piped");
        let mut lines = BufReader::new(stdout).lines();
        if lines.next().transpose()?.as_deref() != Some("ready") {
            return Err("the process that measures did not begin".into());
        }
        let before = self.class.map(|class| self.house.seated(pid, class)).transpose()?;
        let looked = Instant::now();
        writeln!(stdin, "go")?;
        let mut costs = Vec::new();
        loop {
            let line = lines.next().transpose()?.ok_or("the process that measures ended early")?;
            if line == "done" {
                break;
            }
            costs.push(line.parse()?);
        }
        let lasted = Nanos::from(looked.elapsed());
        if let Some(before) = before {
            self.check(before, self.house.sight(pid)?.ok_or("the seat was lost")?, lasted)?;
        }
        Ok(costs)
    }

    /// Whether the process was all the while what its figures say it was.
    fn check(&self, before: Sight, after: Sight, lasted: Nanos) -> Result<()> {
        match after.class {
            Class::BestEffort if after.held.is_none_or(|held| held < lasted) => {
                Err("the token was not held all the while".into())
            }
            Class::Latency
                if after.bursts - before.bursts < calls(|call| call == Call::Burst, self.class) =>
            {
                Err(format!("{} bursts were seen, which are too few", after.bursts - before.bursts).into())
            }
            _ => Ok(()),
        }
    }

    fn check_ledgers(&self, folder: &Path) -> Result<()> {
        let mut launches = 0;
        for path in ledgers(folder)? {
            let ledger = Reading::open(&path)?;
            launches +=
                StreamKind::ALL.map(|stream| ledger.launches(LaunchKind::Plain, stream)).iter().sum::<u64>();
        }
        let made = calls(Call::is_plain_launch, self.class) + Forwarding::FIRST;
        if launches != made {
            return Err(format!("{launches} launches counted of {made}").into());
        }
        Ok(())
    }
}

/// The ledgers in a folder, without the events beside them.
fn ledgers(folder: &Path) -> Result<Vec<PathBuf>> {
    let files = std::fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
    Ok(files.into_iter().filter(|path| Reading::is_called_so(path)).collect())
}

/// How many such calls are made through the shim.
fn calls(which: impl Fn(Call) -> bool, class: Option<Class>) -> u64 {
    let kinds = Call::within(class).iter().filter(|&&call| which(call)).count() as u64;
    let threads: usize = THREADS.iter().sum();
    kinds * Forwarding::CALLS * threads as u64
}
