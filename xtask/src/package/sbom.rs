//! The bill of materials: which crates are in the product, in which version, under which licence. CycloneDX, because the scanners
//! that people run over what they install read it.

use serde_json::{Value, json};

use super::parts::Part;

pub fn text(version: &str, time: u64, parts: &[Part]) -> String {
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(time),
            "component": {
                "type": "application",
                "bom-ref": "ebb",
                "name": "ebb",
                "version": version,
                "licenses": [{ "expression": "Apache-2.0 OR MIT" }],
            },
        },
        "components": parts.iter().map(component).collect::<Vec<_>>(),
        "dependencies": [{
            "ref": "ebb",
            "dependsOn": parts.iter().map(reference).collect::<Vec<_>>(),
        }],
    });
    format!("{bill:#}\n")
}

fn component(part: &Part) -> Value {
    let Part { name, version, .. } = part;
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(part),
        "name": name,
        "version": version,
        "scope": "required",
    });
    if !part.licence.is_empty() {
        // Before there were expressions, a stroke meant a choice.
        component["licenses"] = json!([{ "expression": part.licence.replace('/', " OR ") }]);
    }
    if !part.own {
        component["purl"] = json!(reference(part));
    }
    if let Some(repository) = part.repository.as_deref().filter(|_| !part.own) {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

fn reference(part: &Part) -> String {
    let kind = if part.own { "ebb" } else { "pkg:cargo" };
    format!("{kind}/{}@{}", part.name, part.version)
}

/// As 2026-11-16T02:20:01Z.
fn timestamp(time: u64) -> String {
    let (day, second) = (time / 86_400, time % 86_400);
    let (year, month, day) = super::zip::date(day);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, own: bool, licence: &str) -> Part {
        Part {
            name: name.to_owned(),
            version: "1.2.3".to_owned(),
            licence: licence.to_owned(),
            folder: "".into(),
            own,
            repository: None,
        }
    }

    #[test]
    fn a_scanner_finds_what_it_looks_for() {
        let parts = [part("model", true, "Apache-2.0 OR MIT"), part("serde", false, "MIT/Apache-2.0")];
        let bill: Value = serde_json::from_str(&text("0.1.0", 1_794_795_601, &parts)).unwrap();
        assert_eq!(
            (&bill["bomFormat"], &bill["metadata"]["component"]["version"]),
            (&json!("CycloneDX"), &json!("0.1.0"))
        );
        assert_eq!(bill["metadata"]["timestamp"], "2026-11-16T02:20:01Z");
        assert_eq!(bill["components"][1]["purl"], "pkg:cargo/serde@1.2.3");
        assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bill["components"][0]["purl"], Value::Null);
        assert_eq!(bill["dependencies"][0]["dependsOn"], json!(["ebb/model@1.2.3", "pkg:cargo/serde@1.2.3"]));
    }
}
