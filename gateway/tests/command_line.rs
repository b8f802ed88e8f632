//! The binary as an operator meets it: what it prints, and with which code it ends.

use std::process::Command;

struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs the binary with nothing in its environment but `env`.
fn weir(arguments: &[&str], env: &[(&str, &str)]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .env_clear()
        .envs(env.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[test]
fn a_configuration_that_cannot_be_used_ends_with_one_sentence() {
    let bad = file("[hls]\nsegmant = '2s'\n");
    let path = bad.path().to_str().unwrap();
    for (arguments, env, words) in [
        (
            &["--config", path][..],
            &[][..],
            vec![":2: unknown key \"hls.segmant\"", "\"hls.segment\""],
        ),
        (&["run", "--config", path], &[], vec![":2:", "hls.segment"]),
        (&[], &[("WEIR_CONFIG", path)], vec![":2:", "hls.segment"]),
        (&["--config", "/nonexistent.toml"], &[], vec!["/nonexistent.toml", "No such file"]),
        (&[], &[("WEIR_RMTP", ":1")], vec!["WEIR_RMTP", "did you mean WEIR_RTMP?"]),
        (&["--rtmp", "localhost"], &[], vec!["--rtmp", "\"localhost\"", "IP address and a port"]),
        (&["--hls-part", "1500ms"], &[], vec!["1s 500ms (--hls-part)", "half a segment"]),
        (&["--io", "iocp"], &[], vec!["--io", "auto, uring or epoll"]),
    ] {
        let ended = weir(arguments, env);
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        for word in words {
            assert!(ended.stderr.contains(word), "{word} in {}", ended.stderr);
        }
    }
}

#[test]
fn an_unknown_flag_is_answered_with_the_nearest() {
    let ended = weir(&["--hls-segmant", "1s"], &[]);
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--hls-segment"), "{}", ended.stderr);
}

#[test]
fn config_prints_what_is_in_force() {
    let own = file("hls.window = 8\nio = 'epoll'\n");
    let path = own.path().to_str().unwrap();
    let first = weir(&["config", "--config", path, "--cores", "1"], &[("WEIR_IO", "uring")]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    for line in
        ["window = 8  # set by ", "io = \"uring\"  # set by WEIR_IO", "cores = \"1\"  # set"]
    {
        assert!(first.stdout.contains(line), "{line} in {}", first.stdout);
    }
    let printed = file(&first.stdout);
    let second = weir(&["config", "--config", printed.path().to_str().unwrap()], &[]);
    let values = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split("  #").next().unwrap().to_owned()).collect()
    };
    assert_eq!(values(&first.stdout), values(&second.stdout));
}

#[test]
fn help_teaches() {
    let version = weir(&["--version"], &[]);
    assert_eq!(version.stdout, format!("weir {}\n", env!("CARGO_PKG_VERSION")));
    let help = weir(&["--help"], &[]).stdout;
    for word in [
        "rtmp://HOST/live",
        "/live/test/index.m3u8",
        "http://127.0.0.1:9090/",
        "--hls-segment <DURATION>",
        "[default: 2s] [env: WEIR_HLS_SEGMENT]",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{word} in {help}");
    }
}
