//! Lowers PTX files and says what each kernel needs, or why a file is refused.
//!
//! `cargo run -p softgpu --example compile -- a.ptx b.ptx`; files joined by `+` are linked.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut refused = false;
    for argument in std::env::args().skip(1) {
        let texts: Result<Vec<String>, _> = argument.split('+').map(std::fs::read_to_string).collect();
        let texts = match texts {
            Ok(texts) => texts,
            Err(error) => {
                eprintln!("{argument}: {error}");
                refused = true;
                continue;
            }
        };
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match softgpu::lower::link(&texts) {
            Ok(image) => {
                for function in image.functions.iter().filter(|function| function.kernel.is_some()) {
                    let (name, rows, pressure) = (&function.name, function.rows, function.pressure);
                    println!("{argument}: {name}: {rows} rows, {pressure} registers");
                }
            }
            Err(error) => {
                println!("{argument}:{error}");
                refused = true;
            }
        }
    }
    if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
