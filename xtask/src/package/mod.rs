//! `cargo xtask package`: the product as others install it.
//!
//! Everything is built once, laid out once as a tree below a prefix ([`stage`]), and that tree becomes a Debian package and a
//! Python wheel, which therefore cannot differ in what they hold. Both are the same byte for byte when they are made again of
//! the same commit by the same tools: times are the commit's, owners are root, and names are in order.
//!
//! * `build`: cargo, for this machine's libc or an older one
//! * `stage`: what is installed, and where
//! * `elf`: what a binary asks of the machine it will run on, read from the binary
//! * `deb`, `wheel`: the packages; `zip`: the wheel's container
//! * `parts`: what is linked in; `sbom`, `notices`: said for programs and for people
//! * `digest`: sums

mod build;
mod deb;
mod digest;
mod elf;
mod notices;
mod parts;
mod sbom;
mod stage;
mod wheel;
mod zip;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::workspace;

/// 1980, before which no time can be written into a wheel.
const EARLIEST: u64 = 315_532_800;

#[derive(Debug, Args)]
pub struct Options {
    /// `release`, or `dev` to try the packages with what tests have built
    #[arg(long, default_value = "release", value_parser = ["dev", "release"])]
    profile: String,
    /// Make the Debian package [default: both]
    #[arg(long)]
    deb: bool,
    /// Make the wheel [default: both]
    #[arg(long)]
    wheel: bool,
    /// Where the packages go [default: `dist` in cargo's target folder]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// What every package says of itself.
pub struct Product {
    pub version: String,
    /// When everything in it was made, in seconds since 1970.
    pub time: u64,
    /// What all its binaries together want of a machine.
    pub needs: elf::Needs,
    /// Whether it is for others to fetch, and worth the time to make it small.
    pub small: bool,
}

pub fn run(options: &Options) -> Result<()> {
    let built = build::run(&options.profile)?;
    let out = match &options.out {
        Some(out) => out.clone(),
        None => workspace::target_directory()?.join("dist"),
    };
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let metadata = parts::metadata()?;
    let parts = parts::linked(&metadata, &build::PACKAGES)?;
    let time = time()?;
    let version = parts::version(&metadata)?;
    let bill = sbom::text(&version, time, &parts);
    let stage = stage::Stage::lay(&built, &bill, &notices::text(&parts)?)?;
    let product = Product { version, time, needs: stage.needs, small: options.profile == "release" };
    let both = !options.deb && !options.wheel;
    let mut made = vec![write(&out, &format!("ebb-{}.cdx.json", product.version), bill.as_bytes())?];
    if options.deb || both {
        made.push(deb::make(&product, &stage, &out)?);
    }
    if options.wheel || both {
        let (name, bytes) = wheel::make(&product, &stage)?;
        made.push(write(&out, &name, &bytes)?);
    }
    made.push(write(&out, "SHA256SUMS", sums(&made)?.as_bytes())?);
    made.iter().for_each(|path| println!("{}", path.display()));
    Ok(())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// As `sha256sum --check` reads them.
fn sums(files: &[PathBuf]) -> Result<String> {
    let mut lines = Vec::new();
    for path in files {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        lines.push(format!("{}  {name}\n", digest::hexadecimal(&digest::sha256(&bytes))));
    }
    lines.sort_by(|left, right| left[64..].cmp(&right[64..]));
    Ok(lines.concat())
}

/// The commit's time, unless somebody has said another; so that packages do not depend on when they are made.
fn time() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        let time = text.parse::<u64>();
        return Ok(time.with_context(|| format!("SOURCE_DATE_EPOCH is no time: {text}"))?.max(EARLIEST));
    }
    let mut git = Command::new("git");
    let output = git.current_dir(workspace::root()).args(["log", "-1", "--format=%ct"]).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.and_then(|text| String::from_utf8(text).ok());
    match text.and_then(|text| text.trim().parse::<u64>().ok()) {
        Some(time) => Ok(time.max(EARLIEST)),
        None => bail!("git does not say when this commit was made; say a time with SOURCE_DATE_EPOCH"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let files = [write(folder.path(), "b", b"").unwrap(), write(folder.path(), "a", b"abc").unwrap()];
        let lines = sums(&files).unwrap();
        assert_eq!(
            lines,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
        );
    }
}
