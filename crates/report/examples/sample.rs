//! Writes the report of the made-up archive, to look at while working on the report's looks.

fn main() -> std::io::Result<()> {
    let archive = results::sample::archive();
    let figures = results::Figures::of(&archive);
    let path = std::env::args().nth(1).unwrap_or_else(|| "sample.html".into());
    std::fs::write(path, report::html(&archive, &figures))
}
