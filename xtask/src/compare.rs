//! Says in a line where two texts part.

/// Nothing if the texts are equal, else where and how they differ.
pub fn summary(name: &str, committed: &str, fresh: &str) -> Option<String> {
    if committed == fresh {
        return None;
    }
    if committed.is_empty() {
        return Some(format!("  {name}: not committed"));
    }
    let pairs = committed.lines().zip(fresh.lines()).enumerate();
    let different = pairs.filter(|(_, (old, new))| old != new).count();
    let first = committed.lines().zip(fresh.lines()).position(|(old, new)| old != new);
    let (old, new) = (committed.lines().count(), fresh.lines().count());
    let first = first.unwrap_or(old.min(new));
    let line = |text: &str| text.lines().nth(first).unwrap_or("(end of file)").trim().to_owned();
    Some(format!(
        "  {name}:{}: {old} lines committed, {new} fresh, {different} differ; first\n    - {}\n    + {}",
        first + 1,
        line(committed),
        line(fresh)
    ))
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn equal_texts_need_no_words() {
        assert_eq!(summary("a", "x\ny\n", "x\ny\n"), None);
    }

    #[test]
    fn the_first_difference_is_shown() {
        let text = summary("a.rs", "x\ny\n", "x\nz\nw\n").unwrap();
        assert!(text.contains("a.rs:2"), "{text}");
        assert!(text.contains("- y") && text.contains("+ z"), "{text}");
    }

    #[test]
    fn a_shorter_text_ends_early() {
        let text = summary("a.rs", "x\n", "x\nz\n").unwrap();
        assert!(text.contains("a.rs:2") && text.contains("(end of file)"), "{text}");
    }
}
