//! Who had the GPU when: the same few requests under several modes, one under the other, over one axis of time.
//!
//! One seed offers the same requests at the same times in every mode, so what stands above one another is the same
//! request. A request waits in the upper strip of its lane, where those who wait together add up to a darker tint,
//! and is served in the lower; best-effort iterations alternate in two tints.

use maud::{Markup, html};

use super::axis::Scale;
use super::picture;
use crate::numbers::{px, short_time};
use crate::palette;

pub struct Panel<'a> {
    pub mode: &'a str,
    pub lanes: Vec<Lane<'a>>,
}

pub struct Lane<'a> {
    pub tenant: &'a str,
    pub latency: bool,
    pub spans: Vec<Span>,
}

/// A request or an iteration, in microseconds of its run.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// When it was to come; none for what is always there.
    pub due: Option<f64>,
    /// None for what was never served.
    pub served: Option<(f64, f64)>,
}

const LEFT: f64 = 118.0;
const RIGHT: f64 = 900.0;
const LANE: f64 = 22.0;
/// Of a lane: the strip of those who wait, and the bar of the one that is served.
const WAITING: f64 = 5.0;
const SERVED: f64 = 12.0;
const HEAD: f64 = 22.0;

pub fn timeline(name: &str, (from, to): (f64, f64), panels: &[Panel]) -> Markup {
    let x = Scale::linear((0.0, to - from), (LEFT, RIGHT));
    let height = |panel: &Panel| HEAD + LANE * panel.lanes.len() as f64 + 6.0;
    let bottom: f64 = 6.0 + panels.iter().map(height).sum::<f64>();
    let mut top = 6.0;
    let content = html! {
        g.grid { @for tick in x.ticks() {
            line x1=(px(x.at(tick))) x2=(px(x.at(tick))) y1="6" y2=(px(bottom)) {}
        } }
        g.tick { @for tick in x.ticks() {
            text.mid x=(px(x.at(tick))) y=(px(bottom + 14.0)) { (short_time(tick)) }
        } }
        @for panel in panels {
            (draw(panel, from, &x, { let here = top; top += height(panel); here }))
        }
    };
    picture(name, (RIGHT + 24.0, bottom + 22.0), 640.0, content)
}

fn draw(panel: &Panel, from: f64, x: &Scale, top: f64) -> Markup {
    html! {
        g.{ (palette::class(panel.mode)) } {
            (palette::mark(panel.mode, 8.0, top + 11.0, 4.4))
            text.name x="20" y=(px(top + 15.0)) { (palette::label(panel.mode)) }
            @for (index, lane) in panel.lanes.iter().enumerate() {
                (row(lane, from, x, top + HEAD + LANE * index as f64))
            }
        }
    }
}

fn row(lane: &Lane, from: f64, x: &Scale, top: f64) -> Markup {
    let bar = |a: f64, b: f64, from_top: f64, height: f64| {
        // A bar of no width would be invisible, and so would what it stands for.
        let (a, b) = (x.at(a - from), x.at(b - from).max(x.at(a - from) + 0.6));
        format!("M{} {}H{}v{}H{}z", px(a), px(top + from_top), px(b), px(height), px(a))
    };
    let gather = |pick: &dyn Fn(usize, &Span) -> Option<String>| {
        lane.spans.iter().enumerate().filter_map(|(index, span)| pick(index, span)).collect::<String>()
    };
    let inside = |time: f64| time >= from && time <= from + x.high();
    let waiting = queue(&lane.spans, from, from + x.high());
    let depths: Vec<(usize, String)> = (1..=DEEP)
        .map(|depth| {
            let here = waiting.iter().filter(|wait| wait.depth == depth);
            (depth, here.map(|wait| bar(wait.from, wait.to, 0.0, WAITING)).collect::<String>())
        })
        .filter(|(_, path)| !path.is_empty())
        .collect();
    let arrivals = gather(&|_, span| {
        let due = span.due.filter(|due| inside(*due))?;
        Some(format!("M{} {}v{}", px(x.at(due - from)), px(top), px(WAITING + SERVED)))
    });
    let half = |parity: usize| {
        gather(&move |index, span| {
            let (start, end) = span.served.filter(|_| index % 2 == parity)?;
            (start < from + x.high() && end > from).then(|| bar(start, end, WAITING, SERVED))
        })
    };
    let class = if lane.latency { "lc" } else { "be" };
    html! {
        text.tick.end x=(px(LEFT - 8.0)) y=(px(top + 15.0)) { (short(lane.tenant)) }
        path.rail d={ "M" (px(LEFT)) " " (px(top + WAITING + SERVED)) "H" (px(RIGHT)) } {}
        g.{ (class) } {
            @for (depth, path) in depths { path.wait.{ "q" (depth) } d=(path) {} }
            path.serve d=(half(0)) {}
            path.serve.odd d=(half(1)) {}
            path.due d=(arrivals) {}
        }
    }
}

/// How many wait, up to where it makes no difference to the eye.
const DEEP: usize = 5;

/// A stretch of time in which equally many wait.
#[derive(Debug, PartialEq)]
struct Wait {
    from: f64,
    to: f64,
    depth: usize,
}

/// The queue over time. In overload thousands wait at once, so they are counted and not drawn one by one.
fn queue(spans: &[Span], from: f64, to: f64) -> Vec<Wait> {
    let mut changes: Vec<(f64, i64)> = Vec::new();
    for span in spans {
        let Some(due) = span.due else { continue };
        let start = span.served.map_or(f64::INFINITY, |(start, _)| start);
        if start > due && start > from && due < to {
            changes.extend([(due.max(from), 1), (start.min(to), -1)]);
        }
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut waits, mut count): (Vec<Wait>, i64) = (Vec::new(), 0);
    for pair in changes.windows(2) {
        count += pair[0].1;
        let (from, to) = (pair[0].0, pair[1].0);
        let depth = usize::try_from(count).unwrap_or(0).min(DEEP);
        match waits.last_mut() {
            _ if depth == 0 || to <= from => {}
            Some(last) if last.depth == depth && last.to == from => last.to = to,
            _ => waits.push(Wait { from, to, depth }),
        }
    }
    waits
}

/// A lane's name has room for so many letters.
fn short(name: &str) -> String {
    match name.char_indices().nth(16) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(due: f64, start: f64) -> Span {
        Span { due: Some(due), served: Some((start, start + 1.0)) }
    }

    #[test]
    fn those_who_wait_together_are_counted() {
        let spans = [request(0.0, 10.0), request(5.0, 20.0), request(30.0, 30.0)];
        let wait = |from, to, depth| Wait { from, to, depth };
        assert_eq!(queue(&spans, 0.0, 40.0), [wait(0.0, 5.0, 1), wait(5.0, 10.0, 2), wait(10.0, 20.0, 1)]);
        assert_eq!(queue(&spans, 7.0, 12.0), [wait(7.0, 10.0, 2), wait(10.0, 12.0, 1)]);
    }

    #[test]
    fn a_crowd_that_is_never_served_is_one_stretch() {
        let spans: Vec<Span> =
            (0..1000).map(|due| Span { due: Some(f64::from(due)), served: None }).collect();
        assert_eq!(queue(&spans, 500.0, 2000.0), [Wait { from: 500.0, to: 2000.0, depth: DEEP }]);
    }
}
