use std::time::Duration;

use super::text::TextIn;
use super::value::{Choice, Kind};
use super::{Absent, Config, Conflict, IoChoice};

/// One setting, as the file, the environment, the command line and the reference know it.
#[derive(Debug)]
pub struct Key {
    /// As in the file; a dot means a table: `hls.segment`.
    pub name: &'static str,
    pub kind: Kind,
    /// What it does and why one would change it, as one or two sentences.
    pub about: &'static str,
}

impl Key {
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// `WEIR_HLS_SEGMENT`
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{}{}", super::VARIABLE_PREFIX, self.name.replace('.', "_").to_uppercase())
    }

    /// `--hls-segment`
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.long())
    }

    /// `hls-segment`
    #[must_use]
    pub fn long(&self) -> String {
        self.name.replace(['.', '_'], "-")
    }

    /// The default as text.
    #[must_use]
    pub fn default(&self) -> String {
        self.kind.text(&Config::default())
    }
}

const MIB: u64 = 1 << 20;
const TIB: u64 = 1 << 40;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Every key there is, in the order of the reference.
pub static KEYS: &[Key] = &[
    Key {
        name: "rtmp",
        kind: Kind::Address(|config| &mut config.rtmp),
        about: "Where publishers push and RTMP players connect.",
    },
    Key {
        name: "rtmps",
        kind: Kind::Text(&TextIn(|config: &mut Config| &mut config.rtmps)),
        about: "Where the same is spoken with TLS. `auto` is 0.0.0.0:1936 once tls.certificate and \
                tls.key are set, and nowhere before.",
    },
    Key {
        name: "http",
        kind: Kind::Address(|config| &mut config.http),
        about: "Where players fetch HLS and HTTP-FLV, and browsers the player page.",
    },
    Key {
        name: "admin",
        kind: Kind::Address(|config| &mut config.admin),
        about: "Where operators find the API, the metrics and the health checks. It asks for no \
                password: keep it on loopback, or behind a proxy that does.",
    },
    Key {
        name: "cores",
        kind: Kind::Cores(|config| &mut config.cores),
        about: "CPUs that carry media, one pinned thread each: all that the process may use, the \
                first so many of them, or the listed ones (`2-2` is CPU 2 alone).",
    },
    Key {
        name: "io",
        kind: Kind::Choice(Choice {
            words: &IoChoice::NAMES,
            set: |config, choice| config.io = IoChoice::ALL[choice],
            get: |config| config.io as usize,
        }),
        about: "How bytes move. `auto` takes io_uring, or epoll where io_uring is forbidden, and \
                says so in the log; `uring` refuses to start without it.",
    },
    Key {
        name: "log",
        kind: Kind::Filter(|config| &mut config.log),
        about: "What is logged on stderr: `error`, `warn`, `info`, `debug` or `trace`, also per \
                module as in `info,weir::rtmp=debug`.",
    },
    Key {
        name: "resume_window",
        kind: Kind::Duration(s(0)..=s(600), |config| &mut config.resume_window),
        about: "How long a stream stays after its publisher left, by a stop or a loss, with playlist \
                and players, so that the publisher can come back to it. 0s ends it at once.",
    },
    Key {
        name: "publish.conflict",
        kind: Kind::Choice(Choice {
            words: &Conflict::NAMES,
            set: |config, choice| config.publish.conflict = Conflict::ALL[choice],
            get: |config| config.publish.conflict as usize,
        }),
        about: "When a publisher comes to a stream that has one: `takeover` gives it the stream at \
                once, so an encoder that comes back never waits for its own dead session; `refuse` \
                sends it away while the other one sends. One that has sent nothing for 2 s is \
                taken over in any case.",
    },
    Key {
        name: "rtmp_play.absent",
        kind: Kind::Choice(Choice {
            words: &Absent::NAMES,
            set: |config, choice| config.rtmp_play.absent = Absent::ALL[choice],
            get: |config| config.rtmp_play.absent as usize,
        }),
        about: "When an RTMP player asks for a stream that nobody publishes: `end` tells it so at \
                once; `wait` keeps it, and its play begins with the stream. A player whose stream \
                ends is told so in any case, and kept in the same way for when it comes back.",
    },
    Key {
        name: "rtmp_play.wait",
        kind: Kind::Duration(s(1)..=s(3600), |config| &mut config.rtmp_play.wait),
        about: "How long an RTMP player is kept waiting for its stream.",
    },
    Key {
        name: "hls.segment",
        kind: Kind::Duration(ms(500)..=s(30), |config| &mut config.hls.segment),
        about: "Least duration of a segment. Segments are cut at the first keyframe after it, so \
                the encoder's keyframe interval should divide it.",
    },
    Key {
        name: "hls.segment_max",
        kind: Kind::Duration(ms(500)..=s(60), |config| &mut config.hls.segment_max),
        about: "What TARGETDURATION can be at most. It is chosen by the first keyframes of a stream \
                and does not change; a segment whose next keyframe comes too late for it is cut \
                without one, and counted as cuts_without_keyframe.",
    },
    Key {
        name: "hls.part",
        kind: Kind::Duration(ms(50)..=s(5), |config| &mut config.hls.part),
        about: "Target duration of a Low-Latency HLS part; at most half of hls.segment. Players \
                stay about three parts behind live.",
    },
    Key {
        name: "hls.window",
        kind: Kind::Count(3..=60, |config| &mut config.hls.window),
        about: "Segments in the media playlist. More let a player pause longer and cost memory.",
    },
    Key {
        name: "memory.max",
        kind: Kind::Bytes(64 * MIB..=TIB, |config| &mut config.memory.max),
        about: "Budget for media in memory, all streams together. When it is used up, new \
                publishers and data are refused and counted; the process does not grow.",
    },
    Key {
        name: "limits.connections",
        kind: Kind::Count(16..=1_000_000, |config| &mut config.limits.connections),
        about: "Connections of RTMP and HTTP together. Each needs one file descriptor.",
    },
    Key {
        name: "limits.connections_per_address",
        kind: Kind::Count(1..=1_000_000, |config| &mut config.limits.connections_per_address),
        about: "Connections from one IP address. Raise it where all players come through one \
                proxy or CDN node.",
    },
    Key {
        name: "timeouts.handshake",
        kind: Kind::Duration(s(1)..=s(120), |config| &mut config.timeouts.handshake),
        about: "From an RTMP connection's start until it publishes or plays.",
    },
    Key {
        name: "timeouts.idle",
        kind: Kind::Duration(s(2)..=s(3600), |config| &mut config.timeouts.idle),
        about: "A publisher that sends nothing for so long is disconnected; its stream then stays \
                for resume_window.",
    },
    Key {
        name: "timeouts.http_header",
        kind: Kind::Duration(s(1)..=s(120), |config| &mut config.timeouts.http_header),
        about: "For a request's head to arrive, and for the next request on a kept connection.",
    },
    Key {
        name: "timeouts.send_stall",
        kind: Kind::Duration(s(1)..=s(600), |config| &mut config.timeouts.send_stall),
        about: "A player that takes no byte for so long, while there are some for it, is \
                disconnected.",
    },
    Key {
        name: "timeouts.player_silence",
        kind: Kind::Duration(s(3)..=s(3600), |config| &mut config.timeouts.player_silence),
        about: "An RTMP player to which no media goes, because it pauses or its stream does, is \
                pinged; one that answers nothing for so long is disconnected.",
    },
    Key {
        name: "tls.certificate",
        kind: Kind::Text(&TextIn(|config: &mut Config| &mut config.tls.certificate)),
        about: "What RTMPS shows: a PEM file with the server's certificate first and those of its \
                issuers behind it. It is read anew when it changes, and on SIGHUP; sessions stay.",
    },
    Key {
        name: "tls.key",
        kind: Kind::Text(&TextIn(|config: &mut Config| &mut config.tls.key)),
        about: "The private key that belongs to tls.certificate: a PEM file without a passphrase.",
    },
];
