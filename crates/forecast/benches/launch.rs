//! What it costs to learn from a launch, and to ask. A tenant's threads pay this, inside the calls of their program.
//!
//! `cargo bench -p forecast --bench launch`

use std::hint::black_box;
use std::time::Instant;

use forecast::{Arrivals, Busy, Certificate, Kernel, Recent, Sequence, Sketch};
use model::Nanos;

/// How often each is done; the best of several rounds counts, because a busy machine only makes it slower.
const TIMES: u64 = 33_000;
const ROUNDS: usize = 200;

fn measure(what: &str, mut act: impl FnMut(u64)) {
    let round = |_| {
        let start = Instant::now();
        (0..TIMES).for_each(&mut act);
        start.elapsed().as_nanos() as f64 / TIMES as f64
    };
    let best = (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min);
    println!("{what:<58} {best:6.1} ns");
}

/// Spans that vary, and cost nothing to make.
fn jitter(turn: u64) -> u64 {
    turn.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54
}

/// A request of so many kernels, again and again; every one of its pauses jitters.
fn launches(what: &str, kernels: u64, varied: bool) {
    let mut sequence = Box::new(Sequence::<2_048>::new());
    let mut now = Nanos::ZERO;
    measure(what, |turn| {
        let place = turn % kernels;
        if place == 0 {
            sequence.begins();
        }
        now += Nanos(5_000 + jitter(turn));
        let other = if varied { jitter(turn) / 64 } else { 0 };
        black_box(sequence.launched(now, Kernel(place.wrapping_mul(77) + other)));
    });
}

fn main() {
    launches("a launch of a request of 165 kernels that recurs", 165, false);
    launches("a launch of a request of 1,000 kernels that recurs", 1_000, false);
    launches("a launch where kernels vary, so that much is looked up", 165, true);

    let mut sequence = Box::new(Sequence::<2_048>::new());
    (0..10_000).for_each(|turn| _ = sequence.launched(Nanos(turn * 5_000), Kernel(turn % 165)));
    measure("asking again when the next launch comes", |turn| {
        black_box(sequence.next(Nanos(10_000 * 5_000 + jitter(turn))));
    });

    let mut busy = Box::new(Busy::<512>::new());
    (0..10_000).for_each(|turn| busy.took(Kernel(turn % 165), Nanos(4_000 + jitter(turn))));
    measure("a launch that adds to what is in flight", |turn| {
        busy.launched(Nanos(turn * 5_000), Kernel(turn % 165));
        black_box(busy.until());
    });

    let mut arrivals = Arrivals::new();
    measure("a request that comes and goes, with a question", |turn| {
        let now = Nanos(turn * 1_000_000 + jitter(turn) * 100);
        arrivals.began(now);
        arrivals.ended(now + Nanos(300_000));
        black_box(arrivals.next(now + Nanos(400_000)));
    });

    let mut recent = Recent::<29>::new();
    measure("a span among the last 29", |turn| recent.observe(Nanos(jitter(turn))));
    let mut sketch = Sketch::remembering(4_096);
    measure("a span in a sketch, halvings included", |turn| sketch.observe(Nanos(jitter(turn) << 10)));
    measure("a quantile of a sketch", |_| _ = black_box(sketch.quantile(990)));
    let mut certificate = Certificate::assuming(Nanos::from_millis(1));
    measure("a stop held against its certificate", |turn| _ = certificate.observe(Nanos(jitter(turn))));
}
