//! The last few spans, in order of length.
//!
//! When there are `n` spans and the next is like them, it falls into each of the `n + 1` places between them equally often:
//! nothing is assumed about how they are distributed, and nothing estimated. So the span that nine of ten exceed is simply the
//! one in the place (n + 1) / 10 from below; where that is no whole place, it lies between two. It follows that fewer than
//! nine spans say nothing about one in ten, and [`Recent::ENOUGH`] is nine.
//!
//! The same holds of what is left when some of the time has passed: of the spans that are longer than that, the next is as
//! likely to fall into any of the places. A forecast that is asked for again later is therefore as honest as the first.
//!
//! When all places are taken, a new span takes that of one chosen by a number that jumps about but is the same in every run.
//! So old spans fade away instead of leaving in their order, and the spans that remain can be kept sorted, in two bytes each:
//! the answer is then only read. When spans become shorter the low places are new ones after a few observations; when they
//! become longer it takes some 50 until the old low ones are gone. That is the side on which to err.

use model::Nanos;

use crate::scale;

/// Each power of two is cut into 2¹⁰ steps: all spans there are fit two bytes, within a thousandth of themselves.
const CUT: u32 = 10;

/// Up to `N` spans. With `N` + 1 a multiple of ten, the places asked about are whole ones.
///
/// ```
/// use forecast::Recent;
/// use model::Nanos;
///
/// let mut recent = Recent::<29>::new();
/// for span in [40, 10, 30, 20, 50, 60, 90, 80, 70] {
///     recent.observe(Nanos(span));
/// }
/// assert_eq!((recent.tenth(1), recent.tenth(5)), (Nanos(10), Nanos(50)));
/// // Half an age later, those that would have come by now are out of the question.
/// assert_eq!(recent.tenth_after(5, Nanos(55)), Nanos(75));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recent<const N: usize> {
    /// The steps of the scale on which spans lie, from the lowest, each as what it lacks to the end of the scale: so nought
    /// is a free place, and sorts behind all others.
    lacks: [u16; N],
    len: u8,
    jumps: u16,
}

impl<const N: usize> Recent<N> {
    /// From so many spans on, one in ten can be told from never.
    pub const ENOUGH: usize = 9;

    pub const fn new() -> Recent<N> {
        const { assert!(N > 0 && N < 256, "the length is a byte") };
        Recent { lacks: [0; N], len: 0, jumps: 0 }
    }

    #[inline]
    pub fn observe(&mut self, span: Nanos) {
        let lack = lack(span);
        let leaving = usize::from(self.len);
        if leaving < N {
            self.len = self.len.saturating_add(1);
            return self.replace(leaving, lack);
        }
        // A generator of all numbers of two bytes, whose upper bits have no pattern, thrown off its course by the spans
        // themselves: else those that leave would be the same in every table of a tenant.
        self.jumps = (self.jumps ^ lack).wrapping_mul(25_173).wrapping_add(13_849);
        let leaving = u32::from(self.jumps).wrapping_mul(N as u32) >> 16;
        self.replace(leaving as usize, lack);
    }

    /// Puts a span where it belongs, instead of the one that leaves: whatever lies between the two places moves by one. A step
    /// at a time, because on average it is a third of them, and that is done before `memmove` has looked at its arguments.
    #[inline]
    fn replace(&mut self, leaving: usize, lack: u16) {
        let mut place = leaving;
        while let Some([here, next]) = self.lacks.get_mut(place..place.saturating_add(2))
            && *next > lack
        {
            *here = *next;
            place = place.saturating_add(1);
        }
        while let Some([next, here]) = self.lacks.get_mut(place.wrapping_sub(1)..place.saturating_add(1))
            && *next < lack
        {
            *here = *next;
            place = place.saturating_sub(1);
        }
        if let Some(here) = self.lacks.get_mut(place) {
            *here = lack;
        }
    }

    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn is_enough(&self) -> bool {
        self.len() >= Recent::<N>::ENOUGH
    }

    /// The span that so many tenths of the spans do not exceed; nought when there are none.
    #[inline]
    pub fn tenth(&self, tenths: u32) -> Nanos {
        tenth(self.known(), tenths, Nanos::ZERO)
    }

    /// The same of those spans only that are longer than what has passed already, and at least that: nothing longer is
    /// known, it may end at any moment.
    #[inline]
    pub fn tenth_after(&self, tenths: u32, passed: Nanos) -> Nanos {
        tenth(self.longer_than(passed), tenths, passed)
    }

    /// How many of the spans are longer.
    pub fn count_after(&self, passed: Nanos) -> usize {
        self.longer_than(passed).len()
    }

    /// For how long to wait for a span like these to end before doing something else, if to turn to that and back costs `price`;
    /// `most` at the most. Who waits longer than that for spans that are short, or at all for one that is long, loses the time. Of all the
    /// waits that would have caught one span more, it is the one that would have cost least. Nought: it was never worth it.
    pub fn patience(&self, price: Nanos, most: Nanos) -> Nanos {
        let left_behind = |count: usize, each: Nanos| each.0.saturating_mul(count as u64);
        let (mut waited, mut patience) = (Nanos::ZERO, Nanos::ZERO);
        let mut least = left_behind(self.len(), price);
        for (&lack, longer) in self.known().iter().zip((0..self.len()).rev()) {
            let span = span(lack);
            if span > most {
                break;
            }
            waited += span;
            let cost = waited.0.saturating_add(left_behind(longer, span + price));
            if cost < least {
                (least, patience) = (cost, span);
            }
        }
        patience
    }

    fn longer_than(&self, passed: Nanos) -> &[u16] {
        let known = self.known();
        if passed == Nanos::ZERO {
            return known;
        }
        let lack = lack(passed);
        let place = known.partition_point(|&known| known >= lack);
        known.get(place..).unwrap_or(&[])
    }

    fn known(&self) -> &[u16] {
        self.lacks.get(..self.len()).unwrap_or(&[])
    }
}

impl<const N: usize> Default for Recent<N> {
    fn default() -> Recent<N> {
        Recent::new()
    }
}

fn lack(span: Nanos) -> u16 {
    u16::MAX.saturating_sub(scale::step(span.0, CUT) as u16)
}

fn span(lack: u16) -> Nanos {
    Nanos(scale::start(u32::from(u16::MAX.saturating_sub(lack)), CUT))
}

#[inline]
fn tenth(known: &[u16], tenths: u32, least: Nanos) -> Nanos {
    // In tenths of a place, counted from `least`, which is place nought.
    let at = (known.len() as u32).saturating_add(1).saturating_mul(tenths);
    let (place, part) = ((at / 10) as usize, at % 10);
    let at_place = |place: usize| match place.checked_sub(1) {
        None => least,
        Some(index) => known.get(index).or(known.last()).map_or(least, |&lack| span(lack).max(least)),
    };
    let low = at_place(place);
    if part == 0 {
        return low;
    }
    low + (at_place(place.saturating_add(1)) - low).scaled(part, 10)
}
