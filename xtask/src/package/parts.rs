//! What is linked into the product: our crates and those of others, as far as one leads to the other on Linux.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId, TargetKind};

use crate::workspace;

/// A crate that is part of what is installed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    pub name: String,
    pub version: String,
    pub licence: String,
    /// Where its sources are on this machine.
    pub folder: PathBuf,
    /// Whether it is from this repository.
    pub own: bool,
    pub repository: Option<String>,
}

/// What cargo knows of everything that is built for this machine.
pub fn metadata() -> Result<Metadata> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = MetadataCommand::new();
    command.current_dir(workspace::root()).other_options(["--filter-platform".to_owned(), triple]);
    command.exec().context("cargo metadata failed")
}

pub fn version(metadata: &Metadata) -> Result<String> {
    let package = metadata.packages.iter().find(|package| package.name.as_str() == "cli");
    Ok(package.context("there is no crate `cli`")?.version.to_string())
}

/// Everything that the crates with these names are made of, in the order of names.
pub fn linked(metadata: &Metadata, roots: &[&str]) -> Result<Vec<Part>> {
    let resolve = metadata.resolve.as_ref().context("cargo does not say what depends on what")?;
    let packages: BTreeMap<&PackageId, &Package> =
        metadata.packages.iter().map(|package| (&package.id, package)).collect();
    let nodes: BTreeMap<_, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let of_ours = |package: &&Package| roots.contains(&package.name.as_str()) && package.source.is_none();
    let mut open: Vec<&PackageId> = metadata.packages.iter().filter(of_ours).map(|one| &one.id).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        // What runs in the compiler is in no binary.
        if packages.get(id).is_none_or(|package| is_macro(package)) || !seen.insert(id) {
            continue;
        }
        let Some(node) = nodes.get(id) else { continue };
        let linked = node
            .deps
            .iter()
            .filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal));
        open.extend(linked.map(|dependency| &dependency.pkg));
    }
    let mut parts: Vec<Part> =
        seen.into_iter().filter_map(|id| packages.get(id)).map(|one| part(one)).collect();
    parts.sort();
    Ok(parts)
}

fn part(package: &Package) -> Part {
    let folder = package.manifest_path.parent().map(|folder| folder.as_std_path().to_owned());
    Part {
        name: package.name.to_string(),
        version: package.version.to_string(),
        licence: package.license.clone().unwrap_or_default(),
        folder: folder.unwrap_or_default(),
        own: package.source.is_none(),
        repository: package.repository.clone(),
    }
}

fn is_macro(package: &Package) -> bool {
    package.targets.iter().any(|target| target.kind.contains(&TargetKind::ProcMacro))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_is_found_and_what_is_not_is_left_out() {
        let parts = linked(&metadata().unwrap(), &["shim"]).unwrap();
        let has = |name: &str| parts.iter().any(|part| part.name == name);
        assert!(has("shim") && has("board") && has("rustix") && has("logos"));
        assert!(!has("clap") && !has("tempfile") && !has("logos-derive") && !has("proptest"));
        assert!(parts.iter().all(|part| !part.licence.is_empty()));
        assert!(parts.is_sorted());
    }
}
