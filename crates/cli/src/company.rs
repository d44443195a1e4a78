//! Who else is on the GPU: processes of other users, and other daemons of ebb on this machine.
//!
//! Two daemons know little of each other, and the tenants of one are strangers to those of the other; the machine's daemon serves all
//! users. A user who meets others is told so: by `ebb doctor` whenever it is asked, by `ebb run` once.

use std::fs;
use std::io::IsTerminal as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use daemon::report::Report;
use daemon::{Gpu, Occupant, OnGpu, Place, client, name_of_user};

/// What to do about it.
pub const ADVICE: &str =
    "a daemon for all users shares the GPU between them: `ebb daemon --machine`, run by root";

/// Software GPUs and who is on them; for the daemon, which knows nothing of such GPUs.
pub fn cards(folder: &Path) -> Vec<(Gpu, Vec<Occupant>)> {
    let occupant = |one: softgpu::card::Occupant| Occupant {
        pid: one.pid,
        memory_bytes: Some(one.used_bytes),
        active: Some(one.active),
        on_gpu: one.on_gpu.map_or(OnGpu::Unknown, OnGpu::Total),
    };
    let cards = softgpu::card::survey(folder).into_iter();
    cards.map(|card| (Gpu(card.uuid), card.processes.into_iter().map(occupant).collect())).collect()
}

/// The files of the same, by which processes show that they may use them.
pub fn card_files(folder: &Path) -> Vec<(Gpu, u64, u64)> {
    let cards = softgpu::card::card_files(folder).into_iter();
    cards.map(|card| (Gpu(card.uuid), card.device, card.inode)).collect()
}

/// A daemon of ebb on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherDaemon {
    pub pid: u32,
    pub user: u32,
    pub machine: bool,
}

impl OtherDaemon {
    pub fn words(&self) -> String {
        let user = name_of_user(self.user).unwrap_or_else(|| self.user.to_string());
        let whose = if self.machine { "the machine's daemon" } else { "a daemon" };
        format!("{whose} of ebb (pid {}, user {user})", self.pid)
    }
}

/// The daemons that can be seen, but for this one.
pub fn daemons(except: Option<u32>) -> Vec<OtherDaemon> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| Some(*pid) != except && *pid != std::process::id()).filter_map(daemon_of).collect()
}

fn daemon_of(pid: u32) -> Option<OtherDaemon> {
    let folder = PathBuf::from(format!("/proc/{pid}"));
    let line = fs::read(folder.join("cmdline")).ok()?;
    let machine = is_daemon(&line)?;
    Some(OtherDaemon { pid, user: fs::metadata(folder).ok()?.uid(), machine })
}

/// Whether these are the words of a daemon that serves, and for the machine.
fn is_daemon(line: &[u8]) -> Option<bool> {
    let mut words = line.split(|&byte| byte == 0);
    let program = words.next()?.rsplit(|&byte| byte == b'/').next()?;
    (program == b"ebb" && words.next()? == b"daemon").then_some(())?;
    let rest: Vec<_> = words.collect();
    (!rest.contains(&b"stop".as_slice())).then(|| rest.contains(&b"--machine".as_slice()))
}

/// What `ebb run` tells a user of whom others are on the GPU, once: on a terminal, where that can be remembered.
pub fn remark_once(place: &Place) -> Option<String> {
    if !std::io::stderr().is_terminal() || *place == Place::machine() {
        return None;
    }
    let told = state_folder()?.join("told-of-others");
    if told.exists() {
        return None;
    }
    let others = others(&client::report(place).ok()?);
    if others.is_empty() {
        return None;
    }
    fs::create_dir_all(told.parent()?).ok()?;
    fs::write(&told, "").ok()?;
    Some(format!("others use this machine's GPU: {}; {ADVICE} (this is said once)", others.join("; ")))
}

/// Of other users: daemons, and processes on the GPUs of a daemon. A few of them, in words.
fn others(report: &Report) -> Vec<String> {
    const NAMED: usize = 3;
    let me = rustix::process::geteuid().as_raw();
    let daemons = daemons(Some(report.daemon.pid)).into_iter().filter(|daemon| daemon.user != me);
    let strangers = report.gpus.iter().flat_map(|gpu| gpu.strangers.iter().flatten());
    let strangers = strangers.filter(|stranger| stranger.user != me).map(|stranger| stranger.words());
    daemons.map(|daemon| daemon.words()).chain(strangers).take(NAMED).collect()
}

/// Where what was said is remembered: `$XDG_STATE_HOME/ebb`, else `~/.local/state/ebb`.
fn state_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    base.filter(|base| base.is_absolute()).map(|base| base.join("ebb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_known_by_its_words() {
        assert_eq!(is_daemon(b"/usr/bin/ebb\0daemon\0--on-demand\0--detached\0"), Some(false));
        assert_eq!(is_daemon(b"ebb\0daemon\0--machine\0"), Some(true));
        for other in [&b"ebb\0daemon\0stop\0"[..], b"ebb\0run\0daemon\0", b"web\0daemon\0", b"", b"ebb\0"] {
            assert_eq!(is_daemon(other), None);
        }
    }

    #[test]
    fn no_card_is_made_by_looking() {
        let folder = tempfile::tempdir().unwrap();
        assert!(cards(folder.path()).is_empty());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
