//! What a command is called that was given no name: its script or program, rather than what runs it.
//!
//! `python3 -u train.py` is `train.py`, and so is that behind `env`, `nohup`, `torchrun`, `srun` or `uv run`. Where what runs is in no file, as behind
//! `-c`, the program's own name must do.

use std::ffi::OsString;
use std::path::Path;

/// Programs that become another one: their options that take a value, and how many words come before the other program.
const WRAPPERS: [(&str, &[&str], usize); 14] = [
    ("env", &["-u", "--unset", "-C", "--chdir"], 0),
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("time", &["-f", "-o", "--format", "--output"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    ("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    ("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    ("taskset", &[], 1),
    ("sudo", &["-u", "--user", "-g", "--group", "-D", "--chdir"], 0),
    (
        "numactl",
        &["-N", "-m", "-C", "-i", "-p", "--cpunodebind", "--membind", "--physcpubind", "--interleave"],
        0,
    ),
    (
        "srun",
        &["-n", "-N", "-c", "-p", "-t", "-J", "-A", "--ntasks", "--nodes", "--cpus-per-task", "--gres"],
        0,
    ),
    ("mpirun", &MPI, 0),
    ("mpiexec", &MPI, 0),
];
const MPI: [&str; 7] = ["-n", "-np", "-H", "-x", "--host", "--hostfile", "--map-by"];

/// Programs that become another one if their first word is `run`, and their options that take a value.
const RUNNERS: [(&str, &[&str]); 6] = [
    ("uv", &["-p", "--python", "--with", "--extra", "--group", "--env-file", "--project", "--directory"]),
    ("poetry", &["-C", "--directory", "-P", "--project"]),
    ("pipenv", &[]),
    ("conda", &["-n", "--name", "-p", "--prefix", "--cwd"]),
    ("mamba", &["-n", "--name", "-p", "--prefix", "--cwd"]),
    ("micromamba", &["-n", "--name", "-p", "--prefix", "--cwd", "-r", "--root-prefix"]),
];

const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];
/// Programs that run a script of Python several times, and the same as modules.
const LAUNCHERS: [&str; 3] = ["torchrun", "accelerate", "deepspeed"];
const LAUNCHER_MODULES: [&str; 4] = [
    "torch.distributed.run",
    "torch.distributed.launch",
    "accelerate.commands.launch",
    "deepspeed.launcher.runner",
];

pub fn of(command: &[OsString]) -> String {
    let words: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    named(&words)
}

fn named(words: &[String]) -> String {
    let Some((program, rest)) = words.split_first() else { return String::new() };
    let name = file_name(program);
    if let Some((_, valued, before)) = WRAPPERS.iter().find(|(wrapper, ..)| *wrapper == name) {
        let inner = behind(rest, valued, *before);
        return if inner.is_empty() { name } else { named(inner) };
    }
    if let Some((_, valued)) = RUNNERS.iter().find(|(runner, _)| *runner == name) {
        let inner = match behind(rest, valued, 0).split_first() {
            Some((verb, rest)) if verb == "run" => behind(rest, valued, 0),
            _ => &[],
        };
        return if inner.is_empty() { name } else { named(inner) };
    }
    let script = match name.as_str() {
        shell if SHELLS.contains(&shell) => shell_script(rest),
        launcher if LAUNCHERS.contains(&launcher) => launched(rest),
        other if is_python(other) => python_script(rest),
        _ => None,
    };
    script.unwrap_or(name)
}

/// What a wrapper becomes: what is behind its options, its settings of variables and its own words.
fn behind<'a>(words: &'a [String], valued: &[&str], mut before: usize) -> &'a [String] {
    let mut rest = words;
    while let Some((word, more)) = rest.split_first() {
        rest = match word.as_str() {
            "--" => more,
            option if valued.contains(&option) => more.get(1..).unwrap_or_default(),
            option if option.starts_with('-') => more,
            word if is_setting(word) => more,
            _ if before > 0 => {
                before -= 1;
                more
            }
            _ => return rest,
        };
    }
    rest
}

/// `NAME=VALUE`, which is for `env`.
fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| !name.contains('/'))
}

fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// The file or module that Python runs. Options of one letter may stand together; four of them end with a value.
fn python_script(words: &[String]) -> Option<String> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let Some(letters) = word.strip_prefix('-') else { return Some(file_name(word)) };
        if letters.starts_with('-') {
            if word == "--check-hash-based-pycs" {
                rest.next();
            }
            continue;
        }
        match letters.find(['c', 'm', 'W', 'X']).map(|at| letters.split_at(at)) {
            None if letters.is_empty() => return None,
            None => {}
            Some((_, option)) => {
                let value =
                    if option.len() > 1 { Some(option[1..].to_owned()) } else { rest.next().cloned() };
                match option.as_bytes()[0] {
                    b'c' => return None,
                    b'm' => return module(&value?, rest.as_slice()),
                    _ => {}
                }
            }
        }
    }
    None
}

fn module(name: &str, rest: &[String]) -> Option<String> {
    if LAUNCHER_MODULES.contains(&name) { launched(rest) } else { Some(name.to_owned()) }
}

/// What a launcher runs. It has too many options to know them all, so the first word that can only be a script is taken, or what stands
/// behind `-m`.
fn launched(words: &[String]) -> Option<String> {
    let at = words.iter().position(|word| {
        ["-m", "--module"].contains(&word.as_str()) || (word.ends_with(".py") && !word.starts_with('-'))
    })?;
    match words[at].ends_with(".py") {
        true => Some(file_name(&words[at])),
        false => words.get(at + 1).cloned(),
    }
}

fn shell_script(words: &[String]) -> Option<String> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => _ = rest.next(),
            "--" => return rest.next().map(|script| file_name(script)),
            option if option.starts_with("--") || option.starts_with('+') => {}
            option if option.starts_with('-') => {
                // What comes with the option or from standard input is in no file.
                if option == "-" || option.contains(['c', 's']) {
                    return None;
                }
            }
            script => return Some(file_name(script)),
        }
    }
    None
}

fn file_name(word: &str) -> String {
    Path::new(word).file_name().map_or(word.to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_called_after_its_script_or_program() {
        let names = [
            ("./serve --port 1", "serve"),
            ("/usr/bin/train.py", "train.py"),
            ("python3 train.py --lr 1", "train.py"),
            ("/opt/venv/bin/python3.12 -u jobs/train.py", "train.py"),
            ("python -W ignore -X dev -BO train.py", "train.py"),
            ("python -Wignore train.py", "train.py"),
            ("python -m pkg.train --lr 1", "pkg.train"),
            ("python -um pkg.train", "pkg.train"),
            ("python -mpkg.train", "pkg.train"),
            ("python -c pass train.py", "python"),
            ("python3", "python3"),
            ("python -", "python"),
            ("python3-config --libs", "python3-config"),
            ("bash script.sh a", "script.sh"),
            ("bash -eu -o pipefail jobs/script.sh", "script.sh"),
            ("bash -ec run script.sh", "bash"),
            ("sh", "sh"),
            ("torchrun --nproc_per_node 2 --standalone jobs/train.py --data x.py", "train.py"),
            ("torchrun --nproc-per-node=2 -m pkg.train", "pkg.train"),
            ("torchrun --no-python ./binary", "torchrun"),
            ("accelerate launch --multi_gpu train.py", "train.py"),
            ("python -m torch.distributed.run --nproc_per_node 2 train.py", "train.py"),
            ("env -u HOME A=1 B=/x python -u train.py", "train.py"),
            ("/usr/bin/env python3 train.py", "train.py"),
            ("env A=1", "env"),
            ("nohup nice -n 5 python train.py", "train.py"),
            ("timeout -s INT 10 ./serve", "serve"),
            ("taskset -c 0-3 python train.py", "train.py"),
            ("sudo -u alice ./serve", "serve"),
            ("srun -n 2 --gres gpu:1 python train.py", "train.py"),
            ("mpirun -np 2 -x A python train.py", "train.py"),
            ("uv run --with torch train.py", "train.py"),
            ("uv run python -m pkg.train", "pkg.train"),
            ("uv pip install torch", "uv"),
            ("conda run -n env python train.py", "train.py"),
        ];
        for (line, name) in names {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(of(&words), name, "{line}");
        }
    }
}
