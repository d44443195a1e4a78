//! How the traces of the suite `disb-real` were drawn: with the published numbers of arrivals, and as a Poisson process
//! that is known to have so many of them, which is so many points strewn evenly over the time.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::Trace;
use super::draw::{Draw, stream_seed};

const MILLISECONDS: f64 = 38_000.0;

/// Model, arrivals, arrivals in a burst.
const PUBLISHED: [(&str, u32, u32); 5] = [
    ("resnet152", 375, 1),
    ("densenet201", 202, 1),
    ("vgg19", 560, 4),
    ("inception-v3", 374, 1),
    ("distilbert", 173, 1),
];

const SPACING: f64 = 3.0;

fn drawn(model: &str, count: u32, burst: u32) -> String {
    let mut draw = Draw::new(stream_seed(38, model, 0));
    let length = SPACING * f64::from(burst - 1);
    let begins = (0..count / burst).map(|_| draw.uniform() * (MILLISECONDS - length));
    let mut offsets: Vec<f64> =
        begins.flat_map(|begin| (0..burst).map(move |number| begin + SPACING * f64::from(number))).collect();
    offsets.sort_by(f64::total_cmp);
    let groups = if burst > 1 { format!(" in bursts of {burst}, {SPACING} ms apart") } else { String::new() };
    let mut text = format!("# {count} arrivals in 38 s{groups}; drawn, not measured. Milliseconds.\n");
    for offset in offsets {
        writeln!(text, "{offset:.1}").unwrap();
    }
    text
}

/// With `EBB_WRITE_TRACES=1` the files are written instead.
#[test]
fn the_traces_are_those_that_were_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suites/disb-real");
    for (model, count, burst) in PUBLISHED {
        let file = folder.join(format!("{model}.trace"));
        let text = drawn(model, count, burst);
        if std::env::var_os("EBB_WRITE_TRACES").is_some() {
            fs::write(&file, &text).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "{}", file.display());
        let trace = Trace::read(model, &text).unwrap();
        let published = f64::from(count) / MILLISECONDS * 1e3;
        assert!(
            (trace.rate() / published - 1.0).abs() < 0.03,
            "{model}: {}/s, not {published}",
            trace.rate()
        );
    }
}
