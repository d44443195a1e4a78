//! Writes the report of the made-up archive, to look at while working on the report's looks.

use std::fs;
use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let archive = results::sample::archive();
    let figures = results::Figures::of(&archive);
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".into()));
    fs::write(folder.join("sample.html"), report::html(&archive, &figures))?;
    fs::write(folder.join("sample.md"), report::markdown(&archive, &figures))?;
    let picture = report::picture(&archive, &figures);
    fs::write(folder.join("sample.svg"), picture.expect("the made-up archive has pairs"))
}
