//! Lists the recorded profiles, so that a file put into their folder is built in and nobody keeps a table.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=profiles");
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")).join("profiles");
    let listed = fs::read_dir(&folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("a folder can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    let mut table =
        String::from("/// Names and texts, in the order of names.\nstatic BUILT_IN: &[(&str, &str)] = &[\n");
    for path in files {
        let name = path.file_stem().expect("it has an extension").to_string_lossy();
        writeln!(table, "    ({name:?}, include_str!({path:?})),").expect("a string can be written to");
    }
    table.push_str("];\n");
    fs::write(Path::new(&variable("OUT_DIR")).join("profiles.rs"), table).expect("cargo made the folder");
}

fn variable(name: &str) -> String {
    env::var(name).expect("cargo sets it")
}
