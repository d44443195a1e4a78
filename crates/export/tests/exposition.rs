//! A reader of OpenMetrics that accepts no more than OpenMetrics, as far as ebb writes it. Also used by the tests of `ebb`.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "other tests use a part of this, and stop at the unexpected"
)]

use std::collections::{BTreeMap, BTreeSet};

/// A series: its name and its labels.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Series {
    pub name: String,
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
pub struct Exposition {
    pub values: BTreeMap<Series, f64>,
    /// The type of every family.
    pub types: BTreeMap<String, String>,
}

impl Exposition {
    /// Reads a text. Panics where it is not as the format has it.
    pub fn read(text: &str) -> Exposition {
        let body = text.strip_suffix("# EOF\n").expect("the text ends with its mark");
        let mut found = Exposition::default();
        let mut family: Option<String> = None;
        for line in body.lines() {
            match line.strip_prefix("# ") {
                Some(about) => found.head(about, &mut family),
                None => found.sample(line, family.as_deref().expect("no sample before its family")),
            }
        }
        found.histograms();
        found
    }

    /// The value of the series with this name and these labels, and possibly others.
    pub fn get(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let fits = |series: &Series| {
            series.name == name
                && labels.iter().all(|(key, value)| series.labels.get(*key).is_some_and(|own| own == value))
        };
        let mut found = self.values.iter().filter(|(series, _)| fits(series)).map(|(_, value)| *value);
        let first = found.next();
        assert!(found.next().is_none(), "{name} {labels:?} fits several series");
        first
    }

    fn head(&mut self, about: &str, family: &mut Option<String>) {
        let (word, rest) = about.split_once(' ').unwrap();
        let (name, text) = rest.split_once(' ').unwrap();
        assert!(is_name(name), "{name} is no name");
        match word {
            "TYPE" => {
                let before = self.types.insert(name.to_owned(), text.to_owned());
                assert_eq!(before, None, "{name} begins twice");
                assert!(["info", "gauge", "counter", "histogram"].contains(&text), "{text} is no type");
                *family = Some(name.to_owned());
            }
            "UNIT" => assert!(name.ends_with(&format!("_{text}")), "the unit of {name} is not in its name"),
            "HELP" => assert!(!text.is_empty()),
            other => panic!("{other} is no word of the format"),
        }
        assert_eq!(family.as_deref(), Some(name), "{word} is about another family");
    }

    fn sample(&mut self, line: &str, family: &str) {
        let end = line.find(['{', ' ']).unwrap();
        let (name, rest) = line.split_at(end);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest),
            None => (BTreeMap::new(), rest),
        };
        let value: f64 = rest.strip_prefix(' ').unwrap().parse().unwrap();
        let endings: &[&str] = match self.types[family].as_str() {
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_count", "_sum"],
            _ => &[""],
        };
        let ending = name.strip_prefix(family).expect("a sample belongs to the family before it");
        assert!(endings.contains(&ending), "{name} is no series of {family}");
        assert!(value.is_finite(), "{line}");
        if ending == "_total" || ending == "_bucket" || ending == "_count" {
            assert!(value >= 0.0, "{line}");
        }
        let before = self.values.insert(Series { name: name.to_owned(), labels }, value);
        assert_eq!(before, None, "{line} is there twice");
    }

    /// Buckets rise to the last, which is the count.
    fn histograms(&self) {
        for (family, kind) in &self.types {
            if kind != "histogram" {
                continue;
            }
            let mut buckets: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
            let (bucket, count) = (format!("{family}_bucket"), format!("{family}_count"));
            for (series, value) in self.values.iter().filter(|(series, _)| series.name == bucket) {
                let mut labels = series.labels.clone();
                let bound = labels.remove("le").expect("a bucket has a bound");
                let bound = bound.parse::<f64>().unwrap();
                buckets.entry(labels).or_default().push((bound, *value));
            }
            for (labels, mut list) in buckets {
                list.sort_by(|a, b| a.0.total_cmp(&b.0));
                assert!(list.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{family} {labels:?}: {list:?}");
                let (bound, last) = *list.last().unwrap();
                let series = Series { name: count.clone(), labels };
                assert!(bound.is_infinite() && self.values[&series] == last, "{series:?}");
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The labels, and what comes behind them.
fn labels(mut rest: &str) -> (BTreeMap<String, String>, &str) {
    let mut found = BTreeMap::new();
    loop {
        let (name, behind) = rest.split_once("=\"").unwrap();
        assert!(is_name(name), "{name} is no name");
        let (mut value, mut escaped, mut end) = (String::new(), false, None);
        for (at, character) in behind.char_indices() {
            match (escaped, character) {
                (true, 'n') => value.push('\n'),
                (true, '\\' | '"') => value.push(character),
                (true, other) => panic!("\\{other} is no escape"),
                (false, '\\') => {}
                (false, '"') => {
                    end = Some(at);
                    break;
                }
                (false, other) => value.push(other),
            }
            escaped = !escaped && character == '\\';
        }
        assert!(found.insert(name.to_owned(), value).is_none(), "{name} is said twice");
        rest = &behind[end.expect("a label ends") + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (found, rest.strip_prefix('}').unwrap()),
        }
    }
}

#[test]
fn the_reader_refuses_what_is_wrong() {
    let refused = |text: &str| std::panic::catch_unwind(|| Exposition::read(text)).is_err();
    let good = "# TYPE a counter\n# HELP a x\na_total{b=\"c\\\"\"} 1\n# EOF\n";
    assert_eq!(Exposition::read(good).get("a_total", &[("b", "c\"")]), Some(1.0));
    let bad = [
        "# TYPE a counter\na_total 1\n",
        "a_total 1\n# EOF\n",
        "# TYPE a counter\na 1\n# EOF\n",
        "# TYPE a counter\na_total 1\na_total 2\n# EOF\n",
        "# TYPE a gauge\n# TYPE a gauge\n# EOF\n",
        "# TYPE a gauge\na{b=\"c} 1\n# EOF\n",
        "# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_count 1\n# EOF\n",
    ];
    for text in bad {
        assert!(refused(text), "{text}");
    }
    let names: BTreeSet<_> = ["9a", "", "a-b"].into_iter().filter(|name| is_name(name)).collect();
    assert_eq!(names, BTreeSet::new());
}
