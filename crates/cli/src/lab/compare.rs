//! `ebb lab compare`: what got better or worse between two sets of results.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use model::Nanos;
use results::compare::{CONFIDENCE, Change, Comparison, FLOOR, FLOOR_OF_ONE, Figure, Verdict};
use results::{Archive, Estimate};

use super::arguments::CompareOptions;

/// The status when there is nothing to say for want of results: a script must be able to tell it from a regression.
const NOT_COMPARED: u8 = 2;

pub fn run(options: &CompareOptions) -> ExitCode {
    match compare(&options.before, &options.after) {
        Ok(comparison) => {
            print!("{}", page(&comparison, options.all));
            ExitCode::from(u8::from(comparison.count(Verdict::Worse) > 0))
        }
        Err(error) => {
            eprintln!("ebb: {error:#}");
            ExitCode::from(NOT_COMPARED)
        }
    }
}

fn compare(before: &PathBuf, after: &PathBuf) -> Result<Comparison> {
    let (before, after) = (Archive::read(&[before])?, Archive::read(&[after])?);
    let comparison = Comparison::of(&before, &after);
    anyhow::ensure!(!comparison.changes.is_empty(), "they have nothing in common to compare");
    Ok(comparison)
}

fn page(comparison: &Comparison, all: bool) -> String {
    let shown = |change: &&Change| all || change.verdict != Verdict::Unchanged;
    let mut rows: Vec<[String; 8]> = comparison.changes.iter().filter(shown).map(row).collect();
    let mut page = String::new();
    if !rows.is_empty() {
        let interval = format!("{:.0}% interval", CONFIDENCE * 100.0);
        let head = ["scenario", "mode", "tenant", "figure", "before", "after", "change", &interval];
        rows.insert(0, head.map(str::to_owned));
        page = table(&rows) + "\n";
    }
    let notes = [
        ("only before", &comparison.only_before),
        ("only after", &comparison.only_after),
        ("not compared, the scenario was changed", &comparison.redefined),
        ("note", &comparison.remarks),
    ];
    for (what, names) in notes {
        for name in names {
            page += &format!("{what}: {name}\n");
        }
    }
    page + &counts(comparison)
}

fn counts(comparison: &Comparison) -> String {
    let [better, worse, unchanged] =
        [Verdict::Better, Verdict::Worse, Verdict::Unchanged].map(|verdict| comparison.count(verdict));
    format!(
        "{better} better, {worse} worse, {unchanged} unchanged within noise \
         (a change is more than {:.0}%, or {:.0}% where something was run only once)\n",
        FLOOR * 100.0,
        FLOOR_OF_ONE * 100.0
    )
}

fn row(change: &Change) -> [String; 8] {
    let figure = match change.figure {
        Figure::P50 => "p50",
        Figure::P99 => "p99",
        Figure::Attainment => "attainment",
        Figure::Rate => "iterations/s",
    };
    let verdict = match change.verdict {
        Verdict::Better => "  better",
        Verdict::Worse => "  worse",
        Verdict::Unchanged => "",
    };
    let Estimate { value, low, high } = change.ratio;
    [
        format!("{}/{}", change.suite, change.scenario),
        change.mode.clone(),
        change.tenant.clone(),
        figure.to_owned(),
        amount(change.figure, change.before),
        amount(change.figure, change.after),
        percent(value),
        format!("{} to {}{verdict}", percent(low), percent(high)),
    ]
}

fn amount(figure: Figure, value: f64) -> String {
    match figure {
        Figure::P50 | Figure::P99 if value.is_infinite() => "overload".to_owned(),
        Figure::P50 | Figure::P99 => Nanos(value as u64).to_string(),
        Figure::Attainment => format!("{:.2}%", value * 100.0),
        Figure::Rate => format!("{value:.2}"),
    }
}

fn percent(ratio: f64) -> String {
    // Who is out of overload, or in it, has changed by no percentage.
    if ratio.is_infinite() { "∞".to_owned() } else { format!("{:+.1}%", (ratio - 1.0) * 100.0) }
}

/// Names to the left, figures to the right.
fn table(rows: &[[String; 8]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = (0..8)
            .map(|column| match column {
                0..=3 => format!("{:<width$}", row[column], width = width(column)),
                4..=6 => format!("{:>width$}", row[column], width = width(column)),
                _ => row[column].clone(),
            })
            .collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use results::sample;

    use super::*;

    /// The sample, and the same with the time slices of one scenario a good deal longer.
    fn slower() -> Comparison {
        let few = |suite: &str| ["disb-a", "stress"].contains(&suite);
        let mut before = sample::archive();
        before.scenarios.retain(|scenario| few(&scenario.suite));
        before.runs.retain(|run| few(&run.suite));
        let mut after = before.clone();
        after.runs.retain(|run| run.mode != "streams" || run.suite == "disb-a");
        for run in after.runs.iter_mut().filter(|run| run.suite == "disb-a" && run.mode == "timeslice") {
            let due = run.tenants[0].due_us.clone().unwrap();
            for (due, end) in due.iter().zip(&mut run.tenants[0].end_us) {
                *end = due + (*end - due) * 2;
            }
        }
        Comparison::of(&before, &after)
    }

    #[test]
    fn only_what_changed_is_shown_unless_all_is_asked_for() {
        let comparison = slower();
        let (page, whole) = (page(&comparison, false), page(&comparison, true));
        let p99 = page.lines().find(|line| line.contains(" p99 ")).unwrap();
        assert!(
            p99.contains("disb-a/disb-a") && p99.contains("timeslice") && p99.contains("+100.0%"),
            "{page}"
        );
        assert!(p99.ends_with("worse"), "{page}");
        assert!(!page.contains("iterations/s") && whole.contains("iterations/s"));
        assert!(page.contains("only before: stress/crowd, streams, vgg19"), "{page}");
        let (_, counts) = page.trim_end().rsplit_once('\n').unwrap();
        let unchanged = comparison.changes.len() - 3;
        assert!(counts.starts_with(&format!("0 better, 3 worse, {unchanged} unchanged")), "{counts}");
    }

    #[test]
    fn columns_are_aligned() {
        let text = page(&slower(), false);
        let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        let place = lines[0].find("mode").unwrap();
        assert_eq!(lines.len(), 4);
        assert!(lines[1..].iter().all(|line| line[place..].starts_with("timeslice")), "{text}");
    }

    #[test]
    fn overload_is_a_word() {
        assert_eq!(amount(Figure::P99, f64::INFINITY), "overload");
        assert_eq!(amount(Figure::P50, 2_048_000.0), "2048 µs");
        assert_eq!(amount(Figure::Attainment, 0.995), "99.50%");
        assert_eq!(percent(f64::INFINITY), "∞");
        assert_eq!(percent(0.98), "-2.0%");
    }
}
