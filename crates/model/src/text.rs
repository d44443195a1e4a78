//! Texts of others, made fit to be shown.
//!
//! Programs choose their own names, and so do kernels. What is shown to a person must not move the cursor, change colours, or put its
//! letters in another order than they are stored in: a name that reads as another's is a lie. This is the one place that says
//! which characters do such things; the board, telemetry, the profile store, the log and the commands ask here.

use std::borrow::Cow;

/// Whether a character is not seen itself and changes how others are: control characters, those that turn the direction of
/// writing, those without a width, and the separators of lines.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{00ad}' // soft hyphen
            | '\u{061c}' // Arabic letter mark
            | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // Hangul fillers: letters without a shape
            | '\u{180b}'..='\u{180f}' // Mongolian selectors and vowel separator
            | '\u{200b}'..='\u{200f}' // no width, joiners, left-to-right and right-to-left marks
            | '\u{2028}'..='\u{202e}' // line and paragraph separators, embeddings and overrides
            | '\u{2060}'..='\u{206f}' // word joiner, invisible operators, isolates, deprecated formats
            | '\u{fe00}'..='\u{fe0f}' // variation selectors
            | '\u{feff}' // byte order mark
            | '\u{fff0}'..='\u{fffb}' // unassigned specials and annotations
            | '\u{13430}'..='\u{1343f}' // Egyptian format controls
            | '\u{1bca0}'..='\u{1bca3}' // shorthand format controls
            | '\u{1d173}'..='\u{1d17a}' // musical format controls
            | '\u{e0000}'..='\u{e0fff}') // tags and more variation selectors
}

/// As a person may see it, with something visible for every character that is not.
pub fn printable(text: &str) -> String {
    replaced(text, char::REPLACEMENT_CHARACTER)
}

/// As a person may see it, of bytes that need not be text.
pub fn printable_bytes(bytes: &[u8]) -> String {
    match String::from_utf8_lossy(bytes) {
        Cow::Owned(text) if !text.contains(is_hidden) => text,
        text => printable(&text),
    }
}

/// As a person may see it on one line, where hidden characters stood between words: line ends and tabulators, mostly.
pub fn on_one_line(text: &str) -> String {
    replaced(text, ' ')
}

fn replaced(text: &str, by: char) -> String {
    text.chars().map(|letter| if is_hidden(letter) { by } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_hides_or_turns_comes_through() {
        let bidirectional = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        let marks = ['\u{200e}', '\u{200f}', '\u{061c}', '\u{200b}', '\u{feff}', '\u{2028}', '\u{e0041}'];
        let controls = ('\0'..='\u{1f}').chain('\u{7f}'..='\u{9f}');
        for letter in bidirectional.chain(marks).chain(controls) {
            let code = u32::from(letter);
            assert_eq!(printable(&format!("a{letter}b")), "a\u{fffd}b", "U+{code:04X}");
            assert_eq!(on_one_line(&format!("a{letter}b")), "a b", "U+{code:04X}");
            assert_eq!(printable_bytes(format!("a{letter}b").as_bytes()), "a\u{fffd}b", "U+{code:04X}");
        }
    }

    #[test]
    fn what_is_seen_stays() {
        for text in ["", "train.py", "Übung (größer) – 3 µs…", "学習", "обучение", "הדרכה", "تدريب", "🦀"]
        {
            assert_eq!(printable(text), text);
            assert_eq!(printable_bytes(text.as_bytes()), text);
        }
        assert_eq!(printable_bytes(b"a\xffb"), "a\u{fffd}b");
    }
}
