//! Dependencies point downwards, and outside ones have reasons.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, Package};

/// The rooms of the house by storey. A crate may use what lies below its own storey, nothing beside it.
const STOREYS: [(&str, &[&str]); 8] = [
    ("words", &["model", "cuda-abi"]),
    (
        "matter",
        &["ptx", "cubin", "board", "telemetry", "installation", "policy", "forecast", "results", "scenario"],
    ),
    ("engines", &["guard", "switch", "mps", "softgpu", "profile", "sim", "export", "report", "trace"]),
    ("products", &["shim", "nvml", "softcuda", "nullcuda", "daemon", "web", "k8s", "lab"]),
    ("front", &["dashboard"]),
    ("command", &["cli"]),
    ("proof", &["conformance"]),
    ("chores", &["xtask"]),
];

/// All that may be linked into the libraries which live in other people's processes, through whichever of our crates. A
/// name is added here by decision, not by the way.
const IN_THE_SHIM: [&str; 8] =
    ["libc", "logos", "lz4_flex", "object", "rustix", "ruzstd", "thiserror", "xxhash-rust"];

/// Where the reasons are written.
const REASONS: &str = "docs/dependencies.md";

pub fn check(metadata: &Metadata) -> Result<()> {
    let members = metadata.workspace_packages();
    let mut problems = Vec::new();
    for package in &members {
        for dependency in inside(package) {
            problems.extend(judge(&package.name, dependency).err());
        }
        problems.extend(storey(&package.name).err());
    }
    give(problems)
}

/// A dependency on a crate of the workspace, of any kind: a test that looks upwards ties the same knot.
fn inside(package: &Package) -> impl Iterator<Item = &str> {
    package.dependencies.iter().filter(|dependency| dependency.path.is_some()).map(|d| d.name.as_str())
}

fn judge(from: &str, to: &str) -> Result<(), String> {
    let (Ok(high), Ok(low)) = (storey(from), storey(to)) else { return Ok(()) };
    if low < high {
        return Ok(());
    }
    let way = if low == high { "sideways" } else { "upwards" };
    Err(format!("{from} ({}) uses {to} ({}): {way}", STOREYS[high].0, STOREYS[low].0))
}

fn storey(name: &str) -> Result<usize, String> {
    let found = STOREYS.iter().position(|(_, crates)| crates.contains(&name));
    found.ok_or_else(|| format!("{name} has no storey: add it to the table in xtask/src/check/arrows.rs"))
}

/// Every dependency from outside must have a row in the table of reasons.
pub fn check_reasons(metadata: &Metadata, root: &Path) -> Result<()> {
    let text = fs::read_to_string(root.join(REASONS)).with_context(|| format!("cannot read {REASONS}"))?;
    let given = reasons(&text);
    let members = metadata.workspace_packages();
    let used = members.iter().flat_map(|package| {
        package
            .dependencies
            .iter()
            .filter(|d| d.path.is_none())
            .map(|d| (d.name.as_str(), package.name.as_str()))
    });
    let used: BTreeSet<_> = used.collect();
    let missing = used.iter().filter(|(name, _)| !given.contains(name));
    give(missing.map(|(name, user)| format!("{name}, used by {user}, has no row in {REASONS}")).collect())
}

/// The shim is a guest, and so is what stands in front of NVML: their list of dependencies is closed.
pub fn check_the_shim(metadata: &Metadata) -> Result<()> {
    let members = metadata.workspace_packages();
    let find = |name: &str| members.iter().find(|package| package.name == name);
    let mut problems = Vec::new();
    let (mut waiting, mut seen) = (vec!["shim", "nvml"], BTreeSet::new());
    while let Some(name) = waiting.pop() {
        let Some(package) = find(name).filter(|_| seen.insert(name)) else { continue };
        for used in package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal) {
            if used.path.is_some() {
                waiting.push(&used.name);
            } else if !IN_THE_SHIM.contains(&used.name.as_str()) {
                problems.push(format!(
                    "the shim would bring {} into other people's processes, by {name}",
                    used.name
                ));
            }
        }
    }
    give(problems)
}

/// The names in backticks in the first cell of each row.
fn reasons(text: &str) -> BTreeSet<&str> {
    let rows = text.lines().filter_map(|line| line.trim().strip_prefix('|'));
    rows.filter_map(|row| row.split('|').next()).flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect()
}

fn give(problems: Vec<String>) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{}", problems.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A workspace of packages which depend on each other as said.
    fn workspace(packages: &[(&str, &[&str])]) -> Metadata {
        let package = |(name, uses): &(&str, &[&str])| {
            let dependency = |to: &&str| {
                format!(
                    r#"{{"name":"{to}","source":null,"req":"*","kind":null,"optional":false,
                    "uses_default_features":true,"features":[],"target":null,"registry":null,"path":"/{to}"}}"#
                )
            };
            let dependencies = uses.iter().map(dependency).collect::<Vec<_>>().join(",");
            format!(
                r#"{{"name":"{name}","version":"0.1.0","id":"{name}","source":null,"targets":[],"features":{{}},
                "manifest_path":"/{name}/Cargo.toml","edition":"2024","dependencies":[{dependencies}]}}"#
            )
        };
        let ids = packages.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(",");
        let packages = packages.iter().map(package).collect::<Vec<_>>().join(",");
        let text = format!(
            r#"{{"packages":[{packages}],"workspace_members":[{ids}],"workspace_root":"/","version":1,
            "target_directory":"/target","resolve":null}}"#
        );
        cargo_metadata::MetadataCommand::parse(text).unwrap()
    }

    fn complaint(packages: &[(&str, &[&str])]) -> String {
        check(&workspace(packages)).unwrap_err().to_string()
    }

    #[test]
    fn arrows_may_point_down_any_number_of_storeys() {
        let packages: &[(&str, &[&str])] = &[
            ("model", &[]),
            ("ptx", &[]),
            ("softgpu", &["ptx", "model"]),
            ("softcuda", &["softgpu", "model"]),
        ];
        check(&workspace(packages)).unwrap();
    }

    #[test]
    fn sideways_and_upwards_are_refused() {
        let sideways = complaint(&[("ptx", &[]), ("cubin", &["ptx"])]);
        assert_eq!(sideways, "cubin (matter) uses ptx (matter): sideways");
        let upwards = complaint(&[("ptx", &["softgpu"]), ("softgpu", &[])]);
        assert_eq!(upwards, "ptx (matter) uses softgpu (engines): upwards");
    }

    #[test]
    fn an_unknown_crate_is_told_where_to_go() {
        assert!(complaint(&[("cellar", &[])]).contains("add it to the table"));
    }

    #[test]
    fn nothing_new_comes_into_the_shim_by_a_back_door() {
        let mut metadata = workspace(&[("shim", &["telemetry"]), ("telemetry", &["serde"])]);
        check_the_shim(&metadata).unwrap();
        let telemetry = metadata.packages.iter_mut().find(|package| package.name == "telemetry").unwrap();
        telemetry.dependencies[0].path = None;
        let complaint = check_the_shim(&metadata).unwrap_err().to_string();
        assert_eq!(complaint, "the shim would bring serde into other people's processes, by telemetry");
    }

    #[test]
    fn reasons_are_the_first_cells_of_rows() {
        let given =
            reasons("| name | why |\n|---|---|\n| `clap`, `clap_complete` 4 | not `argh` |\nuse `syn`\n");
        assert_eq!(given, BTreeSet::from(["clap", "clap_complete"]));
    }
}
