//! The whole path of a frame without its sockets: FLV bodies, access units, FLV again, HLS.

use std::collections::HashMap;

use bytes::Bytes;
use weir_hls::{Config, Format, Packager, Part, Segment};
use weir_protocol::flv::{self, Demuxer, Event, Tag};
use weir_protocol::media::{AccessUnit, Ticks, Track, TrackId};
use weir_protocol::pool::HeapPool;

use crate::mp4;

/// Packages what `tags` hold, and checks that times rise, lengths are as foretold and boxes fit.
/// Gives the number of bytes that were packaged.
pub(super) fn run(tags: Vec<Tag>) -> u64 {
    let mut stream = Stream::default();
    for tag in tags {
        stream.demuxer.push(tag.kind, tag.timestamp_ms, tag.body, &mut stream.pool);
        while let Some(event) = stream.demuxer.poll() {
            stream.event(event);
        }
    }
    stream.finish()
}

struct Stream {
    demuxer: Demuxer,
    packager: Packager,
    pool: HeapPool,
    tracks: Vec<Track>,
    last: HashMap<TrackId, Ticks>,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            demuxer: Demuxer::default(),
            packager: Packager::new(Config::default()),
            pool: HeapPool::default(),
            tracks: Vec::new(),
            last: HashMap::new(),
        }
    }
}

impl Stream {
    fn event(&mut self, event: Event) {
        match event {
            Event::Track(track) => {
                let _ = flv::sequence_header(&track);
                self.tracks.retain(|known| known.id != track.id);
                self.tracks.push(track);
                self.packager.set_tracks(&self.tracks);
            }
            Event::Unit(unit) => self.unit(&unit),
            Event::Metadata(metadata) => drop(flv::metadata(&self.tracks, &metadata)),
            Event::NewTimeline => self.packager.restarted(),
            Event::Skipped(_) | Event::Color(..) => {}
        }
    }

    fn unit(&mut self, unit: &AccessUnit) {
        let before = self.last.insert(unit.track, unit.dts);
        assert!(before.is_none_or(|before| unit.dts > before), "{:?} after {before:?}", unit.dts);
        let track = self.tracks.iter().find(|track| track.id == unit.track);
        let _ = flv::unit_header(track.expect("a track before its units"), unit);
        self.packager.push(unit);
    }

    fn finish(mut self) -> u64 {
        self.packager.end();
        let window = self.packager.window();
        for format in [Format::Fmp4, Format::Ts] {
            let _ = window.media_playlist(format);
        }
        let _ = (
            window.multivariant("media.m3u8"),
            window.delta_playlist(),
            window.resolve(1, Some(0)),
        );
        window.listed().iter().map(|segment| self.segment(segment)).sum()
    }

    fn segment(&mut self, segment: &Segment) -> u64 {
        let (mut fmp4, mut ts) = (0, 0);
        for part in segment.parts() {
            fmp4 += self.fragment(part);
            let packets = part.ts(&mut self.pool).expect("memory");
            let len: usize = packets.iter().map(Bytes::len).sum();
            assert_eq!((len as u64, len % 188), (part.ts_len(), 0));
            ts += len as u64;
        }
        assert_eq!((segment.len(Format::Fmp4), segment.len(Format::Ts)), (fmp4, ts));
        fmp4 + ts
    }

    fn fragment(&mut self, part: &Part) -> u64 {
        let bytes = part.fmp4(&mut self.pool).expect("memory").concat();
        assert_eq!(bytes.len() as u64, part.fmp4_len());
        mp4::Timeline::default().check(&bytes).expect("a whole fragment");
        bytes.len() as u64
    }
}
