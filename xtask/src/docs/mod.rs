//! The documentation: checked, and made into a site.
//!
//! The pages are the Markdown files of the repository, readable as they are. What is made of them is a folder of HTML files
//! that need no script and no network, for whoever wants to put them on a server or into a package. What is checked is what
//! goes wrong by itself while a product changes: links whose ends have moved, pages that nobody finds, and examples with
//! commands or options that there are no more, and claims about tests and messages that are gone.
//!
//! * `page`: what a Markdown file consists of, as far as the others ask.
//! * `library`: all pages, and what a link of one of them means.
//! * `contents`: the table of contents, from which the navigation and `llms.txt` are made.
//! * `links`, `commands`, `evidence`: the checks.
//! * `site`: the HTML.

mod commands;
mod contents;
mod evidence;
mod library;
mod links;
mod page;
mod site;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::{compare, workspace};
use contents::Contents;
use library::Library;

/// The table of contents. What it leads to is the documentation.
const CONTENTS: &str = "docs/README.md";
/// The reference of all commands, which the command line writes of itself.
const REFERENCE: &str = "docs/cli.md";
/// The table of contents for programs that read.
const FOR_PROGRAMS: &str = "docs/llms.txt";

/// `cargo xtask docs`: checks everything, and writes the site.
pub fn run(check_only: bool, out: Option<&Path>) -> Result<()> {
    let library = Library::read(workspace::root())?;
    judge(&library)?;
    if check_only {
        return Ok(());
    }
    let folder = match out {
        Some(folder) => folder.to_owned(),
        None => workspace::target_directory()?.join("docs"),
    };
    let pages = site::write(&library, &folder)?;
    println!("{pages} pages: {}", folder.join("index.html").display());
    Ok(())
}

/// The same without a word, for `cargo xtask check`.
pub fn check() -> Result<()> {
    judge(&Library::read(workspace::root())?)
}

/// Every mistake there is, so that one does not hide another.
fn judge(library: &Library) -> Result<()> {
    let contents = Contents::of(library.page(Path::new(CONTENTS)).context("there is no table of contents")?);
    let reference = library.page(Path::new(REFERENCE)).context("there is no reference of commands")?;
    let known = commands::Known::of(&reference.text);
    let mut problems = links::broken(library);
    problems.extend(links::unreachable(library));
    problems.extend(commands::unknown(library, &known));
    problems.extend(evidence::missing(library)?);
    let committed = fs::read_to_string(library.root().join(FOR_PROGRAMS)).unwrap_or_default();
    problems.extend(
        compare::summary(FOR_PROGRAMS, &committed, &contents.for_programs())
            .map(|difference| format!("run `cargo xtask gen-docs`:\n{difference}")),
    );
    ensure!(problems.is_empty(), "{}", problems.join("\n         "));
    Ok(())
}

/// `cargo xtask gen-docs`: writes what is generated, the reference of commands and `llms.txt`.
pub fn generate() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut ebb = Command::new(cargo);
    ebb.current_dir(workspace::root()).args([
        "run",
        "--quiet",
        "--package",
        "cli",
        "--",
        "man",
        "--markdown",
    ]);
    let output = ebb.stderr(std::process::Stdio::inherit()).output().context("cannot run cargo")?;
    if !output.status.success() {
        bail!("`ebb man --markdown` failed");
    }
    write(REFERENCE, &output.stdout)?;
    let library = Library::read(workspace::root())?;
    let contents = Contents::of(library.page(Path::new(CONTENTS)).context("there is no table of contents")?);
    write(FOR_PROGRAMS, contents.for_programs().as_bytes())
}

fn write(name: &str, bytes: &[u8]) -> Result<()> {
    let path: PathBuf = workspace::root().join(name);
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
