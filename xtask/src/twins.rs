//! `cargo xtask twins`: kernels of ours, compiled for each architecture, rewritten by the guard and disassembled.
//!
//! The machine code is committed, because tests run where there is no compiler. What the disassembler says of one
//! rewritten kernel is committed too, for people to read and for a change to show. Of all the others it must say what it
//! said before, but for the first instruction and for what is behind the last.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::fetch::Unavailable;
use crate::{compare, fetch, workspace};

const ARCHITECTURES: [&str; 7] = ["80", "86", "89", "90", "90a", "100", "120"];

/// The kernel whose rewritten instructions are committed.
const SHOWN: &str = "plain";

/// Compiles, rewrites and disassembles; with `check`, compares instead of writing.
pub fn run(check: bool) -> Result<()> {
    let folder = workspace::root().join("crates/guard/test_data");
    let nvcc = fetch::fetch(&fetch::TOOLKIT)?.join("nvidia/cu13/bin/nvcc");
    let nvdisasm = fetch::fetch(&fetch::DISASSEMBLER)?.join("nvidia/cu13/bin/nvdisasm");
    if !Command::new("gcc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        bail!(Unavailable("nvcc needs gcc on the PATH to preprocess the kernels".into()));
    }
    for architecture in ARCHITECTURES {
        let twin = twin(&nvcc, &nvdisasm, &folder, architecture);
        let twin = twin.with_context(|| format!("kernels for sm_{architecture}"))?;
        let (cubin, text) = (format!("sm_{architecture}.cubin"), format!("{SHOWN}.sm_{architecture}.sass"));
        if !check {
            fs::write(folder.join(cubin), &twin.image)?;
            fs::write(folder.join(text), &twin.shown)?;
            continue;
        }
        let again = "not what `cargo xtask twins` writes";
        ensure!(fs::read(folder.join(&cubin)).unwrap_or_default() == twin.image, "{cubin} is {again}");
        let committed = fs::read_to_string(folder.join(&text)).unwrap_or_default();
        if let Some(difference) = compare::summary(&text, &committed, &twin.shown) {
            bail!("{text} is {again}:\n{difference}");
        }
    }
    Ok(())
}

struct Twin {
    /// The kernels as compiled.
    image: Vec<u8>,
    /// One of them rewritten, as text.
    shown: String,
}

fn twin(nvcc: &Path, nvdisasm: &Path, folder: &Path, architecture: &str) -> Result<Twin> {
    let scratch = tempfile::tempdir()?;
    let (before, after) = (scratch.path().join("before.cubin"), scratch.path().join("after.cubin"));
    compile(nvcc, folder, architecture, &before)?;
    let image = fs::read(&before)?;
    let rewritten = guard::rewrite_cubin(&image)?;
    fs::write(&after, &rewritten.image)?;
    let (before, after) = (disassemble(nvdisasm, &before)?, disassemble(nvdisasm, &after)?);
    for kernel in &rewritten.kernels {
        let (old, new) = (&before[&kernel.name], &after[&kernel.name]);
        match kernel.verdict {
            guard::Verdict::Refuse(_) => {
                ensure!(instructions(old) == instructions(new), "{} was refused, but changed", kernel.name);
            }
            guard::Verdict::Guard(_) => {
                unmoved(old, new).with_context(|| format!("{}, rewritten", kernel.name))?;
            }
        }
    }
    let verdicts = rewritten.kernels.iter().map(|kernel| format!("// {}: {}\n", kernel.name, kernel.verdict));
    let verdicts: String = verdicts.collect();
    let shown = after.get(SHOWN).context("the kernel to be shown is missing")?.join("\n");
    Ok(Twin { image, shown: format!("{verdicts}\n{shown}\n") })
}

/// The kernel is where it was; a jump has taken the place of its first instruction, which comes later.
fn unmoved(old: &[String], new: &[String]) -> Result<()> {
    let (old, new) = (instructions(old), instructions(new));
    let (first, rest) = old.split_first().context("it has no instructions")?;
    let (jump, behind) = new.split_first().context("it has no instructions any more")?;
    ensure!(jump.contains("BRA"), "it begins with {jump}");
    // It does not let the next launch begin before it has ended.
    let rest: Vec<String> = rest.iter().map(|line| line.replace("PREEXIT", "NOP")).collect();
    ensure!(behind.iter().take(rest.len()).eq(rest.iter()), "its own instructions have changed");
    let what = |line: &str| line.split_once("*/").map_or("", |(_, what)| what).trim().to_owned();
    let again = behind[rest.len()..].iter().filter(|line| what(line) == what(first));
    ensure!(again.count() == 1, "its first instruction is not in the prologue, or is there twice");
    Ok(())
}

/// Instructions without names of places, which are numbered through the file and mean nothing.
fn instructions(lines: &[String]) -> Vec<&str> {
    let instructions = lines.iter().filter(|line| line.starts_with("/*"));
    instructions.map(|line| line.split("`(").next().expect("there is always a first part")).collect()
}

fn compile(nvcc: &Path, folder: &Path, architecture: &str, output: &Path) -> Result<()> {
    let result = Command::new(nvcc)
        .current_dir(folder)
        .env_remove("NVCC_APPEND_FLAGS")
        .env_remove("NVCC_PREPEND_FLAGS")
        .args(["-cubin", &format!("-arch=sm_{architecture}"), "kernels.cu", "-o"])
        .arg(output)
        .output()
        .context("cannot run nvcc")?;
    ensure!(result.status.success(), "nvcc refused it:\n{}", String::from_utf8_lossy(&result.stderr));
    Ok(())
}

/// Instructions of each kernel, a line each, without what fills up the section.
fn disassemble(nvdisasm: &Path, image: &PathBuf) -> Result<BTreeMap<String, Vec<String>>> {
    let result = Command::new(nvdisasm).arg("-c").arg(image).output().context("cannot run nvdisasm")?;
    ensure!(result.status.success(), "nvdisasm refused it:\n{}", String::from_utf8_lossy(&result.stderr));
    Ok(kernels(&String::from_utf8_lossy(&result.stdout)))
}

fn kernels(text: &str) -> BTreeMap<String, Vec<String>> {
    let mut kernels = BTreeMap::<String, Vec<String>>::new();
    let mut current = None;
    for line in text.lines() {
        if let Some(rest) = line.trim_start().strip_prefix(".section\t.text.") {
            let name = rest.split(',').next().expect("there is always a first part");
            current = Some(kernels.entry(name.to_owned()).or_default());
            continue;
        }
        let line = line.trim();
        let wanted = line.starts_with("/*") || line.starts_with(".L_x_");
        if let Some(lines) = current.as_mut().filter(|_| wanted) {
            lines.push(tidy(line));
        }
    }
    for lines in kernels.values_mut() {
        while lines.last().is_some_and(|line| line.ends_with("NOP;") || line.starts_with(".L_x_")) {
            lines.pop();
        }
    }
    kernels
}

/// One blank where there are many.
fn tidy(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ").replace(" ;", ";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn instructions_are_found_by_kernel() {
        let text = "\t.section\t.text.a,\"ax\",@progbits\na:\n  /*0000*/   LDC  R1 ;\n.L_x_1:\n /*0010*/ EXIT ;\n /*0020*/ NOP;\n.L_x_2:\n";
        let found = kernels(text);
        assert_eq!(found["a"], ["/*0000*/ LDC R1;", ".L_x_1:", "/*0010*/ EXIT;"]);
    }

    #[test]
    fn a_kernel_may_only_change_in_front_and_behind() {
        let old = lines("/*0000*/ LDC R1;\n/*0010*/ BRA `(.L_x_1);");
        let good = "/*0000*/ BRA `(.L_x_2);\n/*0010*/ BRA `(.L_x_3);\n/*0080*/ LDC R1;";
        unmoved(&old, &lines(good)).unwrap();
        assert!(unmoved(&old, &lines(&good.replace("0010*/ BRA", "0010*/ JMP"))).is_err());
        assert!(unmoved(&old, &lines(&good.replace("/*0080*/ LDC R1;", "/*0080*/ NOP;"))).is_err());
        assert!(unmoved(&old, &old).is_err());
        let early = lines("/*0000*/ LDC R1;\n/*0010*/ @P0 PREEXIT;\n/*0020*/ EXIT;");
        let held = "/*0000*/ BRA `(.L_x_2);\n/*0010*/ @P0 NOP;\n/*0020*/ EXIT;\n/*0080*/ LDC R1;";
        unmoved(&early, &lines(held)).unwrap();
        assert!(unmoved(&early, &lines(&held.replace("NOP", "PREEXIT"))).is_err());
    }
}
