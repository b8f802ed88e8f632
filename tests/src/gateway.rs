//! The gateway under test: the real binary on ports of its own.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::process::{ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::http::Client;
use crate::process::{Process, wait_until};
use crate::reserved::ReservedListeners;
use crate::tools::{self, Scratch};

/// How the gateway talks to the kernel. Each end-to-end test runs with both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Uring,
    Epoll,
}

impl Backend {
    pub const ALL: [Self; 2] = [Self::Uring, Self::Epoll];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "uring",
            Self::Epoll => "epoll",
        }
    }
}

const STARTS_WITHIN: Duration = Duration::from_secs(15);
const STREAM_WITHIN: Duration = Duration::from_secs(30);

/// A running gateway. Tests that hold one take turns: they measure stalls, and the machine is small.
#[derive(Debug)]
pub struct Gateway {
    process: Process,
    addresses: HashMap<String, String>,
    client: Client,
    scratch: Scratch,
    /// None for one that was started beside another.
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Gateway {
    /// Starts the gateway and waits until it says that all its sockets listen.
    ///
    /// # Panics
    /// When it does not, with its log.
    #[must_use]
    pub fn start(backend: Backend, arguments: &[&str]) -> Self {
        let free = ["--rtmp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
        Self::start_with(backend, &[&free, arguments].concat())
    }

    /// Like [`Gateway::start`], on addresses of the test.
    ///
    /// # Panics
    /// When it does not start, with its log.
    #[must_use]
    pub fn start_on(backend: Backend, on: &ReservedListeners, arguments: &[&str]) -> Self {
        let on = on.arguments();
        let on: Vec<&str> = on.iter().map(String::as_str).collect();
        Self::start_with(backend, &[&on, arguments].concat())
    }

    fn start_with(backend: Backend, arguments: &[&str]) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        Self::start_in(Some(turn), backend, arguments)
    }

    /// Starts another gateway in this one's turn, on ports of its own unless the arguments have some.
    ///
    /// # Panics
    /// When it does not start, with its log.
    #[must_use]
    pub fn beside(&self, backend: Backend, arguments: &[&str]) -> Self {
        let mut all = Vec::new();
        for listener in ["--rtmp", "--http", "--admin"] {
            if !arguments.contains(&listener) {
                all.extend([listener, "127.0.0.1:0"]);
            }
        }
        all.extend(arguments);
        Self::start_in(None, backend, &all)
    }

    fn start_in(
        turn: Option<MutexGuard<'static, ()>>,
        backend: Backend,
        arguments: &[&str],
    ) -> Self {
        let scratch = Scratch::new();
        let mut command = Command::new(tools::gateway_binary());
        command.args(["run", "--io", backend.name()]);
        let command = command.args(arguments).current_dir(scratch.path());
        let (process, stdout) = Process::start_piped("gateway", command, scratch.path());
        let addresses = ready_line(&process, stdout);
        assert_eq!(addresses.get("io").map(String::as_str), Some(backend.name()));
        Self { process, addresses, client: Client::default(), scratch, _turn: turn }
    }

    fn address(&self, listener: &str) -> &str {
        let address = self.addresses.get(listener);
        address.unwrap_or_else(|| panic!("no {listener}= in the ready line"))
    }

    /// `rtmp://…/PATH`.
    #[must_use]
    pub fn rtmp(&self, path: &str) -> String {
        format!("rtmp://{}/{path}", self.address("rtmp"))
    }

    /// `rtmps://…/PATH`.
    #[must_use]
    pub fn rtmps(&self, path: &str) -> String {
        format!("rtmps://{}/{path}", self.address("rtmps"))
    }

    /// `http://…/PATH`.
    #[must_use]
    pub fn http(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address("http"))
    }

    /// `http://…/PATH` of the operators' listener.
    #[must_use]
    pub fn admin(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address("admin"))
    }

    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A directory for this test's files.
    #[must_use]
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    #[must_use]
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The listeners' names and addresses, to start another gateway with.
    #[must_use]
    pub fn listeners(&self) -> Vec<(String, String)> {
        let of = |name: &str| Some((name.to_owned(), self.addresses.get(name)?.clone()));
        ["rtmp", "rtmps", "http", "admin"].into_iter().filter_map(of).collect()
    }

    /// Waits until the playlist at `path` is there, and gives it. A gateway serves a playlist only
    /// once a player can play it.
    ///
    /// # Panics
    /// When that takes too long, or the gateway ends.
    pub fn wait_for(&mut self, path: &str) -> String {
        let url = self.http(path);
        wait_until(&format!("{path} to be on air"), STREAM_WITHIN, || {
            self.process.assert_running();
            let answer = self.client.try_get(&url).ok()?;
            (answer.status == 200).then(|| answer.text())
        })
    }

    /// Asks the gateway to stop, and waits for its end.
    pub fn stop(&mut self, within: Duration) -> ExitStatus {
        self.process.signal("TERM");
        self.process.wait(within)
    }
}

/// Reads `weir ready rtmp=… http=… admin=… io=… cores=…`, and whatever follows it to the end.
fn ready_line(process: &Process, stdout: ChildStdout) -> HashMap<String, String> {
    let (sender, lines): (_, Receiver<String>) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    loop {
        match lines.recv_timeout(STARTS_WITHIN) {
            Ok(line) => {
                if let Some(pairs) = line.strip_prefix("weir ready ") {
                    let pairs = pairs.split(' ').filter_map(|pair| pair.split_once('='));
                    return pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
                }
            }
            Err(RecvTimeoutError::Timeout) => panic!("not ready within {STARTS_WITHIN:?}"),
            Err(RecvTimeoutError::Disconnected) => panic!("it ended early\n{}", process.log()),
        }
    }
}
