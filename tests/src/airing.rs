//! One publish from its beginning to its end, and all that came out of it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;
use weir_protocol::flv::{Tag, TagKind};

use crate::gateway::Gateway;
use crate::playlist::Playlist;
use crate::process::wait_until;
use crate::replay::Target;
use crate::replay::edit::{Editor, is_frame};
use crate::replay::flv::{Clip, Sender};
use crate::script::{FlvPlayer, SOON, target};
use crate::tools::{self, Scratch};

/// A window of sixty segments and as many behind it keeps all of a short stream, whose playlist
/// can be fetched at its end. All on one core, so that a player has what its publisher sent.
pub const KEEP_ALL: [&str; 10] = [
    "--cores",
    "1",
    "--hls-segment",
    "1s",
    "--hls-part",
    "200ms",
    "--hls-window",
    "60",
    "--resume-window",
    "0s",
];

/// So much media goes between two looks at whether the gateway has read it. A live player may be
/// four seconds behind before it loses a frame.
const SLICE_MS: u64 = 1000;

/// Everything of a stream that has ended.
#[derive(Debug)]
pub struct Airing {
    pub key: String,
    /// What an HTTP-FLV player got that had come before the first frame.
    pub flv: Vec<Tag>,
    pub ts: Rendition,
    pub fmp4: Rendition,
    /// What the API said at the end.
    pub stream: Value,
    pub multivariant: String,
}

#[derive(Debug, Default)]
pub struct Rendition {
    pub playlist: Playlist,
    /// One per segment.
    pub segments: Vec<Vec<u8>>,
    /// The init segment of each; empty for a transport stream.
    pub inits: Vec<Vec<u8>>,
    pub samples: Vec<Sample>,
}

/// As ffprobe sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub kind: TagKind,
    /// In seconds.
    pub pts: f64,
    pub dts: f64,
    pub key: bool,
    pub bytes: usize,
    /// Of the segments, from 0.
    pub segment: usize,
}

impl Airing {
    /// Publishes a clip with edits as fast as it is taken, plays it over HTTP-FLV meanwhile, ends it,
    /// and fetches all of its HLS.
    ///
    /// # Panics
    /// When anything of that fails.
    #[must_use]
    pub fn of(gateway: &Gateway, key: &str, clip: &Clip, edits: &str) -> Self {
        Self::turns(gateway, key, clip, edits, 1)
    }

    /// The same with the clip so many times in a row.
    ///
    /// # Panics
    /// When anything of that fails.
    #[must_use]
    pub fn turns(gateway: &Gateway, key: &str, clip: &Clip, edits: &str, turns: u64) -> Self {
        let mut editor = Editor::parse(edits).expect("edits");
        let name = format!("live/{key}");
        let mut sender = Sender::start(&gateway.replay_target(key)).expect("it may publish");
        let connection = gateway.http_connection();
        let path = format!("/{name}.flv");
        let player = thread::spawn(move || {
            let mut player = FlvPlayer::start(connection, &path);
            std::iter::from_fn(|| player.next_tag()).collect::<Vec<Tag>>()
        });
        wait_until("the FLV player in the API", SOON, || {
            let stream = gateway.stream(&name)?;
            (stream["players"]["flv"] == 1).then_some(())
        });
        let mut next = SLICE_MS;
        for (tag, at_ms) in clip.turns(turns) {
            if at_ms >= next {
                next += SLICE_MS;
                sender.sync().unwrap_or_else(|error| panic!("{key} at {at_ms} ms: {error}"));
            }
            editor.push(tag, at_ms).iter().for_each(|tag| sender.send(tag));
        }
        sender.sync().unwrap_or_else(|error| panic!("{key} at its end: {error}"));
        let stream = gateway.stream(&name).expect("the stream in the API");
        sender.finish();
        let flv = player.join().expect("an FLV player that was served");
        let fmp4 = format!("/{name}/index.m3u8");
        let client = gateway.client();
        let multivariant = client.get(&gateway.http(&fmp4[1..])).text();
        let media = Playlist::parse(&multivariant).variants.first().cloned();
        let fmp4 = media.map(|media| Rendition::fetch(gateway, &target(&fmp4, &media)));
        let ts = Rendition::fetch(gateway, &format!("/{name}.m3u8"));
        Self { key: key.to_owned(), flv, ts, fmp4: fmp4.unwrap_or_default(), stream, multivariant }
    }

    /// Both renditions with their names.
    #[must_use]
    pub fn renditions(&self) -> [(&'static str, &Rendition); 2] {
        [("TS", &self.ts), ("fMP4", &self.fmp4)]
    }

    /// The frames of a kind.
    #[must_use]
    pub fn flv_frames(&self, kind: TagKind) -> Vec<&Tag> {
        self.flv.iter().filter(|tag| tag.kind == kind && is_frame(tag)).collect()
    }

    /// Repairs of time, as the API counted them.
    #[must_use]
    pub fn repairs(&self, kind: &str) -> u64 {
        self.stream["time_repairs"][kind].as_u64().unwrap_or_else(|| panic!("no {kind}"))
    }
}

impl Gateway {
    /// Where replay publishes `live/KEY`.
    #[must_use]
    pub fn replay_target(&self, key: &str) -> Target {
        let (rtmp, http) = (self.socket_addr("rtmp"), Some(self.socket_addr("http")));
        Target { rtmp, http, app: "live".into(), key: key.into() }
    }
}

impl Rendition {
    /// Waits for the end of the playlist at `path` and fetches what it lists.
    ///
    /// # Panics
    /// When it does not end, or something of it is not there.
    #[must_use]
    pub fn fetch(gateway: &Gateway, path: &str) -> Self {
        let client = gateway.client();
        let get = |path: &str| {
            let answer = client.get(&gateway.http(&path[1..]));
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            answer.body
        };
        let playlist = wait_until(&format!("the end of {path}"), SOON, || {
            let playlist = Playlist::parse(&String::from_utf8_lossy(&get(path)));
            playlist.ended.then_some(playlist)
        });
        let mut rendition = Self::default();
        for segment in &playlist.segments {
            rendition.segments.push(get(&target(path, &segment.uri)));
            let init = segment.map.as_ref().map(|map| get(&target(path, map)));
            rendition.inits.push(init.unwrap_or_default());
        }
        rendition.playlist = playlist;
        rendition.probe();
        rendition
    }

    /// Runs of segments with one init segment and without a discontinuity.
    #[must_use]
    pub fn runs(&self) -> Vec<std::ops::Range<usize>> {
        let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
        let breaks = |number: usize| self.playlist.segments[number].discontinuity;
        for (number, init) in self.inits.iter().enumerate() {
            match runs.last_mut() {
                Some(run) if self.inits[run.start] == *init && !breaks(number) => {
                    run.end = number + 1;
                }
                _ => runs.push(number..number + 1),
            }
        }
        runs
    }

    /// Segments as one file, behind their init segment.
    #[must_use]
    pub fn joined(&self, run: std::ops::Range<usize>) -> Vec<u8> {
        [&self.inits[run.start..=run.start], &self.segments[run]].concat().concat()
    }

    fn probe(&mut self) {
        for run in self.runs() {
            let mut ends = Vec::new();
            let mut at = self.inits[run.start].len();
            for segment in &self.segments[run.clone()] {
                at += segment.len();
                ends.push(at);
            }
            let scratch = Scratch::new();
            let file = scratch.file("joined");
            fs::write(&file, self.joined(run.clone())).expect("a file");
            self.samples.extend(probe(&file).into_iter().map(|(sample, position)| {
                let segment = run.start + ends.partition_point(|end| *end <= position);
                Sample { segment, ..sample }
            }));
        }
    }

    #[must_use]
    pub fn of(&self, kind: TagKind) -> Vec<&Sample> {
        self.samples.iter().filter(|sample| sample.kind == kind).collect()
    }

    /// The sum of the segments' durations in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.playlist.segments.iter().map(|segment| segment.duration).sum()
    }
}

/// The samples of a file, and where in it each begins.
fn probe(file: &Path) -> Vec<(Sample, usize)> {
    let mut command = Command::new("ffprobe");
    let entries = "packet=codec_type,pts_time,dts_time,size,pos,flags";
    command.args(["-v", "error", "-show_entries", entries, "-of", "compact=p=0"]).arg(file);
    let text = tools::run("ffprobe", &mut command);
    let samples = text.lines().filter_map(|line| {
        let field = |name: &str| {
            let mut fields = line.split('|').filter_map(|field| field.split_once('='));
            fields.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let kind = match field("codec_type")? {
            "video" => TagKind::Video,
            "audio" => TagKind::Audio,
            _ => return None,
        };
        let seconds = |name| field(name)?.parse().ok();
        let pts = seconds("pts_time")?;
        let sample = Sample {
            kind,
            pts,
            dts: seconds("dts_time").unwrap_or(pts),
            key: field("flags")?.contains('K'),
            bytes: field("size")?.parse().ok()?,
            segment: 0,
        };
        Some((sample, field("pos").and_then(|at| at.parse().ok()).unwrap_or(0)))
    });
    samples.collect()
}
