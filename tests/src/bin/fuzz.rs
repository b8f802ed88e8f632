//! `make fuzz`: fuzzes the parsers for a while, or gives one input to one of them again.
//!
//!     fuzz [--seconds 60] [--seed N]
//!     fuzz --target NAME FILE

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weir_e2e::{fuzz, tools};

const USAGE: &str = "usage: fuzz [--seconds N] [--seed N] | fuzz --target NAME FILE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["-h" | "--help"] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        ["--target", name, file] => repeat(name, file),
        pairs => run(pairs),
    }
}

fn run(arguments: &[&str]) -> ExitCode {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (mut seconds, mut seed) = (60, since.as_secs());
    for pair in arguments.chunks(2) {
        match pair {
            ["--seconds", value] => seconds = value.parse().expect(USAGE),
            ["--seed", value] => seed = value.parse().expect(USAGE),
            _ => panic!("{USAGE}"),
        }
    }
    println!("fuzzing for {seconds} s with seed {seed}");
    match fuzz::run(seed, Duration::from_secs(seconds)) {
        Ok(counts) => {
            for (target, inputs) in counts {
                println!("{target:>12}: {inputs} inputs, no failure");
            }
            ExitCode::SUCCESS
        }
        Err(failure) => report(seed, &failure),
    }
}

fn report(seed: u64, failure: &fuzz::Failure) -> ExitCode {
    let name = failure.target.replace(' ', "-");
    let file: PathBuf = tools::root().join(format!("target/fuzz-{name}-{seed}.bin"));
    std::fs::write(&file, &failure.input).expect("a file for the input");
    println!(
        "FAILED: {} with seed {seed}; input of {} bytes:",
        failure.target,
        failure.input.len()
    );
    println!("{}", failure.input.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    println!("again: fuzz --target '{}' {}", failure.target, file.display());
    ExitCode::FAILURE
}

fn repeat(name: &str, file: &str) -> ExitCode {
    let input = std::fs::read(file).expect("the input's file");
    let targets = fuzz::all();
    let target = targets.iter().find(|target| target.name == name).expect("a target's name");
    match fuzz::try_input(target, &input) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
