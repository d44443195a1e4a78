//! `ebb lab report`: results as a page to read, a summary for a repository, a picture for a README.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use results::{Archive, Figures};

use super::arguments::ReportOptions;

/// What the page is called unless somebody says otherwise; it lies beside the results.
const PAGE: &str = "report.html";

pub fn run(options: &ReportOptions) -> Result<ExitCode> {
    let archive = Archive::read(&options.results)?;
    ensure!(
        !archive.scenarios.is_empty(),
        "nothing was measured yet: the results name no scenario (see `ebb lab run --help`)"
    );
    let figures = Figures::of(&archive);
    if options.summary {
        print!("{}", report::summary(&archive, &figures));
    }
    let page = options.out.clone().or_else(|| (!options.summary).then(|| beside(&options.results[0])));
    if let Some(page) = page {
        write(&page, &report::html(&archive, &figures))?;
    }
    if let Some(path) = &options.markdown {
        write(path, &report::markdown(&archive, &figures))?;
    }
    if let Some(path) = &options.picture {
        let picture = report::picture(&archive, &figures);
        let picture = picture
            .context("no pair of a latency and a best-effort tenant was measured, so there is no picture")?;
        write(path, &picture)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn beside(results: &Path) -> PathBuf {
    if results.is_dir() { results.join(PAGE) } else { results.with_file_name(PAGE) }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use results::{Writer, sample};

    use super::*;

    fn archive() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Writer::open(folder.path()).unwrap();
        sample::records().iter().for_each(|record| writer.append(record).unwrap());
        folder
    }

    fn options(folder: &Path) -> ReportOptions {
        ReportOptions {
            results: vec![folder.to_owned()],
            out: None,
            markdown: None,
            picture: None,
            summary: false,
        }
    }

    #[test]
    fn a_page_lies_beside_its_results_and_the_rest_where_it_was_wanted() {
        let folder = archive();
        let (summary, picture) = (folder.path().join("s.md"), folder.path().join("p.svg"));
        let wanted = ReportOptions {
            markdown: Some(summary.clone()),
            picture: Some(picture.clone()),
            ..options(folder.path())
        };
        run(&wanted).unwrap();
        let page = fs::read_to_string(folder.path().join(PAGE)).unwrap();
        assert!(page.starts_with("<!DOCTYPE html>") && page.contains("made up"));
        assert!(fs::read_to_string(summary).unwrap().contains("## Headline"));
        assert!(fs::read_to_string(picture).unwrap().starts_with("<svg"));
    }

    #[test]
    fn a_summary_is_said_and_not_written() {
        let folder = archive();
        run(&ReportOptions { summary: true, ..options(folder.path()) }).unwrap();
        assert!(!folder.path().join(PAGE).exists());
        let page = folder.path().join("also.html");
        run(&ReportOptions { summary: true, out: Some(page.clone()), ..options(folder.path()) }).unwrap();
        assert!(page.exists());
    }

    #[test]
    fn a_summary_has_a_line_for_each_mode_and_policy_and_says_which_domain_is_better() {
        let archive = sample::policies();
        insta::assert_snapshot!(report::summary(&archive, &Figures::of(&archive)));
    }

    #[test]
    fn no_results_are_an_error_that_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let error = run(&options(folder.path())).unwrap_err().to_string();
        assert!(error.contains("results.jsonl"), "{error}");
        let folder = archive();
        let nowhere = ReportOptions { out: Some("/nowhere/at/all.html".into()), ..options(folder.path()) };
        let error = run(&nowhere).unwrap_err().to_string();
        assert!(error.contains("cannot write /nowhere/at/all.html"), "{error}");
    }
}
