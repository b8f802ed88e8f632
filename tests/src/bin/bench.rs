//! `make bench`: prints what Weir costs, on both I/O backends and next to nginx.
//!
//!     bench [--quick] [--rounds N] [--json FILE] [--backend uring|epoll] [--only GROUP]

use std::path::PathBuf;

use serde_json::json;
use weir_e2e::Backend;
use weir_e2e::bench::{self, LOAD_CPU, Plan, SERVER_CPU};

const USAGE: &str = "usage: bench [--quick] [--rounds N] [--json FILE] [--backend uring|epoll] [--only GROUP]; \
     groups:";

struct Arguments {
    plan: Plan,
    json: Option<PathBuf>,
    backends: Vec<Backend>,
    only: Option<String>,
}

fn main() {
    if cfg!(debug_assertions) {
        eprintln!("a debug build says nothing: cargo run --release");
        std::process::exit(2);
    }
    let arguments = match parse(std::env::args().skip(1)) {
        Some(arguments) => arguments,
        None => {
            eprintln!("{USAGE} {}", bench::groups().join(", "));
            std::process::exit(2);
        }
    };
    let machine = bench::machine();
    let table = bench::run(&arguments.plan, &arguments.backends, arguments.only.as_deref());
    println!("{machine}");
    println!(
        "gateway (and nginx) on CPU {SERVER_CPU}, load on CPU {LOAD_CPU}, over 127.0.0.1; medians \
         of {} rounds\n",
        arguments.plan.rounds
    );
    print!("{table}");
    if let Some(file) = arguments.json {
        let report = json!({"machine": machine, "rows": table.json()});
        std::fs::write(&file, format!("{report:#}\n")).expect("the file for --json");
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let backends = Backend::ALL.to_vec();
    let mut arguments = Arguments { plan: Plan::FULL, json: None, backends, only: None };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => arguments.plan = Plan::QUICK,
            "--json" => arguments.json = Some(words.next()?.into()),
            "--rounds" => arguments.plan.rounds = words.next()?.parse().ok()?,
            "--only" => arguments.only = Some(words.next()?),
            "--backend" => {
                let name = words.next()?;
                arguments.backends.retain(|backend| backend.name() == name);
            }
            _ => return None,
        }
    }
    let known = |only: &String| bench::groups().contains(&only.as_str());
    let valid = arguments.only.as_ref().is_none_or(known) && !arguments.backends.is_empty();
    valid.then_some(arguments)
}
