//! Tidiness is a test: which crate may know which, names, lengths, and what must not be committed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Longest file and function, in lines.
const FILE_LINES: usize = 400;
const FUNCTION_LINES: usize = 70;

/// Files and functions that may be longer, with the length that they may not pass, and why.
/// An entry that is no longer needed fails, so the table only shrinks.
const LONGER: &[(&str, usize, &str)] =
    &[("protocol/tests/rtmp/rml.rs:weir_publishes_to_rml", 71, "one conversation, told in order")];

/// Words with too many meanings, or that stand for none. The field's own names are in STYLE:
/// publisher, player, subscriber, access unit.
const BANNED_WORDS: &[&str] =
    &["source", "hub", "packet", "consumer", "context", "manager", "utils", "common", "helper"];

struct File {
    /// From the workspace's root, with `/`.
    path: String,
    text: String,
}

/// Every text file of the project, but the work of others (vendored players, lock files).
fn files() -> Vec<File> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let skipped = ["target", "node_modules", "vendor", ".git", ".setup", "__pycache__"];
            if path.is_dir() && !skipped.contains(&name.as_str()) {
                pending.push(path);
            } else if path.is_file() && name != "Cargo.lock" && name != ".git" {
                found.extend(read(root, &path));
            }
        }
    }
    assert!(found.len() > 50, "the project was not found");
    found
}

/// None for a file that is not text.
fn read(root: &Path, path: &PathBuf) -> Option<File> {
    let text = fs::read_to_string(path).ok()?;
    let path = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
    Some(File { path, text })
}

fn rust_files() -> Vec<File> {
    files().into_iter().filter(|file| file.path.ends_with(".rs")).collect()
}

/// The code of each line, numbered from 1, without comments and without the text of strings.
/// Multi-line strings and comments with slash and star are rare enough here to be code.
fn code(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, strip(line)))
}

fn strip(line: &str) -> String {
    let mut code = String::new();
    let mut characters = line.chars().peekable();
    let mut quoted = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' if quoted => drop(characters.next()),
            '\'' if !quoted && characters.peek() == Some(&'"') => drop(characters.next()),
            '"' => quoted = !quoted,
            '/' if !quoted && characters.peek() == Some(&'/') => break,
            _ if !quoted => code.push(character),
            _ => {}
        }
    }
    code
}

/// The words of a line of code that could be names.
fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
}

/// The parts of `snake_case` and `CamelCase`, in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut previous = '_';
    for letter in name.chars() {
        let begins = letter == '_' || (letter.is_uppercase() && previous.is_lowercase());
        if begins {
            parts.push(String::new());
        }
        if letter != '_' {
            parts.last_mut().unwrap().extend(letter.to_lowercase());
        }
        previous = letter;
    }
    parts
}

fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn crates_know_only_what_lies_below_them() {
    let mut complaints = Vec::new();
    for file in rust_files() {
        let crate_name = file.path.split('/').next().unwrap();
        let forbidden: &[&str] = match crate_name {
            "protocol" => &["weir_hls", "weir", "weir_e2e", "tokio", "hyper"],
            "hls-packager" => &["weir", "weir_e2e", "tokio", "hyper"],
            "gateway" => &["weir_e2e"],
            _ => &[],
        };
        for (number, line) in code(&file.text) {
            let bad = words(&line).find(|word| forbidden.contains(word));
            if let Some(word) = bad.filter(|word| line.contains(&format!("{word}::"))) {
                complaints.push(format!("{}:{number}: {crate_name} uses {word}", file.path));
            }
            if crate_name == "hls-packager" {
                complaints.extend(packager_imports(&file.path, number, &line));
            }
        }
    }
    none(&complaints);
}

/// The packager takes only the media model, codec configurations and the pool from the protocols.
fn packager_imports(path: &str, number: usize, line: &str) -> Option<String> {
    let (_, room) = line.split_once("weir_protocol::")?;
    let room = words(room).next().unwrap_or("a list");
    let allowed = !line.contains("weir_protocol::{") && ["media", "codec", "pool"].contains(&room);
    (!allowed).then(|| format!("{path}:{number}: the packager may not use {room} of the protocols"))
}

#[test]
fn only_the_io_room_is_unsafe_and_knows_io_uring() {
    let mut complaints = Vec::new();
    for file in rust_files() {
        if file.path.starts_with("gateway/src/io/") || file.path == "gateway/src/io.rs" {
            continue;
        }
        for (number, line) in code(&file.text) {
            let guarded = ["unsafe", "tokio_uring", "io_uring"];
            let used = words(&line).find(|word| guarded.contains(word));
            // A lint's name has no bare `unsafe`; an enum variant or a key may be called `io_uring`.
            if let Some(word) = used.filter(|word| *word == "unsafe" || line.contains("uring::")) {
                complaints.push(format!("{}:{number}: {word}", file.path));
            }
        }
    }
    none(&complaints);
}

#[test]
fn every_unsafe_block_says_why_it_is_sound() {
    let mut complaints = Vec::new();
    for file in rust_files() {
        let lines: Vec<&str> = file.text.lines().collect();
        for (number, line) in code(&file.text) {
            let block = line.contains("unsafe {") || line.contains("unsafe impl");
            // The comment stands right above the statement, which may have begun some lines ago.
            let above = &lines[number.saturating_sub(9)..number];
            if block && !above.iter().any(|line| line.contains("SAFETY:")) {
                complaints.push(format!("{}:{number}: no SAFETY comment", file.path));
            }
        }
    }
    none(&complaints);
}

#[test]
fn names_are_the_fields_own() {
    let keywords = ["fn", "struct", "enum", "trait", "mod", "type", "const", "static", "let"];
    let mut complaints = Vec::new();
    for file in rust_files() {
        // ISO 13818-1 and RFC 6716 call them so.
        let packets = [
            "hls-packager/src/ts",
            "hls-packager/tests/packager/transport.rs",
            "protocol/src/codec/opus.rs",
        ];
        let packets_are_packets = packets.iter().any(|room| file.path.starts_with(room));
        let banned = |name: &str| {
            let part = parts(name).into_iter().find(|part| BANNED_WORDS.contains(&part.as_str()));
            part.filter(|part| part != "packet" || !packets_are_packets)
        };
        for name in file.path.split(['/', '.']) {
            complaints.extend(banned(name).map(|word| format!("{}: {word}", file.path)));
        }
        for (number, line) in code(&file.text) {
            let all: Vec<&str> = words(&line).filter(|word| *word != "mut").collect();
            for pair in all.windows(2) {
                // `Error::source` is the standard library's name.
                if keywords.contains(&pair[0]) && pair[1] != "source" {
                    let complaint = |word| format!("{}:{number}: {word} in a name", file.path);
                    complaints.extend(banned(pair[1]).map(complaint));
                }
            }
        }
    }
    none(&complaints);
}

#[test]
fn files_and_functions_are_short() {
    let mut longer: BTreeMap<&str, usize> =
        LONGER.iter().map(|(name, lines, _)| (*name, *lines)).collect();
    let mut complaints = Vec::new();
    let mut check = |name: &str, lines: usize, most: usize| {
        let allowed = longer.remove(name);
        match allowed {
            Some(_) if lines <= most => complaints.push(format!("{name}: needs no entry any more")),
            Some(allowed) if lines < allowed => {
                complaints.push(format!("{name}: is down to {lines} lines, lower its entry"));
            }
            _ if lines > allowed.unwrap_or(most) => {
                complaints.push(format!("{name}: {lines} lines, most are {most}"));
            }
            _ => {}
        }
    };
    for file in files() {
        let written = [".rs", ".js", ".mjs", ".css", ".html", ".py", ".sh"];
        if written.iter().any(|ending| file.path.ends_with(ending)) {
            check(&file.path, file.text.lines().count(), FILE_LINES);
        }
        if file.path.ends_with(".rs") {
            for (name, lines) in functions(&file.text) {
                check(&format!("{}:{name}", file.path), lines, FUNCTION_LINES);
            }
        }
    }
    complaints.extend(longer.keys().map(|name| format!("{name}: is gone, remove its entry")));
    none(&complaints);
}

/// Names and lengths of functions, by the indentation that rustfmt gives their last brace.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let before = code.split("fn ").next().unwrap_or("");
        let qualifiers = ["pub", "const", "async", "unsafe", "extern", "crate", "super", "in"];
        if !code.contains("fn ") || !words(before).all(|word| qualifiers.contains(&word)) {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        let end = lines[index..].iter().position(|line| {
            let rest = line.strip_prefix(indent).unwrap_or("");
            rest == "}" || (!rest.starts_with(' ') && (rest.ends_with(';') || rest.ends_with("}")))
        });
        let name = code.split("fn ").nth(1).and_then(|rest| words(rest).next());
        found.push((name.unwrap_or("?").to_owned(), end.unwrap_or(0) + 1));
    }
    found
}

#[test]
fn the_pure_crates_keep_their_lints() {
    let files: BTreeMap<String, String> =
        files().into_iter().map(|file| (file.path, file.text)).collect();
    for name in ["protocol", "hls-packager"] {
        let library = &files[&format!("{name}/src/lib.rs")];
        for lint in ["unwrap_used", "expect_used", "indexing_slicing", "arithmetic_side_effects"] {
            assert!(library.contains(&format!("clippy::{lint}")), "{name}: {lint} is not denied");
        }
        assert!(library.contains("forbid(unsafe_code)"), "{name} may be unsafe");
        let clippy = &files[&format!("{name}/clippy.toml")];
        for call in ["time::Instant::now", "time::SystemTime::now", "net::TcpStream", "fs::File"] {
            assert!(clippy.contains(call), "{name}/clippy.toml allows {call}");
        }
    }
    // Outside tests nothing takes those lints back.
    let mut complaints = Vec::new();
    for (path, text) in &files {
        let pure = path.starts_with("protocol/src") || path.starts_with("hls-packager/src");
        let lints = ["unwrap_used", "expect_used", "indexing_slicing"];
        for (number, line) in code(text).filter(|_| pure && !path.contains("test")) {
            if line.contains("allow(") && lints.iter().any(|lint| line.contains(lint)) {
                complaints.push(format!("{path}:{number}: {}", line.trim()));
            }
        }
    }
    none(&complaints);
}

#[test]
fn what_serves_peers_has_one_clock() {
    let rooms =
        ["core", "http", "io", "relay", "rtmp", "stream"].map(|room| format!("gateway/src/{room}"));
    let mut complaints = Vec::new();
    for file in rust_files() {
        if !rooms.iter().any(|room| file.path.starts_with(room)) || file.path.contains("/tests") {
            continue;
        }
        let tested = file.text.split("#[cfg(test)]").next().unwrap_or_default();
        let tokios = tested.contains("use tokio::time::{Instant");
        for (number, line) in code(tested) {
            let others = ["SystemTime::now", ".elapsed()"].iter().any(|call| line.contains(call));
            if others || (line.contains("Instant::now") && !tokios) {
                complaints.push(format!("{}:{number}: not of crate::clock", file.path));
            }
        }
    }
    none(&complaints);
}

#[test]
fn nothing_is_left_for_later_or_belongs_to_one_machine() {
    // Put together here, so that this file does not have them.
    let later = ["TO DO", "FIX ME", "XX X"].map(|word| word.replace(' ', ""));
    let machine = ["/wo rk/", "/ro ot/", "/ho me/"].map(|word| word.replace(' ', ""));
    let registries = ["registry.npm js", "pythonhoste d.org", "pypi.o rg", "deb.debia n.org"];
    let registries = registries.map(|word| word.replace(' ', ""));
    let registries_too = ["static.crates .io", "index.crates .io", "proxy.golan g.org"];
    let registries_too = registries_too.map(|word| word.replace(' ', ""));
    let banned: Vec<String> = [&later[..], &machine, &registries, &registries_too].concat();
    let mut complaints = Vec::new();
    for file in files() {
        for (index, line) in file.text.lines().enumerate() {
            for word in banned.iter().filter(|word| line.contains(word.as_str())) {
                complaints.push(format!("{}:{}: {word}", file.path, index + 1));
            }
        }
    }
    none(&complaints);
}

#[test]
fn black_box_tests_wait_for_conditions_and_are_never_ignored() {
    let mut complaints = Vec::new();
    for file in rust_files() {
        for (number, line) in code(&file.text) {
            let sleeps = file.path.starts_with("tests/tests/") && line.contains("sleep(");
            if sleeps || line.trim_start().starts_with("#[ignore") {
                complaints.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    none(&complaints);
}

#[test]
fn the_rules_see_what_they_are_for() {
    assert_eq!(strip("let a = \"unsafe { // x\"; // unsafe"), "let a = ; ");
    assert_eq!(parts("frameSource"), ["frame", "source"]);
    assert_eq!(parts("rtmp_packet_len"), ["rtmp", "packet", "len"]);
    let text = "impl A {\n    pub async fn long(\n        a: u8,\n    ) -> u8 {\n        a\n    }\n\n    fn b();\n}\n";
    assert_eq!(functions(text), [("long".to_owned(), 5), ("b".to_owned(), 1)]);
    let bad = packager_imports("p", 1, "use weir_protocol::rtmp::Session;");
    assert!(
        bad.is_some() && packager_imports("p", 1, "use weir_protocol::media::Track;").is_none()
    );
}
