//! Tells the program from which sources it is built, for the results of the lab: the commit, and whether anything in
//! the checkout differs from it. `EBB_COMMIT` says so where the sources are no checkout.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=EBB_COMMIT");
    // Sources that change make another program; git's own log of what was checked out, another commit.
    for path in ["..", "../../.git/logs/HEAD", "../../Cargo.lock"] {
        println!("cargo:rerun-if-changed={path}");
    }
    let given = std::env::var("EBB_COMMIT").ok().filter(|commit| !commit.is_empty());
    let found = given.clone().or_else(|| git(&["rev-parse", "HEAD"]));
    let changed = || git(&["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty());
    println!("cargo:rustc-env=EBB_COMMIT={}", found.unwrap_or_default());
    println!("cargo:rustc-env=EBB_DIRTY={}", given.is_none() && changed());
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
