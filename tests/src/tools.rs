//! Where the programs, the fixtures and a test's own files are.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The workspace's root.
#[must_use]
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

/// The clip that flashes and beeps each second: 16 s, H.264 and AAC, a key frame every 2 s.
#[must_use]
pub fn demo_clip() -> PathBuf {
    root().join("gateway/assets/demo.flv")
}

/// The gateway's binary of the profile under test, built if it is not up to date.
#[must_use]
pub fn gateway_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.current_dir(root()).args(["build", "-q", "-p", "weir-gateway", "--bin", "weir"]);
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        if profile == "release" {
            build.arg("--release");
        }
        let status = build.status().expect("cargo");
        assert!(status.success(), "cargo build: {status}");
        // A test is target/PROFILE/deps/NAME, a tool target/PROFILE/NAME; the binary lies beside it.
        let test = std::env::current_exe().expect("the test's own path");
        let mut floors = test.ancestors().skip(1).filter(|floor| !floor.ends_with("deps"));
        let binary = floors.next().expect("target directory").join("weir");
        assert!(binary.is_file(), "no gateway at {}", binary.display());
        binary
    })
}

/// The Python of the tests' own environment.
#[must_use]
pub fn python() -> PathBuf {
    let python = root().join(".setup/venv/bin/python");
    assert!(python.is_file(), "the tests' Python environment is missing: run `make setup`");
    python
}

/// ffmpeg 9, which publishes Enhanced RTMP.
#[must_use]
pub fn ffmpeg9() -> &'static Path {
    static FFMPEG: OnceLock<PathBuf> = OnceLock::new();
    FFMPEG.get_or_init(|| {
        let code = "import imageio_ffmpeg; print(imageio_ffmpeg.get_ffmpeg_exe())";
        let path = run("imageio-ffmpeg", Command::new(python()).args(["-c", code]));
        PathBuf::from(path.trim())
    })
}

/// Runs a program to its end and gives its standard output; panics unless it succeeds.
///
/// # Panics
/// When the program is missing or fails, with what it wrote.
pub fn run(what: &str, command: &mut Command) -> String {
    let output = output(what, command);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{complaint}{text}", output.status);
    text
}

/// Runs a program to its end, whatever that is, but not for long: one that hangs ends with 124.
///
/// # Panics
/// When the program is missing.
pub fn output(what: &str, command: &mut Command) -> Output {
    let program = command.get_program().to_owned();
    let mut bounded = Command::new("timeout");
    bounded.args(["-k", "5", &LONGEST_RUN_S.to_string()]).arg(&program).args(command.get_args());
    bounded.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    if let Some(directory) = command.get_current_dir() {
        bounded.current_dir(directory);
    }
    let output = bounded.stdin(Stdio::null()).output().expect("coreutils");
    let missing = output.status.code() == Some(127);
    assert!(!missing, "{what}: there is no {} (run `make setup`)", program.display());
    output
}

/// Far more than any of these runs takes, far less than a test suite should hang.
const LONGEST_RUN_S: u32 = 90;

/// A directory of one test, removed at its end unless the test failed.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("weir-e2e-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a scratch directory");
        Self { path }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub fn file(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// A new directory inside.
    #[must_use]
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.path.join(name);
        std::fs::create_dir_all(&path).expect("a scratch directory");
        path
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept for a look: {}", self.path.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
