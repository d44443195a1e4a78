//! What the licences of others ask for: that their texts come along. Each text stands once, with the names of those it is from.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::parts::Part;

/// How files with a licence, or with what it asks to be told, begin.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

pub fn text(parts: &[Part]) -> Result<String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut page = String::from("What ebb is made of, and under which licence. The texts follow.\n\n");
    for part in parts.iter().filter(|part| !part.own) {
        page.push_str(&format!("{} {}: {}\n", part.name, part.version, part.licence));
        for text in of(&part.folder)? {
            texts.entry(text).or_default().push(part.name.clone());
        }
    }
    for (text, names) in texts {
        page.push_str(&format!("\n{}\n{}\n\n{}\n", "-".repeat(80), names.join(", "), text));
    }
    Ok(page)
}

fn of(folder: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for file in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let file = file?;
        let name = file.file_name().to_string_lossy().to_uppercase();
        if NAMES.iter().any(|begin| name.starts_with(begin)) && file.file_type()?.is_file() {
            let text = fs::read(file.path())?;
            found.push(String::from_utf8_lossy(&text).replace('\r', "").trim().to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_once_with_all_who_have_it() {
        let folder = tempfile::tempdir().unwrap();
        let part = |name: &str| {
            let folder = folder.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("LICENSE-MIT"), "Permission is granted\r\n").unwrap();
            fs::write(folder.join("README.md"), "not this").unwrap();
            Part {
                name: name.to_owned(),
                version: "1.0.0".to_owned(),
                licence: "MIT".to_owned(),
                folder,
                own: false,
                repository: None,
            }
        };
        let page = text(&[part("a"), part("b")]).unwrap();
        assert!(
            page.contains("a 1.0.0: MIT\nb 1.0.0: MIT\n") && page.contains("a, b\n\nPermission is granted")
        );
        assert_eq!((page.matches("Permission").count(), page.contains("not this")), (1, false));
    }
}
