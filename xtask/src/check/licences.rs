//! Everything we build on may be used under a licence that asks for no more than a notice.

use anyhow::{Result, bail};
use cargo_metadata::Metadata;

use super::spdx;

/// What we accept. `deny.toml` says the same to cargo-deny.
const ACCEPTED: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "Unlicense",
];

/// Looks at every crate in the lock file, whichever platform it is for.
pub fn check(metadata: &Metadata) -> Result<()> {
    let problems: Vec<String> = metadata
        .packages
        .iter()
        .filter_map(|package| {
            let problem = judge(package.license.as_deref()).err()?;
            Some(format!("{} {}: {problem}", package.name, package.version))
        })
        .collect();
    if !problems.is_empty() {
        bail!("{}", problems.join("; "));
    }
    Ok(())
}

fn judge(expression: Option<&str>) -> Result<()> {
    let Some(expression) = expression else { bail!("names no licence") };
    if !spdx::satisfied(expression, &|name| ACCEPTED.contains(&name))? {
        bail!("`{expression}` is not accepted");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissive_licences_pass_and_others_do_not() {
        assert!(judge(Some("MIT OR Apache-2.0 OR LGPL-2.1-or-later")).is_ok());
        assert_eq!(judge(Some("MPL-2.0")).unwrap_err().to_string(), "`MPL-2.0` is not accepted");
        assert_eq!(judge(None).unwrap_err().to_string(), "names no licence");
    }

    #[test]
    fn cargo_deny_is_told_the_same() {
        let text = include_str!("../../../deny.toml");
        let (_, list) = text.split_once("allow = [").unwrap();
        let (list, _) = list.split_once(']').unwrap();
        let told: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(told, ACCEPTED);
    }
}
