//! The operator's settings: one typed [`Config`], set by flags, environment, file and defaults.
//!
//! Every key is declared once, in [`keys::KEYS`]. The file reader, the `WEIR_*` variables, the
//! command line, the reference document and the printed configuration all walk that table. What
//! there can be any number of is a list in `lists::LISTS`, and stands in the file alone.

mod cores;
mod error;
mod file;
mod keys;
mod list;
mod lists;
mod reference;
mod text;
mod tls;
mod value;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use crate::auth::PublishKey;
use crate::relay::rules::Rules;

pub use cores::{CoreChoiceError, Cores};
pub use error::{ConfigError, Place};
pub use keys::{KEYS, Key};
pub use reference::{Secrets, markdown, toml};
pub use tls::{Rtmps, Tls};

/// What `weir run` acts on. The meaning and range of each field stand in [`KEYS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub rtmp: SocketAddr,
    pub rtmps: Rtmps,
    pub http: SocketAddr,
    pub admin: SocketAddr,
    pub cores: Cores,
    pub io: IoChoice,
    pub log: String,
    pub resume_window: Duration,
    pub hls: Hls,
    pub memory: Memory,
    pub limits: ConnectionLimits,
    pub timeouts: Timeouts,
    pub tls: Tls,
    pub publish: Publish,
    pub rtmp_play: RtmpPlay,
    pub publish_keys: Vec<PublishKey>,
    pub relays: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hls {
    pub segment: Duration,
    pub segment_max: Duration,
    pub part: Duration,
    /// Segments.
    pub window: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes.
    pub max: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub connections: usize,
    pub connections_per_address: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub handshake: Duration,
    pub idle: Duration,
    pub http_header: Duration,
    pub send_stall: Duration,
    pub player_silence: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    pub conflict: Conflict,
}

/// What becomes of a publisher whose stream has one already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// It takes the stream over at once.
    Takeover,
    /// It is refused while the other one sends.
    Refuse,
}

impl Conflict {
    pub const ALL: [Self; 2] = [Self::Takeover, Self::Refuse];
    pub const NAMES: [&'static str; 2] = ["takeover", "refuse"];
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtmpPlay {
    pub absent: Absent,
    pub wait: Duration,
}

/// What an RTMP player gets that asks for a stream which nobody publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The answer that it is not there, at once.
    End,
    /// The stream, when it comes in time.
    Wait,
}

impl Absent {
    pub const ALL: [Self; 2] = [Self::End, Self::Wait];
    pub const NAMES: [&'static str; 2] = ["end", "wait"];
}

/// Which kernel interface moves the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoChoice {
    /// io_uring where the kernel allows it, else epoll with a line in the log that says so.
    Auto,
    Uring,
    Epoll,
}

impl IoChoice {
    pub const ALL: [Self; 3] = [Self::Auto, Self::Uring, Self::Epoll];
    pub const NAMES: [&'static str; 3] = ["auto", "uring", "epoll"];
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rtmp: (Ipv4Addr::UNSPECIFIED, 1935).into(),
            rtmps: Rtmps::Auto,
            http: (Ipv4Addr::UNSPECIFIED, 8080).into(),
            admin: (Ipv4Addr::LOCALHOST, 9090).into(),
            cores: Cores::All,
            io: IoChoice::Auto,
            log: "info".to_owned(),
            resume_window: Duration::from_secs(10),
            hls: Hls {
                segment: Duration::from_secs(2),
                segment_max: Duration::from_secs(10),
                part: Duration::from_millis(200),
                window: 6,
            },
            memory: Memory { max: 1 << 30 },
            limits: ConnectionLimits { connections: 16_384, connections_per_address: 4096 },
            timeouts: Timeouts {
                handshake: Duration::from_secs(10),
                idle: Duration::from_secs(30),
                http_header: Duration::from_secs(10),
                send_stall: Duration::from_secs(10),
                player_silence: Duration::from_secs(60),
            },
            tls: Tls::default(),
            rtmp_play: RtmpPlay { absent: Absent::End, wait: Duration::from_secs(30) },
            publish: Publish { conflict: Conflict::Takeover },
            publish_keys: Vec::new(),
            relays: Rules::default(),
        }
    }
}

/// Where settings come from, besides the defaults. Later fields win over earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    pub file: Option<PathBuf>,
    /// All variables of the process; those that do not begin with `WEIR_` are passed over.
    pub env: Vec<(String, String)>,
    pub flags: Vec<(&'static Key, String)>,
}

/// A valid configuration, and where each key that is not a default was set.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub config: Config,
    pub places: BTreeMap<&'static str, Place>,
}

/// The variable that names the configuration file; `--config` wins over it.
pub const CONFIG_VARIABLE: &str = "WEIR_CONFIG";

const VARIABLE_PREFIX: &str = "WEIR_";

impl Layers {
    /// Puts the layers on top of each other and checks the result.
    ///
    /// # Errors
    /// The first setting that cannot be used, with its place and what would be allowed there.
    pub fn load(self) -> Result<Loaded, ConfigError> {
        let mut loaded = Loaded { config: Config::default(), places: BTreeMap::new() };
        let names_file =
            |(name, value): &&(String, String)| name == CONFIG_VARIABLE && !value.is_empty();
        let named_by_env = self.env.iter().find(names_file);
        let path = self.file.or_else(|| named_by_env.map(|(_, value)| PathBuf::from(value)));
        if let Some(path) = path {
            let text = file::read(&path)?;
            let settings = file::settings(&path, &text)?;
            for entry in settings.entries {
                loaded.set(entry.key, &entry.text, entry.place)?;
            }
            for row in &settings.rows {
                row.list.add(&mut loaded.config, row)?;
            }
        }
        for (variable, text) in &self.env {
            if let Some(key) = key_of_variable(variable, text)? {
                loaded.set(key, text, Place::Variable(key.variable()))?;
            }
        }
        for (key, text) in &self.flags {
            loaded.set(key, text, Place::Flag(key.flag()))?;
        }
        loaded.check()?;
        Ok(loaded)
    }
}

impl Loaded {
    fn set(&mut self, key: &'static Key, text: &str, place: Place) -> Result<(), ConfigError> {
        match key.kind.set(&mut self.config, text) {
            Ok(()) => {
                self.places.insert(key.name, place);
                Ok(())
            }
            Err(_) => Err(ConfigError::bad_value(place, key, text)),
        }
    }

    /// Rules between keys. Both keys are named, with the place of each.
    fn check(&self) -> Result<(), ConfigError> {
        let Config { hls, .. } = &self.config;
        if hls.part > hls.segment / 2 {
            let rule = "a part can be at most half a segment";
            return Err(self.conflict("hls.part", "hls.segment", rule));
        }
        if hls.segment_max < hls.segment {
            let rule = "the longest segment cannot be shorter than the usual one";
            return Err(self.conflict("hls.segment_max", "hls.segment", rule));
        }
        self.check_tls()?;
        let Config { rtmp, rtmps, http, admin, tls, .. } = &self.config;
        let mut listeners = vec![("rtmp", *rtmp), ("http", *http), ("admin", *admin)];
        listeners.extend(rtmps.address(tls).map(|rtmps| ("rtmps", rtmps)));
        for (index, (first, address)) in listeners.iter().enumerate() {
            for (second, other) in listeners.iter().skip(index + 1) {
                if address == other && address.port() != 0 {
                    return Err(self.conflict(first, second, "each listener needs its own port"));
                }
            }
        }
        Ok(())
    }

    fn check_tls(&self) -> Result<(), ConfigError> {
        let Config { tls, rtmps, .. } = &self.config;
        if tls.certificate.is_some() != tls.key.is_some() {
            let rule = "name both files, or none";
            return Err(self.conflict("tls.certificate", "tls.key", rule));
        }
        if matches!(rtmps, Rtmps::At(_)) && tls.certificate.is_none() {
            let rule = "RTMPS needs a certificate and its key";
            return Err(self.conflict("rtmps", "tls.certificate", rule));
        }
        Ok(())
    }

    fn conflict(&self, first: &'static str, second: &'static str, rule: &str) -> ConfigError {
        let describe = |name: &'static str| {
            let text = Key::named(name).map(|key| key.kind.text(&self.config)).unwrap_or_default();
            match self.places.get(name) {
                Some(place) => format!("{name} = {text} ({place})"),
                None => format!("{name} = {text} (default)"),
            }
        };
        ConfigError::Conflict {
            first: describe(first),
            second: describe(second),
            rule: rule.to_owned(),
        }
    }
}

/// The key a variable sets; `None` for a variable that is not meant for Weir, or is empty: Compose
/// files and shells have no other way to leave one out.
fn key_of_variable(variable: &str, value: &str) -> Result<Option<&'static Key>, ConfigError> {
    if !variable.starts_with(VARIABLE_PREFIX)
        || value.is_empty()
        || variable == CONFIG_VARIABLE
        || is_service_link(variable, value)
    {
        return Ok(None);
    }
    match KEYS.iter().find(|key| key.variable() == variable) {
        Some(key) => Ok(Some(key)),
        None => Err(ConfigError::unknown_variable(variable)),
    }
}

/// Kubernetes puts the address of a Service called "weir" into every container of the namespace:
/// `WEIR_SERVICE_HOST`, `WEIR_PORT=tcp://…`, `WEIR_PORT_1935_TCP_ADDR`. Those are no typing errors.
fn is_service_link(variable: &str, value: &str) -> bool {
    variable.starts_with("WEIR_SERVICE_")
        || variable.starts_with("WEIR_PORT_")
        || (variable == "WEIR_PORT" && value.contains("://"))
}

#[cfg(test)]
mod tests;
