//! Lists the recorded profiles and the Python workers, so that a file put into their folders is built in and nobody
//! keeps a table.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let stem = |path: &Path| path.file_stem().expect("it has an extension").to_string_lossy().into_owned();
    table("profiles", "json", "profiles.rs", "BUILT_IN", |path| Some(stem(path)));
    let whole = |path: &Path| path.file_name().expect("it has an extension").to_string_lossy().into_owned();
    table("workers", "py", "workers.rs", "WORKERS", |path| {
        Some(whole(path)).filter(|name| !name.starts_with("test_"))
    });
}

/// Writes a table of the names and texts of a folder's files, in the order of names.
fn table(folder: &str, ending: &str, out: &str, name: &str, named: impl Fn(&Path) -> Option<String>) {
    println!("cargo:rerun-if-changed={folder}");
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")).join(folder);
    let listed = fs::read_dir(&folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("a folder can be listed").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == ending));
    files.sort_by_key(|path| path.file_stem().map(ToOwned::to_owned));
    let mut table =
        format!("/// Names and texts, in the order of names.\nstatic {name}: &[(&str, &str)] = &[\n");
    for path in files {
        if let Some(name) = named(&path) {
            writeln!(table, "    ({name:?}, include_str!({path:?})),").expect("a string can be written to");
        }
    }
    table.push_str("];\n");
    fs::write(Path::new(&variable("OUT_DIR")).join(out), table).expect("cargo made the folder");
}

fn variable(name: &str) -> String {
    env::var(name).expect("cargo sets it")
}
