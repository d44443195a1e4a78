//! Can the shim be preloaded into a command?

use std::ffi::OsStr;

use installation::Error;
use installation::program::{Preload, Program, inspect};

use super::check::{Check, Status};

pub fn check(command: &OsStr) -> Check {
    const NAME: &str = "command";
    match inspect(command, std::env::var_os("PATH").as_deref()) {
        Ok(program) => judge(&program),
        // The kernel may execute what we may not read.
        Err(error @ Error::Unreadable { .. }) => Check::told(NAME, Status::Warning, &error),
        Err(error) => Check::told(NAME, Status::Failed, &error),
    }
}

fn judge(program: &Program) -> Check {
    const NAME: &str = "command";
    let Program { path, binary, preload } = program;
    let name = match path == binary {
        true => path.display().to_string(),
        false => format!("{}, run by {},", path.display(), binary.display()),
    };
    match preload {
        Preload::Works => Check::ok(NAME, format!("{name} can be preloaded into")),
        Preload::No(reason) => Check::new(
            NAME,
            Status::Failed,
            format!("{name} cannot be preloaded into: {reason}"),
            reason.fix(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use installation::program::Reason;

    #[test]
    fn the_reason_and_its_fix_are_said() {
        let program = |preload| Program { path: "/a/tool".into(), binary: "/bin/x".into(), preload };
        assert_eq!(judge(&program(Preload::Works)).status, Status::Ok);
        let refused = judge(&program(Preload::No(Reason::Static)));
        assert_eq!(refused.status, Status::Failed);
        assert!(refused.found.starts_with("/a/tool, run by /bin/x,"), "{}", refused.found);
        assert_eq!(refused.fix.as_deref(), Some(Reason::Static.fix()));
    }

    #[test]
    fn a_command_that_is_not_there_fails() {
        let check = check(OsStr::new("no-such-command-here"));
        assert_eq!(check.status, Status::Failed);
        assert!(check.fix.is_some(), "{}", check.found);
    }
}
