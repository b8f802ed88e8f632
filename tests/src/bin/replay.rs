//! Sends a server what no encoder sends, and checks what comes of it: `replay --help`.

use std::io::Read as _;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use weir_e2e::replay::edit::{Editor, GRAMMAR};
use weir_e2e::replay::flv::{self, Clip, Pace};
use weir_e2e::replay::{self, LANGUAGE, Target};
use weir_protocol::rtmp::RtmpUrl;

const ABOUT: &str = "Sends an RTMP server what no encoder sends, and checks what comes of it";

const AFTER: &str = "\
Examples:
  replay script tests/cases/CH-14.rtmp rtmp://127.0.0.1/live/x --http 127.0.0.1:8080
  echo 'publish' | replay script - rtmp://127.0.0.1/live/x
  replay flv clip.flv rtmp://127.0.0.1/live/x 'shift video@5s +95443000' --speed max --turns 100

Exit codes: 0 all expectations were met, 1 one was not (its line, what was expected, what came),
2 wrong command line or script";

#[derive(Debug, Parser)]
// What is written for 100 columns is not wrapped anew.
#[command(name = "replay", about = ABOUT, after_help = AFTER, term_width = 0)]
struct Cli {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Run a script: bytes, messages, pauses, odd headers, and what is expected in return
    #[command(after_long_help = LANGUAGE)]
    Script(ScriptArguments),
    /// Publish an FLV file with edits: timestamps, headers and bodies as odd encoders have them
    #[command(after_long_help = GRAMMAR)]
    Flv(FlvArguments),
}

#[derive(Args, Debug)]
struct FlvArguments {
    file: PathBuf,
    /// The server and the stream: rtmp://HOST[:PORT]/APP/KEY
    url: String,
    /// What is done to its tags; --help has the grammar
    edits: Vec<String>,
    /// Times real time, or `max`: as fast as the server takes it
    #[arg(long, default_value = "1", value_parser = speed)]
    speed: Speed,
    /// Send the file so many times in a row, as one stream
    #[arg(long, default_value_t = 1)]
    turns: u64,
}

/// Times real time; none is as fast as possible.
#[derive(Clone, Copy, Debug)]
struct Speed(Option<f64>);

fn speed(text: &str) -> Result<Speed, String> {
    match text.parse::<f64>() {
        _ if text == "max" => Ok(Speed(None)),
        Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(Speed(Some(speed))),
        _ => Err("a number above zero, or max".to_owned()),
    }
}

#[derive(Args, Debug)]
struct ScriptArguments {
    /// The script; - reads it from standard input
    file: String,
    /// The server and the stream: rtmp://HOST[:PORT]/APP/KEY
    url: String,
    /// Where the server speaks HTTP: HOST:PORT, for scripts that watch what comes out
    #[arg(long, value_name = "ADDRESS")]
    http: Option<String>,
    /// Run only the cases with this name
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().what {
        What::Script(arguments) => script(&arguments),
        What::Flv(arguments) => flv(&arguments),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("replay: {error}");
        ExitCode::from(2)
    })
}

/// An error is one of usage.
fn script(arguments: &ScriptArguments) -> Result<ExitCode, String> {
    let target = target(&arguments.url, arguments.http.as_deref())?;
    let text = read(&arguments.file)?;
    let mut cases = replay::parse(&text)
        .map_err(|(line, error)| format!("{}, line {line}: {error}", arguments.file))?;
    cases.retain(|case| arguments.case.as_ref().is_none_or(|name| *name == case.name));
    if cases.is_empty() {
        return Err(format!("{}: no such case", arguments.file));
    }
    let mut failed = false;
    for case in &cases {
        let name = if case.name.is_empty() { &arguments.file } else { &case.name };
        match replay::case(case, &target) {
            Ok(()) => println!("ok      {name}"),
            Err(failure) => {
                println!("FAILED  {name}, {failure}");
                failed = true;
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn flv(arguments: &FlvArguments) -> Result<ExitCode, String> {
    let target = target(&arguments.url, None)?;
    let mut editor = Editor::parse(&arguments.edits.join("\n"))?;
    let clip = Clip::read(&arguments.file)?;
    let pace = Pace { speed: arguments.speed.0, turns: arguments.turns };
    match flv::publish(&clip, &mut editor, pace, &target) {
        Ok(sent) => {
            println!("ok      {sent} tags");
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            println!("FAILED  {error}");
            Ok(ExitCode::FAILURE)
        }
    }
}

fn target(url: &str, http: Option<&str>) -> Result<Target, String> {
    let parsed = RtmpUrl::parse(url).map_err(|error| format!("{url}: {error}"))?;
    if parsed.tls {
        return Err(format!("{url}: replay speaks RTMP without TLS"));
    }
    let rtmp = resolve(url, (parsed.host.as_str(), parsed.port))?;
    let http = http.map(|address| resolve(address, address)).transpose()?;
    Ok(Target { rtmp, http, app: parsed.app, key: parsed.key })
}

fn resolve(text: &str, address: impl ToSocketAddrs) -> Result<SocketAddr, String> {
    let mut found = address.to_socket_addrs().map_err(|error| format!("{text}: {error}"))?;
    found.next().ok_or_else(|| format!("{text}: no address"))
}

fn read(file: &str) -> Result<String, String> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().read_to_string(&mut text).map(drop),
        path => std::fs::read_to_string(path).map(|read| text = read),
    };
    read.map(|()| text).map_err(|error| format!("{file}: {error}"))
}
