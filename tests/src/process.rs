//! A child process that never outlives its test.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often a condition is looked at. Short beside every deadline, long beside the looking.
const POLL: Duration = Duration::from_millis(20);

/// Waits until `condition` gives a value.
///
/// # Panics
/// When that has not happened by the deadline.
pub fn wait_until<T>(what: &str, within: Duration, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(began.elapsed() < within, "{what}: not within {within:?}");
        thread::sleep(POLL);
    }
}

/// A running program in a process group of its own, which is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with its output in a log file inside `directory`.
    ///
    /// # Panics
    /// When the program is missing.
    #[must_use]
    pub fn start(name: &str, command: &mut Command, directory: &Path) -> Self {
        let (log, output) = log_file(name, directory);
        command.stdout(output.try_clone().expect("a file handle"));
        Self::spawn(name, command, log, output)
    }

    /// Like [`Process::start`], but gives the standard output to the caller.
    ///
    /// # Panics
    /// When the program is missing.
    #[must_use]
    pub fn start_piped(name: &str, command: &mut Command, directory: &Path) -> (Self, ChildStdout) {
        let (log, output) = log_file(name, directory);
        let mut process = Self::spawn(name, command.stdout(Stdio::piped()), log, output);
        let stdout = process.child.stdout.take().expect("stdout is piped");
        (process, stdout)
    }

    fn spawn(name: &str, command: &mut Command, log: PathBuf, output: File) -> Self {
        let child = command.stdin(Stdio::null()).stderr(output).process_group(0).spawn();
        let child = child.unwrap_or_else(|error| {
            panic!("{name}: cannot run {:?}: {error} (run `make setup`)", command.get_program())
        });
        Self { name: name.to_owned(), child, log }
    }

    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What the program wrote so far.
    #[must_use]
    pub fn log(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The exit status, once the program has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of this process")
    }

    /// # Panics
    /// When the program has ended, with its log.
    pub fn assert_running(&mut self) {
        if let Some(status) = self.ended() {
            panic!("{} ended with {status}\n{}", self.name, self.log());
        }
    }

    /// Waits for the program's own end.
    pub fn wait(&mut self, within: Duration) -> ExitStatus {
        let what = format!("end of {}", self.name);
        wait_until(&what, within, || self.child.try_wait().expect("a child of this process"))
    }

    /// Sends a signal such as `TERM` to the program alone.
    pub fn signal(&self, signal: &str) {
        kill(signal, &self.child.id().to_string());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("---- log of {} ----\n{}", self.name, tail(&self.log(), 60));
        }
        // The group has children of the child, too: a browser's, for example.
        kill("KILL", &format!("-{}", self.child.id()));
        let _ = self.child.wait();
    }
}

fn kill(signal: &str, target: &str) {
    let mut command = Command::new("kill");
    command.args(["-s", signal, "--", target]).stderr(Stdio::null());
    let _ = command.status();
}

fn log_file(name: &str, directory: &Path) -> (PathBuf, File) {
    let path = directory.join(format!("{name}.log"));
    let file = File::options().create(true).append(true).open(&path).expect("a log file");
    (path, file)
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
