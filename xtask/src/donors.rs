//! `cargo xtask donors`: the guard's prologues, from PTX to tables of machine code.
//!
//! A donor is compiled for each architecture, several times over: with parameters of different lengths before the
//! control words. The results must be equal but for the offsets at which control words are read, and these must differ
//! by exactly the difference of the lengths, at a fixed bit of the instruction. Then one result and the list of those
//! instructions stand for parameters of any length. An architecture for which it is not so has no prologue.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use cubin::kernel::Description;
use guard::machine::encoding::{Generation, WORD_BYTES, Word, opcode, opcode_of, waiting_for_all};

use crate::{compare, fetch, workspace};

/// An architecture with a table, and those for which compilation must give the same.
struct Architecture {
    name: &'static str,
    same: &'static [&'static str],
    generation: Generation,
    /// Bytes of parameters. Before `sm_90`, what goes beyond the first 4096 lies elsewhere in the constant bank.
    most_parameter_bytes: u32,
}

const fn architecture(
    name: &'static str,
    same: &'static [&'static str],
    generation: Generation,
    most_parameter_bytes: u32,
) -> Architecture {
    Architecture { name, same, generation, most_parameter_bytes }
}

const ARCHITECTURES: [Architecture; 5] = [
    architecture("80", &[], Generation::Ampere, 4096),
    architecture("86", &["88", "89"], Generation::Ampere, 4096),
    architecture("90", &["90a"], Generation::Hopper, 32764),
    architecture("100", &["100a", "103", "103a"], Generation::Hopper, 32764),
    architecture("120", &["120a", "121", "121a"], Generation::Hopper, 32764),
];

/// Bytes of the control words, and of the parameters before them in the table that is kept.
const CONTROL: u32 = 32;
const PAD: u32 = 8;

/// `nanosleep` of these marks the places where the kernel begins; the second becomes a jump to the first.
const END: u64 = 54321;
const OTHER_END: u64 = 54322;

const NOP: u64 = 0x918;
/// `LDC`, `ULDC`, `LDCU`, and how they say how much they load.
const CONSTANT_LOADS: [u64; 3] = [0xb82, 0xab9, 0x7ac];
const FOUR_BYTES: u64 = 4;
const EIGHT_BYTES: u64 = 5;

/// Compiles the prologues; with `check`, compares instead of writing.
pub fn run(check: bool) -> Result<()> {
    let guard = workspace::root().join("crates/guard");
    let source = fs::read_to_string(guard.join("donors/prologue.ptx"))?;
    let ptxas = fetch::fetch(&fetch::TOOLKIT)?.join("nvidia/cu13/bin/ptxas");
    let data = guard.join("src/prologue/data");
    let mut files = vec![(data.join("mod.rs"), contents())];
    for architecture in &ARCHITECTURES {
        let table = table(&ptxas, &source, architecture);
        let table = table.with_context(|| format!("the donor for sm_{}", architecture.name))?;
        files.push((data.join(format!("sm_{}.rs", architecture.name)), table));
    }
    if !check {
        fs::create_dir_all(&data)?;
        return files.iter().try_for_each(|(path, text)| Ok(fs::write(path, text)?));
    }
    let differences = files.iter().filter_map(|(path, text)| {
        let committed = fs::read_to_string(path).unwrap_or_default();
        let name = path.strip_prefix(&guard).unwrap_or(path).display().to_string();
        compare::summary(&name, &committed, text)
    });
    let differences: Vec<String> = differences.collect();
    ensure!(
        differences.is_empty(),
        "the prologues are not what `cargo xtask donors` writes:\n{}",
        differences.join("\n")
    );
    Ok(())
}

/// A compiled donor.
struct Donor {
    words: Vec<Word>,
    registers: u32,
    barriers: u8,
    parameter_base: u32,
}

fn table(ptxas: &Path, source: &str, architecture: &Architecture) -> Result<String> {
    let donor = compile(ptxas, source, architecture.name, PAD)?;
    for same in architecture.same {
        let other = compile(ptxas, source, same, PAD)?;
        ensure!(other.words == donor.words, "compiled for sm_{same} it is not the same");
    }
    // All are as far from a multiple of 16 as the first: at other offsets ptxas may choose other instructions, as good.
    let most = (architecture.most_parameter_bytes - CONTROL - PAD) / 16 * 16 + PAD;
    let mut reads = None;
    for pad in [24, 1032, most] {
        let other = compile(ptxas, source, architecture.name, pad)?;
        ensure!(other.parameter_base == donor.parameter_base, "parameters begin elsewhere");
        let found = differences(&donor.words, &other.words, u64::from(pad - PAD))?;
        ensure!(reads.is_none_or(|reads| reads == found), "other words differ with {pad} bytes");
        reads = Some(found);
    }
    print(&finish(donor, architecture.generation, reads.expect("several lengths were tried"))?, architecture)
}

/// Which instructions differ, each with the bit from which on the difference is `distance`.
fn differences(words: &[Word], others: &[Word], distance: u64) -> Result<Vec<(usize, u32)>> {
    ensure!(words.len() == others.len(), "the number of instructions depends on the parameters");
    let differing = words.iter().zip(others).enumerate().filter(|(_, (word, other))| word != other);
    let bits = differing.map(|(index, (word, other))| {
        let bit = [37, 38].into_iter().find(|bit| other[0].wrapping_sub(word[0]) == distance << bit);
        let bit = bit.filter(|_| word[1] == other[1] && at_most_eight_bytes(*word));
        Ok((index, bit.with_context(|| format!("instruction {index} is {word:x?} or {other:x?}"))?))
    });
    bits.collect()
}

/// Offsets of control words are multiples of 8. A load of 16 bytes would want more than that.
fn at_most_eight_bytes(word: Word) -> bool {
    let size = word[1] >> 9 & 7;
    !CONSTANT_LOADS.contains(&opcode_of(word)) || [FOUR_BYTES, EIGHT_BYTES].contains(&size)
}

/// What goes into the table.
struct Table {
    donor: Donor,
    reads: Vec<(usize, u32)>,
    end: usize,
    exits: Vec<usize>,
}

/// Takes the first instruction away, which sets the stack pointer and is the kernel's business; turns the second end
/// into a jump to the first; and leaves out what lies behind the last instruction.
fn finish(mut donor: Donor, generation: Generation, reads: Vec<(usize, u32)>) -> Result<Table> {
    let words = &mut donor.words;
    let length =
        words.iter().rposition(|word| opcode_of(*word) != NOP).context("there is nothing but NOPs")?;
    ensure!(
        opcode_of(words[length]) == opcode::BRA,
        "the last instruction is not the compiler's endless loop"
    );
    words.truncate(length);
    words.remove(0);
    let sleep = |time| move |word: &Word| opcode_of(*word) == opcode::NANOSLEEP && word[0] >> 32 == time;
    let (end, other) = (only(words, sleep(END))?, only(words, sleep(OTHER_END))?);
    for at in [end, other] {
        ensure!(
            words.get(at + 1).map(|word| opcode_of(*word)) == Some(opcode::EXIT),
            "no EXIT behind instruction {at}"
        );
    }
    let place = |index: usize| index as u64 * WORD_BYTES;
    words[other] = waiting_for_all(generation.branch(place(other), place(end)));
    let ours = |&index: &usize| opcode_of(words[index]) == opcode::EXIT && index != end + 1;
    let exits = (0..words.len()).filter(ours).collect();
    let reads = reads.into_iter().map(|(index, bit)| (index - 1, bit)).collect();
    Ok(Table { donor, reads, end, exits })
}

fn only(words: &[Word], is_it: impl Fn(&Word) -> bool) -> Result<usize> {
    let mut found = words.iter().enumerate().filter(|(_, word)| is_it(word)).map(|(index, _)| index);
    let first = found.next().context("a mark is missing")?;
    ensure!(found.next().is_none(), "a mark is there twice");
    Ok(first)
}

fn compile(ptxas: &Path, source: &str, name: &str, pad: u32) -> Result<Donor> {
    let number: u32 = name.trim_end_matches(|c: char| !c.is_ascii_digit()).parse()?;
    let scratch = tempfile::tempdir()?;
    let (input, output) = (scratch.path().join("donor.ptx"), scratch.path().join("donor.cubin"));
    fs::write(&input, adapted(source, name, number, pad))?;
    let result = Command::new(ptxas)
        .arg(format!("-arch=sm_{name}"))
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .output()
        .context("cannot run ptxas")?;
    ensure!(result.status.success(), "ptxas refused it:\n{}", String::from_utf8_lossy(&result.stderr));
    read(&fs::read(&output)?)
}

fn adapted(source: &str, name: &str, number: u32, pad: u32) -> String {
    let lines = source.lines().filter(|line| number >= 90 || !line.ends_with("// sm_90"));
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    text.replace(".target sm_90", &format!(".target sm_{name}")).replace("pad[8]", &format!("pad[{pad}]"))
}

fn read(bytes: &[u8]) -> Result<Donor> {
    let file = cubin::File::read(bytes)?;
    let kernels = file.kernels();
    let [kernel] = &kernels[..] else { bail!("there is not one kernel, but {}", kernels.len()) };
    ensure!(kernel.shared.is_none(), "it uses shared memory");
    ensure!(file.relocations_of(kernel.text).next().is_none(), "it wants to be linked");
    let half = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("half of 16 bytes"));
    let words = file.sections()[kernel.text].data.chunks_exact(16);
    let info = kernel.info.context("nothing is said about it")?;
    let description = Description::read(&file.sections()[info].data)?;
    let registers = file.register_counts()?.of(kernel.symbol);
    let base = description.parameter_base.context("nothing is said about its parameters")?;
    Ok(Donor {
        words: words.map(|word| [half(&word[..8]), half(&word[8..])]).collect(),
        registers: registers.context("nothing is said about its registers")?,
        barriers: description.barriers.context("nothing is said about its barriers")?,
        parameter_base: base.into(),
    })
}

const HEADER: &str = "// @generated by `cargo xtask donors` from donors/prologue.ptx; do not edit.\n";

fn contents() -> String {
    let names = || ARCHITECTURES.iter().map(|architecture| architecture.name);
    // As the formatter has them: modules by their letters, names by their numbers.
    let mut modules: Vec<String> = names().map(|name| format!("mod sm_{name};\n")).collect();
    modules.sort();
    let modules = modules.concat();
    let uses: String = names().map(|name| format!("pub use sm_{name}::SM_{name};\n")).collect();
    format!("{HEADER}\n{modules}\n{uses}")
}

fn print(table: &Table, architecture: &Architecture) -> Result<String> {
    let Architecture { name, generation, most_parameter_bytes, .. } = architecture;
    let Donor { words, registers, barriers, parameter_base } = &table.donor;
    if words.len() > usize::from(u16::MAX) {
        bail!("it is too long");
    }
    let exits: Vec<String> = table.exits.iter().map(usize::to_string).collect();
    let reads: String = table
        .reads
        .iter()
        .map(|(word, bit)| format!("        ControlRead {{ word: {word}, bit: {bit} }},\n"))
        .collect();
    let words: String =
        words.iter().map(|[low, high]| format!("        [{low:#018x}, {high:#018x}],\n")).collect();
    Ok(format!(
        "{HEADER}
use crate::machine::Generation;
use crate::prologue::{{ControlRead, Prologue}};

#[rustfmt::skip]
pub const SM_{name}: Prologue = Prologue {{
    generation: Generation::{generation:?},
    end: {end},
    exits: &[{exits}],
    registers: {registers},
    barriers: {barriers},
    parameter_base: {parameter_base:#x},
    most_parameter_bytes: {most_parameter_bytes},
    control_reads: &[
{reads}    ],
    words: &[
{words}    ],
}};
",
        end = table.end,
        exits = exits.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_reads_are_found_by_what_differs() {
        let words = [[1, 0], [5 << 38, 7], [9 << 37, 7]];
        let others = [[1, 0], [(5 + 8) << 38, 7], [(9 + 8) << 37, 7]];
        assert_eq!(differences(&words, &others, 8).unwrap(), [(1, 38), (2, 37)]);
    }

    #[test]
    fn a_difference_that_is_no_offset_is_refused() {
        assert!(differences(&[[1, 0]], &[[2, 0]], 8).is_err());
        assert!(differences(&[[0, 0]], &[[8 << 38, 1]], 8).is_err());
        assert!(differences(&[[0, 0]], &[], 8).is_err());
    }

    #[test]
    fn a_load_of_sixteen_bytes_is_refused() {
        let load = |offset: u64, size: u64| [[0xb82 | offset << 38, size << 9]];
        assert!(differences(&load(8, EIGHT_BYTES), &load(24, EIGHT_BYTES), 16).is_ok());
        assert!(differences(&load(8, 6), &load(24, 6), 16).is_err());
    }

    #[test]
    fn what_came_with_sm_90_is_left_out_before_it() {
        let source = ".target sm_90\na pad[8];\nb;  // sm_90\n";
        assert_eq!(adapted(source, "80", 80, 16), ".target sm_80\na pad[16];\n");
        assert_eq!(adapted(source, "90a", 90, 8), ".target sm_90a\na pad[8];\nb;  // sm_90\n");
    }
}
