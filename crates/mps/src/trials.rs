//! Hostile input, and what must hold of whatever is read from it. Fuzzers call this, and tests with drawn input.

use crate::logs::{Event, LONGEST_LINE, LineCollector, of_control, of_server};

/// Any bytes as what MPS writes into its logs: however they come in pieces, the same lines are read, and what is told of them can be
/// shown. The first byte says how long the pieces are.
pub fn logs(data: &[u8]) {
    let Some((&piece, bytes)) = data.split_first() else { return };
    let whole = LineCollector::default().take(bytes);
    let mut collector = LineCollector::default();
    let pieces: Vec<String> =
        bytes.chunks(usize::from(piece) + 1).flat_map(|piece| collector.take(piece)).collect();
    assert_eq!(pieces, whole);
    assert_eq!(whole.len(), bytes.iter().filter(|&&byte| byte == b'\n').count());
    for line in &whole {
        // A byte that is no text is shown as a character of three.
        assert!(line.len() <= 3 * LONGEST_LINE && !line.contains(model::text::is_hidden));
        for event in of_server(line).into_iter().chain(of_control(line)) {
            let (Event::Fault(words) | Event::ServerGone(words)) = event else {
                panic!("a line ends no daemon")
            };
            assert!(line.contains(&words));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_log_is_too_odd(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            logs(&bytes);
        }

        #[test]
        fn no_line_is_too_odd(piece: u8, line in r"\[?.{0,9}\]? ?(a fatal .*| exited with status .*|.*)\r?\n.*") {
            logs(&[&[piece], line.as_bytes()].concat());
        }
    }
}
