//! The command line: what it teaches, and how it refuses.

use std::fs;
use std::net::TcpListener;
use std::process::{Command, Output};

use weir_e2e::{Scratch, tools};

fn weir(arguments: &[&str]) -> Output {
    tools::output("weir", Command::new(tools::gateway_binary()).args(arguments))
}

/// The complaint of a start that must fail.
fn refusal(arguments: &[&str]) -> String {
    let output = weir(arguments);
    assert!(!output.status.success(), "{arguments:?} was accepted");
    assert!(output.stdout.is_empty(), "something had started");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn version_and_help_are_there() {
    let version = String::from_utf8(weir(&["--version"]).stdout).unwrap();
    assert!(version.starts_with("weir 0."), "{version}");
    let help = String::from_utf8(weir(&["--help"]).stdout).unwrap();
    for taught in ["rtmp://", "/live/", "publish", "--io", "WEIR_", "OBS"] {
        assert!(help.contains(taught), "--help says nothing of {taught}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for listener in ["rtmp", "http", "admin"] {
        let mut arguments = vec!["run".to_owned()];
        for each in ["rtmp", "http", "admin"] {
            let address = if each == listener { address.as_str() } else { "127.0.0.1:0" };
            arguments.extend([format!("--{each}"), address.to_owned()]);
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let complaint = refusal(&arguments);
        assert!(complaint.contains(&address) && complaint.contains("in use"), "{complaint}");
    }
}

#[test]
fn wrong_settings_are_explained() {
    let complaint = refusal(&["run", "--rtmp", "nonsense"]);
    assert!(complaint.contains("nonsense"), "{complaint}");
    let scratch = Scratch::new();
    let file = scratch.file("weir.toml");
    fs::write(&file, "rtmp = \"127.0.0.1:0\"\n\n[hls]\nsegmnt = \"2s\"\n").unwrap();
    let complaint = refusal(&["run", "--config", file.to_str().unwrap()]);
    for part in ["segmnt", "4", "segment"] {
        assert!(complaint.contains(part), "no {part} in: {complaint}");
    }
}
