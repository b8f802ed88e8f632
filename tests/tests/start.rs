//! What is in the way of a start, and what the operator is told.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use weir_e2e::http::Client;
use weir_e2e::{Process, Reserved, Scratch, tools, wait_until};

const LISTENERS: [&str; 3] = ["--rtmp", "--http", "--admin"];

/// Runs the gateway, which must not start, to its end.
fn refused(arguments: &[&str], env: &[(&str, &str)], wrapper: Option<&Path>) -> (i32, String) {
    let gateway = tools::gateway_binary();
    let mut command = match wrapper {
        Some(wrapper) => {
            let mut command = Command::new(wrapper);
            command.arg(gateway);
            command
        }
        None => Command::new(gateway),
    };
    let command = command.args(arguments).envs(env.iter().copied());
    let Output { status, stderr, stdout } = tools::output("weir", command);
    assert_eq!(String::from_utf8_lossy(&stdout), "", "never ready");
    let text = String::from_utf8(stderr).expect("text");
    // Lines of the log begin with their time.
    let own: Vec<&str> = text.lines().filter(|line| !line.starts_with("20")).collect();
    assert_eq!(own.len(), 1, "one sentence: {text}");
    (status.code().expect("an exit code"), own[0].to_owned())
}

#[test]
fn an_address_in_use_is_named_and_nothing_listens() {
    for taken_flag in &LISTENERS {
        for io in ["uring", "epoll"] {
            let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
            let taken_address = taken.local_addr().expect("its number");
            let reserved = LISTENERS.map(|_| Reserved::take());
            let mut addresses = reserved.each_ref().map(|free| free.address);
            let here = LISTENERS.iter().position(|flag| flag == taken_flag);
            addresses[here.expect("a listener")] = taken_address;
            let text = addresses.map(|address| address.to_string());
            let flags = LISTENERS.iter().zip(&text).flat_map(|(flag, at)| [*flag, at.as_str()]);
            let arguments: Vec<&str> = ["run", "--io", io].into_iter().chain(flags).collect();
            let (code, sentence) = refused(&arguments, &[], None);
            assert_eq!(code, 1, "{sentence}");
            for word in ["already in use", &taken_address.to_string(), taken_flag] {
                assert!(sentence.contains(word), "{word} in {sentence}");
            }
            for address in addresses.into_iter().filter(|address| *address != taken_address) {
                assert!(TcpStream::connect(address).is_err(), "{address} listens");
            }
        }
    }
}

#[test]
fn two_listeners_on_one_address_are_refused() {
    let reserved = [Reserved::take(), Reserved::take()];
    let [address, free] = reserved.each_ref().map(|one| one.address.to_string());
    for [first, second, third] in [
        ["--rtmp", "--http", "--admin"],
        ["--http", "--admin", "--rtmp"],
        ["--rtmp", "--admin", "--http"],
    ] {
        let arguments = ["run", first, &address, second, &address, third, &free];
        let (code, sentence) = refused(&arguments, &[], None);
        assert_ne!(code, 0, "{sentence}");
        assert!(sentence.contains(&address), "{sentence}");
    }
}

#[test]
fn an_address_of_another_machine_is_refused() {
    for flag in LISTENERS {
        // TEST-NET-1 (RFC 5737) is nobody's.
        let (code, sentence) = refused(&["run", flag, "192.0.2.1:9"], &[], None);
        assert_eq!(code, 1, "{sentence}");
        for word in ["192.0.2.1:9", "this machine", flag] {
            assert!(sentence.contains(word), "{word} in {sentence}");
        }
    }
}

#[test]
fn a_wrong_configuration_is_answered_with_the_nearest_key() {
    let scratch = Scratch::new();
    let file = scratch.file("weir.toml");
    std::fs::write(&file, "http = '127.0.0.1:0'\n[hls]\npart = '100ms'\nsegmnt = '1s'\n")
        .expect("a file");
    let path = file.to_str().expect("a path");
    let (code, sentence) = refused(&["run", "--config", path], &[], None);
    assert_eq!(code, 2, "{sentence}");
    for word in ["weir.toml:4", "hls.segmnt", "did you mean \"hls.segment\""] {
        assert!(sentence.contains(word), "{word} in {sentence}");
    }
    let (code, sentence) = refused(&["run"], &[("WEIR_HTPP", "127.0.0.1:0")], None);
    assert_eq!(code, 2, "{sentence}");
    assert!(sentence.contains("WEIR_HTPP") && sentence.contains("WEIR_HTTP"), "{sentence}");
    let (code, sentence) = refused(&["run", "--rtmp", "localhost"], &[], None);
    assert_eq!(code, 2, "{sentence}");
    assert!(
        sentence.contains("--rtmp") && sentence.contains("IP address and a port"),
        "{sentence}"
    );
}

#[test]
fn without_io_uring_it_refuses_or_falls_back_and_says_so() {
    let wrapper = Path::new(env!("CARGO_BIN_EXE_no-io-uring"));
    let (code, sentence) = refused(&["run", "--io", "uring"], &[], Some(wrapper));
    assert_eq!(code, 1, "{sentence}");
    for word in ["io_uring is not available", "seccomp", "--io epoll"] {
        assert!(sentence.contains(word), "{word} in {sentence}");
    }

    let scratch = Scratch::new();
    let mut command = Command::new(wrapper);
    command.arg(tools::gateway_binary()).args(["run", "--io", "auto"]);
    let reserved = Reserved::take();
    let address = reserved.address.to_string();
    command.args(["--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", &address]);
    let process = Process::start("gateway", &mut command, scratch.path());
    let client = Client::default();
    let server = wait_until("the gateway on epoll", Duration::from_secs(15), || {
        client.try_get(&format!("http://{address}/api/v1/server")).ok().map(|answer| answer.json())
    });
    assert_eq!(server["io_backend"], "epoll");
    let note = server["io_note"].as_str().expect("a note");
    assert!(note.contains("io_uring is not available") && note.contains("seccomp"), "{note}");
    let log = process.log();
    assert!(log.contains(note), "{log}");
    assert!(log.contains("io=epoll"), "{log}");
}
