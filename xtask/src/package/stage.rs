//! What is installed, and where: a tree below a prefix, which is `/usr` for the Debian package and an environment for the wheel.
//!
//! `ebb` finds its libraries in `../lib/ebb` from where it lies itself, so the tree works wherever it is put.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::build::Built;
use super::elf::{self, Needs};
use crate::workspace;

/// A file, by its path below the prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub path: String,
    pub bytes: Vec<u8>,
    pub executable: bool,
}

pub struct Stage {
    /// In the order of their paths.
    pub entries: Vec<Entry>,
    pub needs: Needs,
}

/// Our libraries, under the names that programs ask for. That of NVML is asked for without its version too, and a wheel
/// can hold no link, so it is there twice; it is small.
const LIBRARIES: [(&str, &str); 4] = [
    ("shim", "libcuda.so.1"),
    ("nvml", "libnvidia-ml.so.1"),
    ("nvml", "libnvidia-ml.so"),
    ("softcuda", "libcuda.so.1"),
];

/// Where what is only read lies.
const DOCUMENTS: &str = "share/doc/ebb";

/// As the repository has them, and as they are installed for people to read.
const READ: [(&str, &str); 8] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("deploy/ebb.toml", "examples/ebb.toml"),
    ("deploy/systemd/shared.conf", "examples/shared.conf"),
    ("deploy/systemd/ebb.service", "examples/ebb.service"),
    ("deploy/sysusers/ebb.conf", "examples/sysusers.conf"),
];

impl Stage {
    pub fn lay(built: &Built, bill: &str, notices: &str) -> Result<Stage> {
        let mut stage = Stage { entries: Vec::new(), needs: Needs::NOTHING };
        stage.binary(built, "ebb", "bin/ebb", true)?;
        for (library, name) in LIBRARIES {
            stage.binary(built, &format!("lib{library}.so"), &format!("lib/ebb/{library}/{name}"), false)?;
        }
        stage.said_by(&built.path("ebb"))?;
        for (from, to) in READ {
            stage.file(&workspace::root().join(from), &format!("{DOCUMENTS}/{to}"))?;
        }
        for folder in ["docs", "docs/guides"] {
            stage.documents(folder)?;
        }
        stage.put(format!("{DOCUMENTS}/sbom.cdx.json"), bill.into(), false);
        stage.put(format!("{DOCUMENTS}/THIRD-PARTY"), notices.into(), false);
        stage.entries.sort_by(|left, right| left.path.cmp(&right.path));
        Ok(stage)
    }

    fn binary(&mut self, built: &Built, name: &str, path: &str, executable: bool) -> Result<()> {
        let bytes = built.read(name)?;
        let needs = elf::needs(&bytes).with_context(|| format!("{name} cannot be packaged"))?;
        self.needs = self.needs.and(needs);
        self.put(path.to_owned(), bytes, executable);
        Ok(())
    }

    /// Manual pages and completions, which the program itself knows best.
    fn said_by(&mut self, ebb: &Path) -> Result<()> {
        let folder = tempfile::tempdir()?;
        say(Command::new(ebb).args(["man", "--folder"]).arg(folder.path()))?;
        for page in fs::read_dir(folder.path())? {
            let page = page?.path();
            let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.file(&page, &format!("share/man/man1/{name}"))?;
        }
        for (shell, path) in [
            ("bash", "share/bash-completion/completions/ebb"),
            ("zsh", "share/zsh/site-functions/_ebb"),
            ("fish", "share/fish/vendor_completions.d/ebb.fish"),
        ] {
            let script = say(Command::new(ebb).args(["completions", shell]))?;
            self.put(path.to_owned(), script, false);
        }
        Ok(())
    }

    /// The pages themselves; figures and what was measured stay in the repository.
    fn documents(&mut self, folder: &str) -> Result<()> {
        let from = workspace::root().join(folder);
        for page in fs::read_dir(&from).with_context(|| format!("cannot read {}", from.display()))? {
            let page = page?.path();
            if page.extension().is_some_and(|extension| extension == "md") {
                let name = page.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.file(&page, &format!("{DOCUMENTS}/{folder}/{name}"))?;
            }
        }
        Ok(())
    }

    fn file(&mut self, from: &Path, path: &str) -> Result<()> {
        let bytes = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.put(path.to_owned(), bytes, false);
        Ok(())
    }

    fn put(&mut self, path: String, bytes: Vec<u8>, executable: bool) {
        self.entries.push(Entry { path, bytes, executable });
    }
}

fn say(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}
