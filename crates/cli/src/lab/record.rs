//! `ebb lab record`: which kernels workloads consist of, taken on a card and written as profiles.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use lab::crew::Stop;
use lab::profile::Recorder;
use scenario::profile::named;
use scenario::{Device, Workload};

use super::arguments::RecordOptions;
use crate::run::folder::RunFolder;

pub fn run(options: &RecordOptions) -> Result<ExitCode> {
    if options.device == Device::Soft {
        bail!("there is nothing to learn from the software GPU: it replays what was recorded on a card");
    }
    let read = |word: &String| named(word).map_err(anyhow::Error::msg);
    let workloads: Vec<Workload> = options.workloads.iter().map(read).collect::<Result<_>>()?;
    let out = &options.out;
    std::fs::create_dir_all(out).with_context(|| format!("cannot make the folder {}", out.display()))?;
    let stop = Stop::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let number = usize::try_from(signal).context("signals have small numbers")?;
        signal_hook::flag::register_usize(signal, stop.word(), number)?;
    }
    let folder = RunFolder::create()?;
    let bar = bar(workloads.len() as u64);
    let mut failed = 0;
    for workload in &workloads {
        let name = workload.id();
        bar.set_message(name.clone());
        let recorder = Recorder {
            python: options.python.clone(),
            folder: folder.path().join("record"),
            command: format!("ebb lab record {name}"),
        };
        let begin = Instant::now();
        let file = out.join(format!("{name}.json"));
        let made = recorder.record(workload, &stop).map_err(anyhow::Error::from).and_then(|profile| {
            std::fs::write(&file, profile.to_string())
                .with_context(|| format!("cannot write {}", file.display()))?;
            Ok(profile.parts.iter().map(|part| part.kernels.len()).sum::<usize>())
        });
        if let Some(signal) = stop.signal() {
            bar.finish_and_clear();
            return Ok(ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX)));
        }
        bar.suspend(|| match made {
            Ok(kernels) => {
                println!(
                    "{name}  {kernels} kernels  {:.0} s  {}",
                    begin.elapsed().as_secs_f64(),
                    file.display()
                );
            }
            Err(error) => {
                failed += 1;
                eprintln!("ebb: {error:#}");
            }
        });
        bar.inc(1);
    }
    bar.finish_and_clear();
    if failed > 0 {
        bail!("{failed} of {} could not be recorded", workloads.len());
    }
    Ok(ExitCode::SUCCESS)
}

fn bar(length: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("[{bar:30}] {pos}/{len}  {elapsed}  {msg}");
    let bar = ProgressBar::new(length);
    bar.set_style(style.expect("the template is valid").progress_chars("=> "));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
