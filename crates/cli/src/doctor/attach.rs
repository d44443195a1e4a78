//! Does the shim get in front of the driver?

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use installation::library::Kind;
use installation::search::DRIVER;
use installation::{Library, runtime};
use telemetry::{Note, Reading};

use super::ask::{Answer, Question};
use super::check::{Check, Status};
use super::driver;
use crate::arguments::DoctorOptions;
use crate::beside;
use crate::run::environment;
use crate::run::folder::RunFolder;

/// The shim beside this program, if it is one.
pub fn shim(checks: &mut Vec<Check>) -> Option<Library> {
    const NAME: &str = "shim";
    let again = "install ebb again, or build it with `cargo xtask shim`";
    let failed = |found: String| Check::new(NAME, Status::Failed, found, again);
    let read = beside::shim().and_then(|path| Ok(Library::read(&path)?));
    let (check, shim) = match read {
        Err(error) => (Check::told(NAME, Status::Failed, &format!("{error:#}")), None),
        Ok(library) if !library.is_shim() => {
            (failed(format!("{} is not ebb's library", library.path.display())), None)
        }
        // Under another name the loader would load the driver beside it, and programs would never meet us.
        Ok(library) if library.soname.as_deref() != Some(DRIVER) => {
            (failed(format!("{} does not call itself {DRIVER}", library.path.display())), None)
        }
        Ok(library) => (Check::ok(NAME, library.path.display().to_string()), Some(library)),
    };
    checks.push(check);
    shim
}

/// Names that no program asks a driver for: the loader's own, which every library may have, and the software GPU's, by
/// which the shim knows it.
const NO_PROGRAMS: [&str; 3] = ["_init", "_fini", "ebb_softgpu_control"];

/// Every name of the driver should be the shim's too; who uses another by name does not find it.
pub fn exports(driver: &Library, shim: &Library) -> Check {
    const NAME: &str = "exports";
    let ours: BTreeSet<&str> = shim.exports.iter().map(|export| export.name.as_str()).collect();
    let theirs = || driver.exports.iter().filter(|export| !NO_PROGRAMS.contains(&export.name.as_str()));
    let missing = |function: bool| {
        let missing = theirs().filter(|export| (export.kind == Kind::Function) == function);
        missing
            .map(|export| export.name.as_str())
            .filter(|name| !ours.contains(name))
            .collect::<BTreeSet<_>>()
    };
    let (functions, variables) = (missing(true), missing(false));
    let names = |names: BTreeSet<&str>| names.into_iter().collect::<Vec<_>>().join(", ");
    let complete = functions.is_empty();
    let mut found = match functions.len() {
        0 => format!("the shim has all {} functions of the driver", theirs().count() - variables.len()),
        lacking => format!("the shim lacks {lacking} functions of the driver: {}", names(functions)),
    };
    if !variables.is_empty() {
        let count = variables.len();
        found += &format!(
            "; {count} variables are for debuggers, who look in the driver itself: {}",
            names(variables)
        );
    }
    if complete {
        return Check::ok(NAME, found);
    }
    let fix = "nothing to do unless a program asks for one of them by name; a newer ebb may have it";
    Check::new(NAME, Status::Note, found, fix)
}

/// The folder in which processes meet.
pub fn folder() -> Check {
    match runtime::choose() {
        Ok(chosen) if chosen.passed_over.is_empty() => Check::ok("folder", chosen.path.display().to_string()),
        Ok(chosen) => {
            let odd: Vec<_> = chosen.passed_over.iter().map(ToString::to_string).collect();
            let found = format!("{}, since {}", chosen.path.display(), odd.join("; "));
            let fix = "see whose that is: on this machine somebody has taken a name that belongs to you";
            Check::new("folder", Status::Warning, found, fix)
        }
        Err(error) => Check::told("folder", Status::Failed, &error),
    }
}

/// Runs a program that opens the driver by its name, as programs do, with the shim preloaded, and looks for the
/// ledger it must have left. `alone` is whether the driver got through the same without the shim.
pub fn preload(shim: &Library, options: &DoctorOptions, driver: Option<&Library>, alone: bool) -> Check {
    const NAME: &str = "preload";
    if std::env::var_os("EBB_DISABLE").is_some_and(|value| value == "1") {
        let found = "EBB_DISABLE is 1, so ebb only passes calls on";
        return Check::new(NAME, Status::Warning, found, "unset EBB_DISABLE");
    }
    match attempt(shim, options) {
        Err(error) => Check::told(NAME, Status::Failed, &format!("{error:#}")),
        Ok((_, Some(reading))) => proved(&reading, driver),
        Ok((_, None)) if driver.is_some() && !alone => {
            let found = "not proved, since the driver does not work without the shim either";
            Check::new(NAME, Status::Warning, found, "mend the driver first, as the check `answers` says")
        }
        Ok((answer, None)) => {
            let found = format!("the shim was preloaded, but {}", unattached(&answer));
            let fix = "see whether a security module or a container rule forbids preloading, and run with EBB_LOG=1";
            Check::new(NAME, Status::Failed, found, fix)
        }
    }
}

fn attempt(shim: &Library, options: &DoctorOptions) -> anyhow::Result<(Answer, Option<Reading>)> {
    let folder = RunFolder::create()?;
    let mut set: Vec<(&'static str, OsString)> = environment::preloading(&[&shim.path])?;
    set.push(("EBB_RUN", folder.path().into()));
    set.extend(driver::named(options)?.map(|path| ("EBB_DRIVER", path.into())));
    let question = Question { driver: OsStr::new(DRIVER), set, unset: &["EBB_SOCKET"] };
    let (pid, answer) = question.ask()?;
    let (readings, _) = folder.readings();
    Ok((answer, readings.into_iter().find(|reading| reading.pid == pid)))
}

fn unattached(answer: &Answer) -> String {
    match answer {
        Answer::Probe(_) => "a program reached the driver without it".to_owned(),
        Answer::Refused(reason) => format!("a program found no driver: {reason}"),
        Answer::Crashed { signal } => format!("a program crashed with signal {signal}"),
        Answer::Silent => "a program did not end within a minute".to_owned(),
    }
}

fn proved(reading: &Reading, driver: Option<&Library>) -> Check {
    const NAME: &str = "preload";
    if reading.notes.contains(&Note::HooksOff) {
        return Check::new(
            NAME,
            Status::Warning,
            Note::HooksOff.sentence(),
            "report this, with what EBB_LOG=1 prints",
        );
    }
    let Some(driver) = driver else {
        return Check::ok(NAME, "the shim is loaded, and says that there is no driver behind it");
    };
    let behind = std::path::Path::new(&reading.driver);
    let same = behind == driver.path || behind.canonicalize().is_ok_and(|path| path == driver.real_path);
    if !same {
        let found = format!("the shim is loaded, but took {} for the driver", behind.display());
        let fix = format!("name the right one with EBB_DRIVER={}", driver.path.display());
        return Check::new(NAME, Status::Warning, found, fix);
    }
    Check::ok(NAME, format!("the shim is loaded, in front of {}", behind.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use installation::library::Export;

    fn library(names: &[(&str, Kind)]) -> Library {
        let export = |(name, kind): &(&str, Kind)| Export { name: (*name).to_owned(), kind: *kind };
        Library {
            path: "/l".into(),
            real_path: "/l".into(),
            soname: None,
            exports: names.iter().map(export).collect(),
        }
    }

    #[test]
    fn names_the_shim_lacks_are_listed_by_kind() {
        let driver = library(&[
            ("cuInit", Kind::Function),
            ("cuNew", Kind::Function),
            ("CUDBG_FLAG", Kind::Object),
            ("_init", Kind::Function),
        ]);
        let check = exports(&driver, &library(&[("cuInit", Kind::Function)]));
        assert_eq!(check.status, Status::Note);
        let (functions, variables) = check.found.split_once("; ").unwrap();
        assert_eq!(functions, "the shim lacks 1 functions of the driver: cuNew");
        assert!(variables.starts_with("1 variables") && variables.ends_with(": CUDBG_FLAG"), "{variables}");
    }

    #[test]
    fn a_shim_with_all_names_is_well() {
        let driver = library(&[("cuInit", Kind::Function), ("_fini", Kind::Function)]);
        let shim = library(&[("cuInit", Kind::Function), ("cuMore", Kind::Function)]);
        let check = exports(&driver, &shim);
        assert_eq!(
            (check.status, check.found.as_str()),
            (Status::Ok, "the shim has all 1 functions of the driver")
        );
        let driver = library(&[("cuInit", Kind::Function), ("CUDBG_FLAG", Kind::Object)]);
        let check = exports(&driver, &shim);
        assert!(check.status == Status::Ok && check.found.ends_with(": CUDBG_FLAG"), "{}", check.found);
    }
}
