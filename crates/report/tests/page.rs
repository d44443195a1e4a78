//! What a report says, whatever the archive.

mod common;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use common::{hostile, page, swept};
use results::{Archive, Figures, sample};

/// Most tests look at the same two pages.
static SAMPLE: LazyLock<String> = LazyLock::new(|| page(&sample::archive()));
static SWEPT: LazyLock<String> = LazyLock::new(|| page(&swept()));

/// Everything between two marks, each time.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    text.split(open).skip(1).filter_map(|rest| rest.split(close).next()).collect()
}

#[test]
fn everything_is_inside() {
    let page = &*SAMPLE;
    for asset in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(asset), "{asset} in the page");
    }
    assert_eq!(between(page, "<link", ">").len(), 1, "only the icon, which is empty");
}

#[test]
fn every_link_has_its_place_and_every_place_its_own_name() {
    let page = &*SWEPT;
    let ids = between(page, " id=\"", "\"");
    let unique: BTreeSet<_> = ids.iter().collect();
    assert_eq!(ids.len(), unique.len());
    for link in between(page, "href=\"#", "\"") {
        assert!(unique.contains(&link), "#{link} leads nowhere");
    }
}

/// A class that is not in the stylesheet is a typing mistake, or two that were glued together.
#[test]
fn every_class_has_a_rule() {
    let style = between(&SWEPT, "<style>", "</style>")[0];
    let script = between(&SWEPT, "<script>", "</script>")[0];
    let body = SWEPT.split("</style>").nth(1).expect("a body");
    let classes: BTreeSet<&str> =
        between(body, " class=\"", "\"").into_iter().flat_map(str::split_whitespace).collect();
    assert!(classes.len() > 30, "{classes:?}");
    for class in classes {
        let rule = |follows: char| style.contains(&format!(".{class}{follows}"));
        let used = script.contains(&format!(".{class}\""));
        assert!(used || [' ', ',', '{', '.', ':', '>'].into_iter().any(rule), "{class} has no rule");
    }
}

/// Each policy is a mode of its own: with its box in the legend, its name, and a rule for every class.
#[test]
fn policies_can_be_told_apart_and_taken_out() {
    let page = page(&sample::policies());
    let ids = between(&page, " id=\"", "\"");
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{ids:?}");
    let style = between(&page, "<style>", "</style>")[0];
    for (slug, label) in [
        ("ebb-isolated-strict", "ebb, isolated: strict"),
        ("ebb-shared-slo-told-1_2", "ebb, shared: slo, told 1.2× alone"),
    ] {
        assert!(ids.contains(&format!("show-{slug}").as_str()), "{ids:?}");
        assert!(style.contains(&format!(".m-{slug}{{color:")) && page.contains(label), "{slug}");
    }
    for said in
        ["In the better domain of each scenario", "ebb, better domain: strict", "told ebb an SLO of 2.5"]
    {
        assert!(page.contains(said), "{said}");
    }
    let text = report::markdown(&sample::policies(), &Figures::of(&sample::policies()));
    let line = text.lines().find(|line| line.starts_with("| ebb, better domain: strict |")).expect("a line");
    assert!(line.contains("×"), "{line}");
    assert!(text.contains("| disb-a/disb-a | strict | shared |"), "{text}");
    assert!(text.contains("| tally/bert-whisper | slo, told 1.2× alone | isolated |"), "{text}");
    // Where ebb was measured as it comes, and in one domain, nothing is said about a choice.
    assert!(!SAMPLE.contains("better domain") && !SAMPLE.contains("told ebb"));
}

/// Where requests are as if alone in neither domain, what best-effort work gets does not count.
#[test]
fn the_better_way_puts_requests_first() {
    let mut archive = sample::policies();
    let slower = archive.runs.iter_mut().filter(|run| {
        run.scenario == "vgg19-whisper" && run.mode.starts_with("ebb") && run.mode != "ebb-shared:slo:1.2x"
    });
    for training in slower.flat_map(|run| &mut run.tenants).filter(|tenant| tenant.name == "whisper") {
        training.start_us.iter_mut().chain(&mut training.end_us).for_each(|time| *time += *time / 20);
    }
    let text = report::markdown(&archive, &Figures::of(&archive));
    for row in [
        "| tally/vgg19-whisper | strict | isolated |",
        "| tally/vgg19-whisper | slo, told 1.2× alone | isolated |",
        "| tally/vgg19-whisper | best: strict | isolated |",
        // Neither domain keeps the SLO here, and the isolated one has less p99.
        "| tally/bert-resnet152 | best: strict | isolated |",
    ] {
        assert!(text.contains(row), "{row}\n{text}");
    }
    let pairs = text.split("### All 10 pairs").nth(1).expect("a table over all pairs");
    assert!(pairs.contains("| ebb, best policy and domain | 10 |"), "{pairs}");
    let page = page(&archive);
    let better = between(&page, "In the better domain of each scenario", "</table>")[0];
    assert!(better.contains("All 10 pairs") && better.contains("best policy and domain"), "{better}");
    // Pairs that are all of the only suite are not summed up twice.
    archive.scenarios.retain(|scenario| scenario.suite == "tally");
    assert!(!report::markdown(&archive, &Figures::of(&archive)).contains("### All"));
}

#[test]
fn runs_that_nobody_made_are_said() {
    let mut archive = sample::archive();
    let gone = archive.scenarios[0].clone();
    archive.runs.retain(|run| (&run.suite, run.mode.as_str()) != (&gone.suite, "timeslice"));
    let page = page(&archive);
    let missing = between(&page, "id=\"missing\"", "</section>")[0];
    assert!(missing.contains(&format!("{}/{}: time-slicing", gone.suite, gone.name)), "{missing}");
}

#[test]
fn what_is_missing_is_said() {
    let page = &*SAMPLE;
    for said in
        ["no nvidia-cuda-mps-control", "stress/crowd/streams/1", "out of memory", "not built: name it"]
    {
        assert!(page.contains(said), "{said}");
    }
}

#[test]
fn names_from_outside_stay_text() {
    let archive = hostile();
    let page = page(&archive);
    assert_eq!(page.matches("<script").count(), 1, "our own script and no other");
    assert_eq!(page.matches("</script").count(), 1);
    assert!(!page.contains("<img"));
    let figures = Figures::of(&archive);
    let picture = report::picture(&archive, &figures).expect("there are pairs");
    assert!(!picture.contains("<script") && !picture.contains("<img"));
    let summary = report::markdown(&archive, &figures);
    assert!(!summary.contains("<script") && !summary.contains("<img"));
}

#[test]
fn overload_is_a_word_and_in_no_mean() {
    let page = &*SWEPT;
    assert!(page.contains(">overload</abbr>"), "a table says it");
    for nonsense in ["NaN", ">inf", "∞×"] {
        assert!(!page.contains(nonsense), "{nonsense}");
    }
}

#[test]
fn a_sweep_is_drawn_over_its_load() {
    assert!(SWEPT.contains("Over the load") && SWEPT.contains("load of the latency tenant"));
    assert!(!SAMPLE.contains("Over the load"));
}

#[test]
fn an_archive_of_next_to_nothing_still_makes_a_page() {
    let whole = sample::archive();
    let none = Archive { runs: Vec::new(), ..whole.clone() };
    let only_alone = Archive {
        runs: whole.runs.iter().filter(|run| run.mode == "alone").cloned().collect(),
        ..whole.clone()
    };
    let no_alone = Archive {
        runs: whole.runs.iter().filter(|run| run.mode != "alone").cloned().collect(),
        ..whole.clone()
    };
    let nothing_served = {
        let mut archive = whole.clone();
        for tenant in archive.runs.iter_mut().flat_map(|run| &mut run.tenants) {
            tenant.start_us.clear();
            tenant.end_us.clear();
            tenant.checks.clear();
        }
        archive
    };
    for archive in [Archive::default(), none, only_alone, no_alone, nothing_served] {
        let figures = Figures::of(&archive);
        let page = report::html(&archive, &figures);
        assert!(page.ends_with("</html>"));
        assert!(!page.contains("NaN"), "a number that is none");
        report::markdown(&archive, &figures);
        report::picture(&archive, &figures);
    }
}

/// Tags must be balanced, or browsers mend the page into something else.
#[test]
fn every_element_that_is_opened_is_closed() {
    let page = &*SWEPT;
    let body = page.split("</style>").nth(1).and_then(|rest| rest.split("<script>").next()).expect("a body");
    for element in
        ["section", "details", "table", "tr", "td", "th", "svg", "g", "figure", "div", "text", "path"]
    {
        let opened =
            body.matches(&format!("<{element} ")).count() + body.matches(&format!("<{element}>")).count();
        assert_eq!(opened, body.matches(&format!("</{element}>")).count(), "{element}");
    }
}
