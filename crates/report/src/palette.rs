//! How each way of sharing looks, everywhere and always.
//!
//! ebb has the cool colours, everything else is warm or neutral, so that one glance finds it, also without red or
//! green in the eye; and no colour stands alone: every mode has its own mark, and every line its label. The policies of one
//! domain share its mark and are shades of its colour.

use std::borrow::Cow;

use model::Kind;
use results::mode::Name;

use maud::{Markup, PreEscaped, html};

/// The shape of a mode's dots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Circle,
    Square,
    Up,
    Down,
    Diamond,
    Cross,
    Plus,
    Ring,
}

#[derive(Debug)]
pub struct Look {
    pub mode: &'static str,
    /// What a person reads.
    pub label: &'static str,
    /// What the mode does, in half a sentence.
    pub about: &'static str,
    pub light: &'static str,
    pub dark: &'static str,
    pub mark: Mark,
    /// Ours: drawn last, larger and thicker.
    pub ours: bool,
}

const fn look(
    mode: &'static str,
    label: &'static str,
    about: &'static str,
    colours: [&'static str; 2],
    mark: Mark,
) -> Look {
    Look { mode, label, about, light: colours[0], dark: colours[1], mark, ours: false }
}

/// In the order of tables and legends, which is that of [`results::figures::ORDER`].
pub const LOOKS: [Look; 12] = [
    look("alone", "alone", "each tenant has the GPU to itself", ["#5d6673", "#a3acb9"], Mark::Ring),
    look(
        "latency-only",
        "latency only",
        "all latency tenants together, no best-effort work",
        ["#8d7f6f", "#c3b5a4"],
        Mark::Ring,
    ),
    look("timeslice", "time-slicing", "the driver's default", ["#c0588f", "#e38fba"], Mark::Square),
    look("mps", "MPS", "all contexts at once, by NVIDIA's server", ["#d98a00", "#f0b040"], Mark::Up),
    look("mps-priority", "MPS, priorities", "MPS with stream priorities", ["#c84800", "#ff8a50"], Mark::Down),
    look("streams", "streams", "one process, stream priorities", ["#86602c", "#c9a36b"], Mark::Plus),
    look("xsched", "XSched", "level 1: the launch queue held back", ["#7a3f98", "#c08ae0"], Mark::Cross),
    look("xsched-timeslice", "XSched, timeslice", "its timeslice mode", ["#a77bbd", "#dab6ef"], Mark::Cross),
    look("hami", "HAMi-core", "a limit on SM use", ["#8f8200", "#d6c840"], Mark::Square),
    look("nvshare", "nvshare", "an exclusive lock with a quantum", ["#4a4a3a", "#bdbda6"], Mark::Up),
    Look {
        ours: true,
        ..look(
            "ebb-isolated",
            "ebb, isolated",
            "separate contexts, hardware switch",
            ["#0067b1", "#5cb6ff"],
            Mark::Diamond,
        )
    },
    Look {
        ours: true,
        ..look(
            "ebb-shared",
            "ebb, shared",
            "one MPS server, guarded kernels",
            ["#008f6b", "#35d6a6"],
            Mark::Circle,
        )
    },
];

static UNKNOWN: Look =
    look("other", "another mode", "unknown to this report", ["#777777", "#aaaaaa"], Mark::Ring);

/// Light and dark, of the policies in the isolated domain and in the shared one.
fn shades(isolated: bool, policy: Kind) -> [&'static str; 2] {
    match (isolated, policy) {
        (true, Kind::Strict) => ["#2b3f9e", "#8fa0ff"],
        (true, Kind::Gaps) => ["#3b83bd", "#9bd2ff"],
        (true, Kind::Slo) => ["#005f9e", "#4dacff"],
        (true, Kind::Fair) => ["#5b4fc4", "#b3a9ff"],
        (true, Kind::Deadline) => ["#00758f", "#4fd3ee"],
        (false, Kind::Strict) => ["#2f6b1f", "#8fd672"],
        (false, Kind::Gaps) => ["#4c9a2a", "#b4e68a"],
        (false, Kind::Slo) => ["#007d5d", "#2cc497"],
        (false, Kind::Fair) => ["#00848a", "#4fe0e0"],
        (false, Kind::Deadline) => ["#56731f", "#c9e07a"],
    }
}

/// The look of a mode, whatever its policy.
pub fn of(mode: &str) -> &'static Look {
    let base = Name::of(mode).base;
    LOOKS.iter().find(|look| look.mode == base).unwrap_or(&UNKNOWN)
}

/// What a person reads for the mode; a mode unknown here keeps its own name.
pub fn label(mode: &str) -> Cow<'_, str> {
    let (look, Name { policy, slo, .. }) = (of(mode), Name::of(mode));
    let mut label = match (look.mode, policy) {
        ("other", _) => return Cow::Borrowed(mode),
        (_, None) => Cow::Borrowed(look.label),
        (_, Some(policy)) => Cow::Owned(format!("{}: {}", look.label, policy.name())),
    };
    if let Some(slo) = slo {
        let told = if policy.is_some() { ", told" } else { ": told" };
        *label.to_mut() += &format!("{told} {slo}× alone");
    }
    label
}

/// What a mode is called in classes and addresses: out of our own words only.
pub fn slug(mode: &str) -> String {
    let (look, Name { policy, slo, .. }) = (of(mode), Name::of(mode));
    let mut slug = look.mode.to_owned();
    if look.mode != UNKNOWN.mode {
        slug.extend(policy.iter().flat_map(|policy| ["-", policy.name()]));
        slug.extend(slo.map(|slo| format!("-told-{slo}").replace('.', "_")));
    }
    slug
}

/// The class of everything that belongs to a mode: it has the mode's colour, and goes when the mode is filtered out.
pub fn class(mode: &str) -> String {
    if of(mode).ours { format!("m m-{} ours", slug(mode)) } else { format!("m m-{}", slug(mode)) }
}

/// The colours of all modes there are, and of these; by slug, light and dark.
pub fn colours(modes: &[&str]) -> Vec<(String, [&'static str; 2])> {
    let known = LOOKS.iter().chain([&UNKNOWN]);
    let mut colours: Vec<_> = known.map(|look| (look.mode.to_owned(), [look.light, look.dark])).collect();
    for mode in modes {
        let (slug, look) = (slug(mode), of(mode));
        let policy = Name::of(mode).policy.filter(|_| look.ours);
        let shades = policy.map_or([look.light, look.dark], |kind| shades(look.mode == "ebb-isolated", kind));
        if colours.iter().all(|(known, _)| *known != slug) {
            colours.push((slug, shades));
        }
    }
    colours
}

/// A mode's dot around a point.
pub fn mark(mode: &str, x: f64, y: f64, size: f64) -> Markup {
    use crate::numbers::px;
    let look = of(mode);
    let r = if look.ours { size * 1.25 } else { size };
    let polygon = |corners: &[(f64, f64)]| {
        let path: Vec<_> =
            corners.iter().map(|(dx, dy)| format!("{} {}", px(x + dx * r), px(y + dy * r))).collect();
        html! { path.fl d={ "M" (path.join("L")) "Z" } {} }
    };
    let strokes = |a: f64, b: f64| {
        let end = |sx: f64, sy: f64| format!("{} {}", px(x + sx * r), px(y + sy * r));
        let d = format!("M{}L{}M{}L{}", end(-a, -b), end(a, b), end(-b, a), end(b, -a));
        html! { path.st d=(d) {} }
    };
    match look.mark {
        Mark::Circle => html! { circle.fl cx=(px(x)) cy=(px(y)) r=(px(r)) {} },
        Mark::Ring => html! { circle.st cx=(px(x)) cy=(px(y)) r=(px(r * 0.9)) {} },
        Mark::Square => polygon(&[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)]),
        Mark::Up => polygon(&[(0.0, -1.1), (1.0, 0.8), (-1.0, 0.8)]),
        Mark::Down => polygon(&[(0.0, 1.1), (1.0, -0.8), (-1.0, -0.8)]),
        Mark::Diamond => polygon(&[(0.0, -1.25), (1.1, 0.0), (0.0, 1.25), (-1.1, 0.0)]),
        Mark::Cross => strokes(0.85, 0.85),
        Mark::Plus => strokes(1.0, 0.0),
    }
}

/// A mode's mark and name, as tables and legends show them.
pub fn tag(mode: &str) -> Markup {
    html! { span.tag { (sign(mode)) span { (label(mode)) } } }
}

/// A mode's mark by itself, in a line of text.
pub fn sign(mode: &str) -> Markup {
    html! {
        svg.{ (class(mode)) } viewBox="0 0 14 14" width="14" height="14" aria-hidden="true" {
            (mark(mode, 7.0, 7.0, 4.4))
        }
    }
}

/// The colours, and the rules by which an unticked box in the legend hides its mode: no script is needed for it.
pub fn style(modes: &[&str]) -> Markup {
    let colours = colours(modes);
    let mut css = String::new();
    for (slug, [light, _]) in &colours {
        css += &format!(".m-{slug}{{color:{light}}}\n");
        css += &format!("body:has(#show-{slug}:not(:checked)) .m-{slug}{{display:none}}\n");
    }
    css += "@media (prefers-color-scheme:dark){\n";
    colours.iter().for_each(|(slug, [_, dark])| css += &format!(".m-{slug}{{color:{dark}}}\n"));
    // Only our own constants went into it.
    PreEscaped(css + "}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as WCAG defines it.
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value =
                f64::from(u8::from_str_radix(&colour[at..at + 2], 16).expect("a hexadecimal colour")) / 255.0;
            if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn every_colour_can_be_seen_on_both_grounds() {
        for look in &LOOKS {
            // Three to one is what WCAG asks of graphical objects; MPS's orange is the palest.
            assert!(
                contrast(look.light, "#ffffff") > 2.6,
                "{} on light: {}",
                look.mode,
                contrast(look.light, "#ffffff")
            );
            assert!(contrast(look.dark, "#14171c") > 4.5, "{} on dark", look.mode);
        }
    }

    #[test]
    fn no_two_modes_share_a_colour_or_both_mark_and_nearby_colour() {
        for (index, one) in LOOKS.iter().enumerate() {
            for other in &LOOKS[index + 1..] {
                assert_ne!(one.light, other.light);
                assert_ne!(one.dark, other.dark);
            }
        }
    }

    #[test]
    fn modes_stand_in_the_order_of_the_figures() {
        assert_eq!(LOOKS.each_ref().map(|look| look.mode), results::figures::ORDER);
    }

    #[test]
    fn policies_are_told_apart_by_name_class_and_shade() {
        let named = |mode| (label(mode).into_owned(), class(mode));
        let expect = |label: &str, class: &str| (label.to_owned(), class.to_owned());
        assert_eq!(named("ebb-shared"), expect("ebb, shared", "m m-ebb-shared ours"));
        assert_eq!(named("ebb-shared:gaps"), expect("ebb, shared: gaps", "m m-ebb-shared-gaps ours"));
        assert_eq!(
            named("ebb-isolated:slo:1.2x"),
            expect("ebb, isolated: slo, told 1.2× alone", "m m-ebb-isolated-slo-told-1_2 ours")
        );
        assert_eq!(label("ebb-shared:2x"), "ebb, shared: told 2× alone");
        let all: Vec<String> = ["ebb-isolated", "ebb-shared"]
            .iter()
            .flat_map(|base| Kind::ALL.map(|kind| format!("{base}:{}", kind.name())))
            .collect();
        let colours = colours(&all.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(colours.len(), LOOKS.len() + 1 + all.len());
        let of = |side: usize| {
            colours.iter().map(|(_, shades)| shades[side]).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!((of(0).len(), of(1).len()), (colours.len(), colours.len()));
        for (slug, [light, dark]) in &colours {
            assert!(contrast(light, "#ffffff") > 2.6 && contrast(dark, "#14171c") > 4.5, "{slug}");
        }
    }

    #[test]
    fn an_unknown_mode_keeps_its_name_and_cannot_write_into_a_class() {
        let hostile = "x\" onload=\"alert(1)";
        assert_eq!(label(hostile), hostile);
        assert_eq!(class(hostile), "m m-other");
        assert!(!tag(hostile).into_string().contains("x\" onload"));
    }
}
