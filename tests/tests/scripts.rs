//! The cases of `tests/cases/*.rtmp`, each named for what it is about, against the real gateway.
//!
//! Between the cases a publisher that keeps to the rules goes on, and none of its frames may miss.

use std::fs;
use std::path::PathBuf;

use weir_e2e::media::{GOP, frames, pictures};
use weir_e2e::replay::{self, Case, Target};
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, publish};
use weir_e2e::{Backend, Gateway, tools};

/// Streams end as soon as their publishers do, so that scripts need not wait for it.
const ARGUMENTS: [&str; 4] = ["--cores", "2", "--resume-window", "300ms"];

#[test]
fn every_case_of_every_script() {
    for backend in Backend::ALL {
        let mut gateway = Gateway::start(backend, &ARGUMENTS);
        let mut bystander = Bystander::join(&gateway);
        let mut failures = Vec::new();
        for (file, cases) in scripts() {
            for (number, case) in cases.iter().enumerate() {
                let key = format!("{}-{number}", file.to_lowercase());
                if let Err(failure) = replay::case(case, &target(&gateway, key)) {
                    failures.push(format!("{file} {} on {backend:?}: {failure}", case.name));
                }
                bystander.go_on();
            }
        }
        assert!(failures.is_empty(), "\n{}", failures.join("\n"));
        gateway.process().assert_running();
        let log = gateway.process().log();
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// File names without their end, and what the files hold.
fn scripts() -> Vec<(String, Vec<Case>)> {
    let directory = tools::root().join("tests/cases");
    let entries = fs::read_dir(&directory).expect("the scripts");
    let paths = entries.map(|entry| entry.expect("a file").path());
    let mut paths: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "rtmp")).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(path).expect("a script");
        let cases = replay::parse(&text);
        let cases = cases.unwrap_or_else(|(line, error)| panic!("{name}:{line}: {error}"));
        assert!(!cases.is_empty(), "{name} is empty");
        (name, cases)
    };
    paths.iter().map(read).collect()
}

fn target(gateway: &Gateway, key: String) -> Target {
    Target {
        rtmp: gateway.socket_addr("rtmp"),
        http: Some(gateway.socket_addr("http")),
        app: "live".into(),
        key,
    }
}

/// A publisher that keeps to the rules, and a player of what it publishes.
struct Bystander {
    publisher: RtmpClient,
    player: FlvPlayer,
    next: u32,
}

impl Bystander {
    fn join(gateway: &Gateway) -> Self {
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, "bystander");
        publisher.send(&frames(2, 0, GOP));
        let mut player = FlvPlayer::start(gateway.http_connection(), "/live/bystander.flv");
        player.marks_to(2, GOP - 1);
        Self { publisher, player, next: GOP }
    }

    fn go_on(&mut self) {
        let last = self.next + 2;
        self.publisher.send(&frames(2, self.next, last));
        let seen = pictures(&self.player.marks_to(2, last - 1), 2);
        assert_eq!(
            seen,
            (self.next..last).collect::<Vec<_>>(),
            "a frame of a bystander is missing"
        );
        self.next = last;
    }
}
