//! How fast PTX is read: `cargo run --release -p ptx --example speed -- big.ptx`.

use std::time::Instant;

fn main() -> Result<(), std::io::Error> {
    for path in std::env::args().skip(1) {
        let text = std::fs::read_to_string(&path)?;
        let megabytes = text.len() as f64 / 1e6;
        let rate = |run: &dyn Fn()| {
            let best = (0..10).map(|_| {
                let start = Instant::now();
                run();
                start.elapsed()
            });
            megabytes / best.min().unwrap_or_default().as_secs_f64()
        };
        let parsed = ptx::parse(text.as_str());
        println!(
            "{path}: {megabytes:.2} MB, {} errors; MB/s: tokens {:.0}, parse {:.0}, print {:.0}",
            parsed.errors.len(),
            rate(&|| {
                std::hint::black_box(ptx::tokens(&text).count());
            }),
            rate(&|| {
                std::hint::black_box(ptx::parse(text.as_str()));
            }),
            rate(&|| {
                std::hint::black_box(parsed.module.print());
            }),
        );
    }
    Ok(())
}
