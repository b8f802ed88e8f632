//! An HLS client that keeps what it is served, for the validators.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::http::{Answer, Client};
use crate::playlist::{Playlist, Segment, resolve};

/// What was served for one media playlist.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Every version of the playlist, in order, and the multivariant playlists before it.
    pub playlists: Vec<PathBuf>,
    /// Whole segments in order.
    pub segments: Vec<Piece>,
    /// Parts in order, of segments that were recorded whole and of the open one.
    pub parts: Vec<Piece>,
    /// The last version of the playlist.
    pub last: Playlist,
}

/// A segment or a part.
#[derive(Clone, Debug)]
pub struct Piece {
    pub uri: String,
    pub duration: f64,
    pub file: PathBuf,
    /// The file of its init segment; none for TS.
    pub init: Option<PathBuf>,
}

impl Piece {
    /// # Panics
    /// When the file is gone.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.file).expect("a recorded file")
    }
}

impl Recording {
    /// All segments after their init segment in one file, as a player would see them.
    ///
    /// # Panics
    /// When segments have more than one init segment.
    #[must_use]
    pub fn joined(&self) -> PathBuf {
        let first = self.segments.first().expect("a recorded segment");
        let alike = self.segments.iter().all(|segment| segment.init == first.init);
        assert!(alike, "segments of several init segments cannot be one file");
        let init = first.init.as_ref().map(|file| std::fs::read(file).expect("an init segment"));
        let mut bytes = init.unwrap_or_default();
        self.segments.iter().for_each(|segment| bytes.extend(segment.bytes()));
        let name = if first.init.is_some() { "joined.mp4" } else { "joined.ts" };
        let file = first.file.with_file_name(name);
        std::fs::write(&file, bytes).expect("a file");
        file
    }
}

/// Follows the playlist at `url` (the first variant, if it is a multivariant one) until `enough`
/// seconds of whole segments are recorded in `directory`, or the playlist ends.
///
/// # Panics
/// When any request fails, or nothing new comes for long.
#[must_use]
pub fn record(url: &str, enough: f64, directory: &Path) -> Recording {
    std::fs::create_dir_all(directory).expect("a directory");
    let mut recorder = Recorder {
        client: Client::default(),
        directory,
        stored: HashSet::new(),
        recording: Recording::default(),
    };
    recorder.follow(url, enough);
    recorder.recording
}

const NOTHING_NEW: Duration = Duration::from_secs(20);

struct Recorder<'a> {
    client: Client,
    directory: &'a Path,
    stored: HashSet<String>,
    recording: Recording,
}

impl Recorder<'_> {
    fn follow(&mut self, url: &str, enough: f64) {
        let mut url = url.to_owned();
        let mut playlist = self.playlist(&url);
        if let Some(variant) = playlist.variants.first() {
            url = resolve(&url, variant);
            playlist = self.playlist(&url);
        }
        let mut progress = Instant::now();
        loop {
            let before = self.stored.len();
            self.store_pieces(&url, &playlist);
            if self.stored.len() > before {
                progress = Instant::now();
            }
            let recorded: f64 = self.recording.segments.iter().map(|piece| piece.duration).sum();
            let ended = playlist.ended;
            self.recording.last = playlist;
            if recorded >= enough || ended {
                return;
            }
            assert!(progress.elapsed() < NOTHING_NEW, "{url}: nothing new for {NOTHING_NEW:?}");
            playlist = self.reload(&url);
        }
    }

    /// A blocking reload where the playlist offers it, else one after half a target duration
    /// (RFC 8216bis §6.3.4).
    fn reload(&mut self, url: &str) -> Playlist {
        let last = &self.recording.last;
        if !last.can_block_reload {
            thread::sleep(Duration::from_secs_f64(last.target_duration / 2.0));
            return self.playlist(url);
        }
        let (msn, part) = last.next_part();
        let join = if url.contains('?') { '&' } else { '?' };
        let part = last.part_target.map(|_| format!("&_HLS_part={part}")).unwrap_or_default();
        self.playlist(&format!("{url}{join}_HLS_msn={msn}{part}"))
    }

    fn playlist(&mut self, url: &str) -> Playlist {
        let answer = self.get(url);
        let name = format!("playlist-{:04}.m3u8", self.recording.playlists.len());
        let text = answer.text();
        self.recording.playlists.push(self.write(&name, &answer.body));
        Playlist::parse(&text)
    }

    fn store_pieces(&mut self, base: &str, playlist: &Playlist) {
        for segment in &playlist.segments {
            let parts = self.pieces(base, segment);
            self.recording.parts.extend(parts);
            let piece = self.piece(base, &segment.uri, segment.duration, segment.map.as_deref());
            self.recording.segments.extend(piece);
        }
        let map = playlist.segments.last().and_then(|segment| segment.map.clone());
        let open = Segment { map, parts: playlist.open_parts.clone(), ..Segment::default() };
        let parts = self.pieces(base, &open);
        self.recording.parts.extend(parts);
    }

    fn pieces(&mut self, base: &str, segment: &Segment) -> Vec<Piece> {
        let map = segment.map.as_deref();
        let parts = segment.parts.iter();
        parts.filter_map(|part| self.piece(base, &part.uri, part.duration, map)).collect()
    }

    /// Fetches a piece that was not fetched before.
    fn piece(&mut self, base: &str, uri: &str, duration: f64, map: Option<&str>) -> Option<Piece> {
        let init = map.map(|map| self.fetch(base, map).0);
        let (file, fetched) = self.fetch(base, uri);
        fetched.then(|| Piece { uri: uri.to_owned(), duration, file, init })
    }

    /// The file of `uri`, and whether it was fetched just now.
    fn fetch(&mut self, base: &str, uri: &str) -> (PathBuf, bool) {
        let url = resolve(base, uri);
        let path = url.split(['?', '#']).next().unwrap_or(&url);
        let path = path.split_once("://").map_or(path, |(_, rest)| rest);
        let name = path.split_once('/').map_or(path, |(_, path)| path).replace('/', "_");
        if !self.stored.insert(url.clone()) {
            return (self.directory.join(name), false);
        }
        let answer = self.get(&url);
        assert!(!answer.body.is_empty(), "{url}: empty");
        (self.write(&name, &answer.body), true)
    }

    fn get(&self, url: &str) -> Answer {
        let answer = self.client.get(url);
        assert_eq!(answer.status, 200, "{url}: {}", answer.text());
        answer
    }

    fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let file = self.directory.join(name);
        std::fs::write(&file, bytes).expect("a file");
        file
    }
}
