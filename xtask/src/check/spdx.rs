//! Licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`.
//!
//! The grammar of SPDX as far as crates use it: `AND` binds tighter than `OR`, `WITH` belongs to the licence
//! before it, parentheses group, and a slash is an old way to write `OR`.

use std::iter::Peekable;

use anyhow::{Result, bail};

/// Whether someone who accepts only the licences for which `accepts` says yes can use the work.
pub fn satisfied(expression: &str, accepts: &dyn Fn(&str) -> bool) -> Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let answer = any(&mut words, accepts)?;
    match words.next() {
        None => Ok(answer),
        Some(word) => bail!("unexpected `{word}` in the licence `{expression}`"),
    }
}

type Words<'a> = Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, accepts: &dyn Fn(&str) -> bool) -> Result<bool> {
    let mut answer = all(words, accepts)?;
    while words.next_if_eq(&"OR").is_some() {
        answer |= all(words, accepts)?;
    }
    Ok(answer)
}

fn all(words: &mut Words<'_>, accepts: &dyn Fn(&str) -> bool) -> Result<bool> {
    let mut answer = one(words, accepts)?;
    while words.next_if_eq(&"AND").is_some() {
        answer &= one(words, accepts)?;
    }
    Ok(answer)
}

fn one(words: &mut Words<'_>, accepts: &dyn Fn(&str) -> bool) -> Result<bool> {
    match words.next() {
        Some("(") => {
            let answer = any(words, accepts)?;
            if words.next() != Some(")") {
                bail!("a parenthesis is not closed");
            }
            Ok(answer)
        }
        None | Some("AND" | "OR" | "WITH" | ")") => bail!("a licence is missing"),
        Some(name) => match words.next_if_eq(&"WITH").and_then(|_| words.next()) {
            Some(exception) => Ok(accepts(&format!("{name} WITH {exception}"))),
            None => Ok(accepts(name)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine(expression: &str) -> bool {
        let accepted = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"];
        satisfied(expression, &|name| accepted.contains(&name)).unwrap()
    }

    fn refused(expression: &str) -> bool {
        satisfied(expression, &|_| true).is_err()
    }

    #[test]
    fn a_licence_stands_for_itself() {
        assert!(fine("MIT"));
        assert!(!fine("GPL-3.0-only"));
    }

    #[test]
    fn one_of_several_is_enough() {
        assert!(fine("MIT OR GPL-3.0-only"));
        assert!(fine("GPL-3.0-only OR MIT"));
        assert!(fine("Unlicense/MIT"));
        assert!(!fine("GPL-2.0-only OR GPL-3.0-only"));
    }

    #[test]
    fn all_of_several_are_needed() {
        assert!(fine("MIT AND Apache-2.0"));
        assert!(!fine("MIT AND OpenSSL"));
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert!(fine("MIT OR OpenSSL AND GPL-3.0-only"));
        assert!(!fine("(MIT OR OpenSSL) AND GPL-3.0-only"));
        assert!(fine("(MIT OR Apache-2.0) AND Unicode-3.0"));
    }

    #[test]
    fn an_exception_is_part_of_its_licence() {
        assert!(fine("Apache-2.0 WITH LLVM-exception"));
        assert!(fine("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only"));
        assert!(!fine("Apache-2.0 WITH Bison-exception-2.2"));
    }

    #[test]
    fn nonsense_is_refused() {
        for expression in ["", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT Apache-2.0", "AND", "MIT AND ()"] {
            assert!(refused(expression), "{expression}");
        }
    }
}
