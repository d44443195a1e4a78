//! Which keys a table may have, where that depends on what it is about.

/// Refuses a key that means nothing to `whom`. `given` says of each key whether it is there; `head` is the key that made
/// `whom` what it is.
pub(crate) fn only(allowed: &[&str], given: &[(&str, bool)], whom: &str, head: &str) -> Result<(), String> {
    match given.iter().find(|(key, given)| *given && !allowed.contains(key)) {
        None => Ok(()),
        Some((key, _)) if allowed.is_empty() => {
            Err(format!("`{key}` means nothing to {whom}, which has no keys but {head}"))
        }
        Some((key, _)) => {
            Err(format!("`{key}` means nothing to {whom}; besides {head} it may have {}", allowed.join(", ")))
        }
    }
}
