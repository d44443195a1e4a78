//! Several users on one machine, and cards that all of them can use.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::Command;

use super::private_folder;
use super::runtime::Runtime;

/// A user that nobody is.
pub const SOMEBODY: u32 = 61_001;
pub const CARDS: &str = "EBB_SOFTGPU_DIR";

/// The same command, of another user.
pub fn as_user(user: Option<u32>, command: &Command) -> Command {
    let mut other = match user {
        None => Command::new(command.get_program()),
        Some(user) => {
            let mut other = Command::new("setpriv");
            let (uid, gid) = (format!("--reuid={user}"), format!("--regid={user}"));
            other.args([&uid, &gid, "--clear-groups", "--"]).arg(command.get_program());
            other
        }
    };
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => other.env(name, value),
            None => other.env_remove(name),
        };
    }
    other
}

/// A runtime folder of another user, where there can be one.
pub fn of_somebody() -> Option<Runtime> {
    let runtime = Runtime::new();
    let root = rustix::process::geteuid().is_root();
    let able = root && Command::new("setpriv").arg("--version").output().is_ok();
    if !able {
        eprintln!("skipped: only root can be several users, with setpriv");
        return None;
    }
    chown(runtime.path(), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    Some(runtime)
}

/// A folder for cards that all users share.
pub fn shared_folder() -> tempfile::TempDir {
    let folder = private_folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    folder
}
