//! The wheel: the same tree in an environment of Python's, and the module `ebb`.
//!
//! A wheel is a zip file with a list of sums, so it is written here rather than by a tool in Python: whoever makes packages then
//! needs none, and the bytes do not depend on which one there is. What lies under `.data/scripts` and `.data/data` is
//! put into `bin` and below the prefix by whoever installs it. Its tag says which libc the binaries were found to need.

use anyhow::Result;

use super::stage::Stage;
use super::zip::Zip;
use super::{Product, digest};

const MODULE: &str = include_str!("../../../deploy/python/ebb/__init__.py");

const DESCRIPTION: &str = include_str!("../../../README.md");

/// The name of the file, and its bytes.
pub fn make(product: &Product, stage: &Stage) -> Result<(String, Vec<u8>)> {
    let Product { version, time, needs, small } = product;
    let glibc = needs.glibc;
    let tag = format!("py3-none-manylinux_{}_{}_{}", glibc.0, glibc.1, std::env::consts::ARCH);
    let (data, about) = (format!("ebb-{version}.data"), format!("ebb-{version}.dist-info"));
    let mut files: Vec<(String, &[u8], u32)> = Vec::new();
    for entry in &stage.entries {
        let (path, mode) = match entry.path.strip_prefix("bin/") {
            Some(program) => (format!("{data}/scripts/{program}"), 0o755),
            None => (format!("{data}/data/{}", entry.path), 0o644),
        };
        files.push((path, &entry.bytes, mode));
    }
    let metadata = metadata(version);
    let wheel = format!("Wheel-Version: 1.0\nGenerator: ebb\nRoot-Is-Purelib: false\nTag: {tag}\n");
    files.push(("ebb/__init__.py".to_owned(), MODULE.as_bytes(), 0o644));
    files.push(("ebb/py.typed".to_owned(), b"", 0o644));
    files.push((format!("{about}/METADATA"), metadata.as_bytes(), 0o644));
    files.push((format!("{about}/WHEEL"), wheel.as_bytes(), 0o644));
    let record_name = format!("{about}/RECORD");
    let record = record(&files, &record_name);
    files.push((record_name, record.as_bytes(), 0o644));
    let mut zip = Zip::new(*time, *small);
    for (path, bytes, mode) in files {
        zip.put(&path, bytes, mode)?;
    }
    Ok((format!("ebb-{version}-{tag}.whl"), zip.finish()?))
}

fn metadata(version: &str) -> String {
    format!(
        "Metadata-Version: 2.1\n\
         Name: ebb\n\
         Version: {version}\n\
         Summary: Shares an NVIDIA GPU between latency-critical and best-effort processes\n\
         License: Apache-2.0 OR MIT\n\
         Requires-Python: >=3.8\n\
         Classifier: Operating System :: POSIX :: Linux\n\
         Classifier: Environment :: GPU :: NVIDIA CUDA\n\
         Description-Content-Type: text/markdown\n\n{DESCRIPTION}"
    )
}

/// All files with their sums, but for the list itself.
fn record(files: &[(String, &[u8], u32)], own: &str) -> String {
    let line = |(path, bytes, _): &(String, &[u8], u32)| {
        format!("{path},sha256={},{}\n", digest::base64(&digest::sha256(bytes)), bytes.len())
    };
    files.iter().map(line).chain([format!("{own},,\n")]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::elf::{Needs, Version};
    use super::super::stage::Entry;
    use super::*;

    #[test]
    fn the_tag_is_what_was_found_and_the_list_is_complete() {
        let needs = Needs { glibc: Version(2, 28), libgcc: false };
        let product = Product { version: "1.2.3".to_owned(), time: 1_794_795_601, needs, small: true };
        let entry = |path: &str| Entry { path: path.to_owned(), bytes: b"x".to_vec(), executable: false };
        let stage = Stage { entries: vec![entry("bin/ebb"), entry("lib/ebb/x")], needs };
        let (name, bytes) = make(&product, &stage).unwrap();
        assert_eq!(name, format!("ebb-1.2.3-py3-none-manylinux_2_28_{}.whl", std::env::consts::ARCH));
        let has = |name: &str| bytes.windows(name.len()).any(|window| window == name.as_bytes());
        assert!(has("ebb-1.2.3.data/scripts/ebb") && has("ebb-1.2.3.data/data/lib/ebb/x"));
        let files = [("a".to_owned(), &b"abc"[..], 0o644)];
        let list = record(&files, "own");
        assert_eq!(list, "a,sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0,3\nown,,\n");
    }
}
