//! `cargo xtask kernels`: the conformance suite's kernels, from CUDA C++ to PTX.
//!
//! Tests run where there is no compiler for CUDA, so the PTX is committed beside its source. Each source gives
//! one file per target and optimisation level. A source may say how it wants to be compiled in the comment
//! which opens it:
//!
//! ```text
//! // nvcc: -rdc=true
//! // targets: compute_90
//! ```
//!
//! The output depends on the source, on these flags and on the pinned compiler only. nvcc would also let the
//! source's absolute path into the names of static variables; it is told a relative one. In a file without any
//! external symbol it uses the process number as well, so every file must define an `extern "C"` kernel.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};

use crate::fetch::Unavailable;
use crate::{compare, fetch, workspace};

const TARGETS: [&str; 2] = ["compute_80", "compute_90"];

/// What the optimiser is told: nothing, which is its best, or to leave the code as written.
const LEVELS: [(&str, &[&str]); 2] = [("O3", &[]), ("O0", &["-Xcicc", "-O0"])];

/// One file to be made.
struct Task {
    source: String,
    output: String,
    flags: Vec<String>,
}

/// Compiles every kernel, or those `named`; with `check`, compares instead of writing.
pub fn run(check: bool, named: &[String]) -> Result<()> {
    let folder = workspace::root().join("conformance/kernels");
    let ptx = folder.join("ptx");
    let tasks = tasks(&folder, named)?;
    let nvcc = fetch::fetch(&fetch::TOOLKIT)?.join("nvidia/cu13/bin/nvcc");
    if !Command::new("gcc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        bail!(Unavailable("nvcc needs gcc on the PATH to preprocess the kernels".into()));
    }
    let texts = compile_all(&nvcc, &folder, &tasks)?;
    if !check {
        fs::create_dir_all(&ptx)?;
        for (task, text) in tasks.iter().zip(&texts) {
            fs::write(ptx.join(&task.output), text)?;
        }
        println!("{} files in conformance/kernels/ptx", texts.len());
    }
    if named.is_empty() {
        tidy(check, &ptx, &tasks)?;
    }
    let differences = tasks.iter().zip(&texts).filter_map(|(task, text)| {
        let committed = fs::read_to_string(ptx.join(&task.output)).unwrap_or_default();
        compare::summary(&format!("ptx/{}", task.output), &committed, text)
    });
    let differences: Vec<String> = differences.collect();
    if !differences.is_empty() {
        bail!("the kernels are not what `cargo xtask kernels` writes:\n{}", differences.join("\n"));
    }
    Ok(())
}

/// PTX whose source is gone must go too.
fn tidy(check: bool, ptx: &Path, tasks: &[Task]) -> Result<()> {
    let wanted: BTreeSet<&str> = tasks.iter().map(|task| task.output.as_str()).collect();
    for entry in fs::read_dir(ptx).with_context(|| format!("cannot read {}", ptx.display()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.ends_with(".ptx") || wanted.contains(name.as_str()) {
            continue;
        }
        ensure!(!check, "ptx/{name} has no source any more");
        fs::remove_file(&path)?;
    }
    Ok(())
}

fn tasks(folder: &Path, named: &[String]) -> Result<Vec<Task>> {
    let mut sources: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "cu"));
    sources.sort();
    let mut tasks = Vec::new();
    for source in &sources {
        let stem = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if named.is_empty() || named.contains(&stem) {
            tasks.extend(tasks_of(&stem, &fs::read_to_string(source)?)?);
        }
    }
    ensure!(!tasks.is_empty(), "no such kernels in {}", folder.display());
    Ok(tasks)
}

fn tasks_of(stem: &str, text: &str) -> Result<Vec<Task>> {
    let wishes = Wishes::read(text);
    let mut tasks = Vec::new();
    for target in &wishes.targets {
        ensure!(TARGETS.contains(&target.as_str()), "{stem}.cu asks for the unknown target {target}");
        for (level, options) in LEVELS {
            let mut flags = vec![format!("-arch={target}")];
            flags.extend(options.iter().map(|option| option.to_string()));
            flags.extend(wishes.flags.iter().cloned());
            let output = format!("{stem}.{target}.{level}.ptx");
            tasks.push(Task { source: format!("{stem}.cu"), output, flags });
        }
    }
    Ok(tasks)
}

/// What a source says of itself in its opening comment.
#[derive(Debug, PartialEq)]
struct Wishes {
    flags: Vec<String>,
    targets: Vec<String>,
}

impl Wishes {
    fn read(text: &str) -> Wishes {
        let mut wishes = Wishes { flags: Vec::new(), targets: TARGETS.map(str::to_owned).to_vec() };
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        for line in text.lines().map_while(|line| line.strip_prefix("//")) {
            if let Some(flags) = line.trim_start().strip_prefix("nvcc:") {
                wishes.flags = words(flags);
            } else if let Some(targets) = line.trim_start().strip_prefix("targets:") {
                wishes.targets = words(targets);
            }
        }
        wishes
    }
}

/// Compiles on every core; a compilation takes about a second and most have nothing to wait for.
fn compile_all(nvcc: &Path, folder: &Path, tasks: &[Task]) -> Result<Vec<String>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<String>>>> = tasks.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |cores| cores.get()) {
            scope.spawn(|| {
                while let Some(index) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&i| i < tasks.len())
                {
                    let result = compile(nvcc, folder, &tasks[index]);
                    *results[index].lock().expect("nobody panics with the lock") = Some(result);
                }
            });
        }
    });
    let taken = |slot: Mutex<Option<Result<String>>>| {
        slot.into_inner().expect("nobody panics with the lock").expect("every task was taken by a thread")
    };
    results.into_iter().map(taken).collect()
}

fn compile(nvcc: &Path, folder: &Path, task: &Task) -> Result<String> {
    let scratch = tempfile::tempdir()?;
    let output = scratch.path().join("out.ptx");
    let result = Command::new(nvcc)
        .current_dir(folder)
        .env_remove("NVCC_APPEND_FLAGS")
        .env_remove("NVCC_PREPEND_FLAGS")
        .args(["-ptx", "-Xcicc", "--orig_src_path_name", "-Xcicc", &task.source])
        .args(&task.flags)
        .arg(&task.source)
        .arg("-o")
        .arg(&output)
        .output()
        .context("cannot run nvcc")?;
    if !result.status.success() {
        bail!("nvcc refused {}:\n{}", task.output, String::from_utf8_lossy(&result.stderr));
    }
    Ok(fs::read_to_string(&output)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_gives_a_file_per_target_and_level() {
        let outputs: Vec<_> =
            tasks_of("sum", "// Sums.\n").unwrap().into_iter().map(|task| task.output).collect();
        let expected = [
            "sum.compute_80.O3.ptx",
            "sum.compute_80.O0.ptx",
            "sum.compute_90.O3.ptx",
            "sum.compute_90.O0.ptx",
        ];
        assert_eq!(outputs, expected);
    }

    #[test]
    fn the_opening_comment_may_ask_for_more() {
        let wishes = Wishes::read(
            "// What it is.\n// nvcc: --std=c++20 -rdc=true\n// targets: compute_90\n\nint x;\n",
        );
        assert_eq!(wishes.flags, ["--std=c++20", "-rdc=true"]);
        assert_eq!(wishes.targets, ["compute_90"]);
    }

    #[test]
    fn later_comments_are_only_comments() {
        assert!(Wishes::read("// Title.\n\n// nvcc: -rdc=true\n").flags.is_empty());
    }

    #[test]
    fn an_unknown_target_is_refused() {
        assert!(tasks_of("x", "// targets: compute_20\n").is_err());
    }
}
