//! Who had a GPU when.

use model::Nanos;

/// From one moment to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Nanos,
    pub until: Nanos,
}

impl Span {
    /// What two spans have in common.
    pub fn common(self, other: Span) -> Option<Span> {
        let (from, until) = (self.from.max(other.from), self.until.min(other.until));
        (from < until).then_some(Span { from, until })
    }

    pub fn length(self) -> Nanos {
        self.until.since(self.from)
    }
}

/// What spans cover together, in order.
pub fn union(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| span.from);
    let mut covered: Vec<Span> = Vec::new();
    for span in spans {
        match covered.last_mut() {
            Some(last) if span.from <= last.until => last.until = last.until.max(span.until),
            _ => covered.push(span),
        }
    }
    covered
}

/// What lies between them.
pub fn gaps(covered: &[Span]) -> impl Iterator<Item = Span> {
    covered.windows(2).map(|pair| Span { from: pair[0].until, until: pair[1].from })
}

/// What a span has in common with others that lie behind each other.
pub fn common(span: Span, others: &[Span]) -> impl Iterator<Item = (usize, Span)> {
    let first = others.partition_point(|other| other.until <= span.from);
    let rest = others[first..].iter().take_while(move |other| other.from < span.until);
    rest.enumerate().filter_map(move |(at, other)| Some((first + at, span.common(*other)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(from: u64, until: u64) -> Span {
        Span { from: Nanos(from), until: Nanos(until) }
    }

    #[test]
    fn gaps_lie_between_what_is_covered() {
        let covered = union(vec![span(30, 40), span(0, 10), span(5, 12), span(12, 13)]);
        assert_eq!(covered, [span(0, 13), span(30, 40)]);
        assert_eq!(gaps(&covered).collect::<Vec<_>>(), [span(13, 30)]);
        let common: Vec<_> = common(span(10, 35), &covered).collect();
        assert_eq!(common, [(0, span(10, 13)), (1, span(30, 35))]);
        assert_eq!(span(0, 5).common(span(5, 9)), None);
    }
}
