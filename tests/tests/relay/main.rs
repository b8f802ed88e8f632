//! Streams on their way to other servers and from them, with two and more real gateways.

mod pull;
mod push;
mod targets;
mod tls;

use std::fmt::Write as _;
use std::net::SocketAddr;

use serde_json::Value;
use weir_e2e::script::{QUICK, SOON};
use weir_e2e::{Backend, Gateway, Process, Scratch, wait_until};

/// Two cores, and streams that are quick to leave.
const BASE: [&str; 8] = {
    let [a, b, c, d, e, f] = QUICK;
    [a, b, c, d, e, f, "--cores", "2"]
};

/// A configuration file with `[[push]]` and `[[pull]]` tables.
#[derive(Default)]
struct Relays(String);

impl Relays {
    fn push(mut self, stream: &str, url: &str) -> Self {
        let _ = write!(self.0, "[[push]]\nstream = {stream:?}\nurl = {url:?}\n");
        self
    }

    fn pull(mut self, stream: &str, url: &str, when: &str) -> Self {
        let _ = write!(self.0, "[[pull]]\nstream = {stream:?}\nurl = {url:?}\nwhen = {when:?}\n");
        self
    }

    /// One more setting of the last table.
    fn with(mut self, key: &str, value: &str) -> Self {
        let _ = writeln!(self.0, "{key} = {value:?}");
        self
    }

    fn file(&self, scratch: &Scratch) -> String {
        let path = scratch.file("relays.toml");
        std::fs::write(&path, &self.0).expect("a file");
        path.to_str().expect("UTF-8").to_owned()
    }
}

/// A gateway with two cores.
fn start(backend: Backend) -> Gateway {
    Gateway::start(backend, &BASE)
}

/// Another one with these relays.
fn beside(first: &Gateway, backend: Backend, relays: &Relays, more: &[&str]) -> Gateway {
    let file = relays.file(first.scratch());
    let base = BASE.chunks(2).filter(|pair| !more.contains(&pair[0])).flatten().copied();
    let all: Vec<&str> = base.chain(["--config", &file]).chain(more.iter().copied()).collect();
    first.beside(backend, &all)
}

/// Another one that takes RTMP at this address.
fn beside_at(first: &Gateway, backend: Backend, rtmp: SocketAddr) -> Gateway {
    first.beside(backend, &[&BASE[..], &["--rtmp", &rtmp.to_string()]].concat())
}

fn kill(gateway: &mut Gateway) {
    gateway.process().signal("KILL");
    gateway.process().wait(SOON);
}

fn relays(gateway: &Gateway) -> Vec<Value> {
    gateway.api("relays")["relays"].as_array().expect("relays").clone()
}

/// The relay to or from this server, once it is as wanted.
fn relay_when(
    gateway: &Gateway,
    what: &str,
    address: SocketAddr,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    wait_until(what, SOON, || {
        let here = |relay: &Value| {
            relay["url"].as_str().is_some_and(|url| url.contains(&address.to_string()))
        };
        relays(gateway).into_iter().find(|relay| here(relay) && wanted(relay))
    })
}

fn is_live(relay: &Value) -> bool {
    relay["state"] == "live"
}

fn wait_for_publisher(gateway: &Gateway, stream: &str) -> Value {
    wait_until("a publisher", SOON, || {
        gateway.stream(stream).filter(|stream| stream["publisher"].is_object())
    })
}

fn wait_for_no_publisher(gateway: &Gateway, stream: &str) {
    wait_until("no publisher", SOON, || {
        let stream = gateway.stream(stream);
        stream.is_none_or(|stream| stream["publisher"].is_null()).then_some(())
    });
}

fn process_log(gateway: &mut Gateway) -> String {
    let process: &mut Process = gateway.process();
    process.log()
}
