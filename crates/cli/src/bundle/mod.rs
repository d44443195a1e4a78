//! `ebb support-bundle`: what somebody who is to help needs to know, in one file.
//!
//! Whoever sends it should not have to read it first to be safe, so what tells of people and of their work is left out unless it
//! is asked for: names of users and of tenants, command lines, values of variables. Each gets another name, the same in all
//! files, so that they can still be told apart. Names of kernels are in none of them. What stands in files that the
//! configuration names is never read.
//!
//! * `contents`: the files
//! * `redact`: the other names
//! * `tar`: how they are put together

mod contents;
mod redact;
mod tar;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::SystemTime;

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::arguments::BundleOptions;
use redact::Redactor;

pub fn run(options: &BundleOptions) -> Result<()> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let path = options.out.clone().unwrap_or_else(|| PathBuf::from(format!("ebb-support-{now}.tar.gz")));
    let files = contents::collect(Redactor::new(options.full));
    let mut archive = tar::Archive::new(now);
    for (name, text) in &files {
        archive.put(&format!("ebb-support/{name}"), text.as_bytes());
    }
    let refused = || format!("cannot write {}", path.display());
    // It is for whoever asked for it, and for whom that one gives it to.
    let mut open = OpenOptions::new();
    let file = open.write(true).create(true).truncate(true).mode(0o600).open(&path).with_context(refused)?;
    let mut packer = GzEncoder::new(file, Compression::best());
    packer.write_all(&archive.finish()).with_context(refused)?;
    packer.finish().with_context(refused)?;
    println!("{}", path.display());
    for (name, text) in &files {
        let first = text.lines().next().unwrap_or_default();
        println!("  {name:20} {:>7} bytes{}", text.len(), absent(first));
    }
    println!("{}", contents::promise(options.full));
    Ok(())
}

/// What is not there is said in the file's one line, and here.
fn absent(line: &str) -> String {
    line.strip_prefix(contents::ABSENT).map(|why| format!("  ({})", why.trim())).unwrap_or_default()
}
