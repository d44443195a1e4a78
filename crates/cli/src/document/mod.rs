//! The program about itself: version, completions, manual, reference.

mod reference;

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::arguments::{Arguments, Output};
use crate::stdio;

pub fn version(output: Output) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    match output {
        Output::Text => println!("ebb {version}"),
        Output::Json => println!("{{\"name\":\"ebb\",\"version\":\"{version}\"}}"),
    }
    Ok(())
}

pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "ebb", &mut script);
    stdio::put_bytes(&script);
    Ok(())
}

pub fn manual(folder: Option<&Path>, markdown: bool) -> Result<()> {
    let command = Arguments::command();
    if markdown {
        print!("{}", reference::markdown(command));
        return Ok(());
    }
    let Some(folder) = folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page).context("cannot make the manual page")?;
        stdio::put_bytes(&page);
        return Ok(());
    };
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("cannot write manual pages into {}", folder.display()))
}
