//! The warden: ends what a service started, when its owner ends or before another begins.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{LOGS, PIPES};

/// `$0` is the control program, `$1` the folder. `$2` is whose warden this is: one whose service was taken over by another owner
/// leaves it alone; one that is nobody's is to clear. `$3` says whether to wait until the last client has gone.
///
/// Numbers of processes are believed only while their names and, where they can be read, their environments fit: a number may
/// have become somebody else's, and a service of somebody else has the same name.
const WARDEN: &str = r#"
cat > /dev/null
folder="$1" owner="$2" end="$3"
say() { echo "$*" | timeout 5 "$0" 2> /dev/null; }
clients() { for server in $(say get_server_list); do say get_client_list "$server"; done | grep -q '^ *[1-9]'; }
owned() { [ -z "$owner" ] || [ "$(cat "$folder/owner" 2> /dev/null)" = "$owner" ]; }
if [ "$end" = later ]; then while owned && clients; do sleep 1; done; fi
owned || exit 0
pids="$(cat "$folder/pipe/nvidia-cuda-mps-control.pid" 2> /dev/null) $(say get_server_list)"
ours() {
  grep -qs '^nvidia-cuda-mps' "/proc/$1/comm" || return 1
  [ -r "/proc/$1/environ" ] || return 0
  tr '\0' '\n' < "/proc/$1/environ" | grep -qxF "CUDA_MPS_PIPE_DIRECTORY=$CUDA_MPS_PIPE_DIRECTORY"
}
there() { for pid in $pids; do ours "$pid" && return 0; done; return 1; }
kill_all() { for pid in $pids; do ours "$pid" && kill "$1" "$pid"; done; }
await() { n=0; while there && [ $n -lt 60 ]; do sleep 0.1; n=$((n + 1)); done; }
echo quit | timeout 10 "$0" > /dev/null 2>&1
await; there && { kill_all -TERM; await; }; there && { kill_all -KILL; await; }
rm -rf "$folder"
"#;

/// When a service ends whose owner has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Now,
    /// When it has no more clients, and unless somebody has taken it over.
    WithLastClient,
}

/// In which file of its folder a service says whose it is.
pub const OWNER: &str = "owner";

/// What the control program, the server and their clients are told by.
pub fn variables(folder: &Path) -> [(&'static str, OsString); 2] {
    [(PIPES, folder.join("pipe").into()), (LOGS, folder.join("log").into())]
}

/// Stands by until its input ends.
pub fn post(control: &Path, folder: &Path, owner: &str, end: End) -> io::Result<Child> {
    command(control, folder, owner, end).stdin(Stdio::piped()).spawn()
}

/// Ends what was left in a folder, and removes it.
pub fn clear(control: &Path, folder: &Path) -> io::Result<()> {
    command(control, folder, "", End::Now).stdin(Stdio::null()).status().map(drop)
}

/// In a group of its own: what a terminal sends to ours must not end it before its work is done.
fn command(control: &Path, folder: &Path, owner: &str, end: End) -> Command {
    let when = if end == End::Now { "now" } else { "later" };
    let mut command = Command::new("/bin/sh");
    command
        .arg("-c")
        .arg(WARDEN)
        .arg(control)
        .arg(folder)
        .args([owner, when])
        .envs(variables(folder))
        .process_group(0);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}
