//! `ebb lab check`: every mistake in scenario files, as compilers tell them.

use std::process::ExitCode;

use anyhow::Result;
use scenario::{Error, Suite};

use super::arguments::CheckOptions;

pub fn run(options: &CheckOptions) -> Result<ExitCode> {
    let mut right = true;
    for path in &options.paths {
        match Suite::at(path) {
            Ok(suite) => {
                let count = suite.scenarios.len();
                println!("{}: {count} scenario{}", path.display(), if count == 1 { "" } else { "s" });
            }
            Err(error) => {
                right = false;
                // These lines begin with a file and a line, which editors understand; nothing may stand before.
                match error {
                    Error::Wrong(mistakes) => mistakes.iter().for_each(|mistake| eprintln!("{mistake}")),
                    other => eprintln!("ebb: {other}"),
                }
            }
        }
    }
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
