//! What every version of a playlist must hold, over seeded streams of all plausible kinds.

use std::time::Duration;

use weir_hls::{Config, Format, Packager};
use weir_protocol::media::{AccessUnit, Ticks};

use super::{Checker, Feed, Random, VIDEO};

/// A media playlist as text says it, in seconds.
#[derive(Debug, Default)]
struct Text {
    target: f64,
    part_target: Option<f64>,
    first_msn: u64,
    segments: Vec<Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    parts: Vec<f64>,
    /// `None` while the segment is open.
    whole: Option<(f64, String)>,
}

fn read(text: &str) -> Text {
    let mut read = Text::default();
    let mut next = Entry::default();
    for line in text.lines() {
        let (tag, value) = line.split_once(':').unwrap_or((line, ""));
        let first = || value.split([',', '=']).next().unwrap().parse().unwrap();
        let second = || value.split([',', '=']).nth(1).unwrap().parse().unwrap();
        match tag {
            "#EXT-X-TARGETDURATION" => read.target = first(),
            "#EXT-X-PART-INF" => read.part_target = Some(second()),
            "#EXT-X-MEDIA-SEQUENCE" => read.first_msn = value.parse().unwrap(),
            "#EXT-X-PART" => next.parts.push(second()),
            "#EXTINF" => next.whole = Some((first(), String::new())),
            _ if !line.starts_with('#') => {
                next.whole.as_mut().unwrap().1 = line.to_owned();
                read.segments.push(std::mem::take(&mut next));
            }
            _ => {}
        }
    }
    read.segments.push(next);
    read
}

/// What must be the same in all versions.
#[derive(Default)]
struct Fixed {
    version: u64,
    targets: Option<(f64, Option<f64>)>,
    first_msn: u64,
}

impl Fixed {
    /// Checks the playlist, if it is another one.
    fn check(&mut self, packager: &mut Packager) {
        let window = packager.window();
        if window.version() == self.version || !window.is_playable(Format::Fmp4) {
            return;
        }
        self.version = window.version();
        let text = String::from_utf8(window.media_playlist(Format::Fmp4).to_vec()).unwrap();
        let playlist = read(&text);
        let targets = (playlist.target, playlist.part_target);
        assert_eq!(*self.targets.get_or_insert(targets), targets, "{text}");
        let part_target = playlist.part_target.unwrap();
        assert!(part_target <= playlist.target, "{text}");
        assert!(playlist.first_msn >= self.first_msn, "{text}");
        self.first_msn = playlist.first_msn;
        for (msn, entry) in (playlist.first_msn..).zip(&playlist.segments) {
            assert!(entry.parts.iter().all(|part| *part <= part_target && *part > 0.0), "{text}");
            if let Some((duration, uri)) = &entry.whole {
                assert!(duration.round() <= playlist.target, "{text}");
                assert_eq!(*uri, format!("p/{msn}.m4s"), "{text}");
            }
        }
    }
}

#[derive(Debug)]
struct Stream {
    feed: Feed,
    config: Config,
    /// From when on, for how long, and whether the audio pauses as well.
    gaps: Vec<(i64, i64, bool)>,
    /// The last units are missing.
    cut_off: usize,
}

impl Stream {
    fn random(seed: u64) -> Self {
        let mut random = Random(seed * 0x9e37_79b9);
        let mut one_of = |values: &[i64]| values[random.below(values.len() as u64) as usize];
        let rates = [(25, 1), (30, 1), (30_000, 1001), (50, 1), (60, 1), (24, 1), (15, 1), (5, 1)];
        let rare = [(1, 2), (1, 6)];
        let rates: Vec<_> = rates.into_iter().chain(rare).collect();
        let rate = rates[one_of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]) as usize];
        let gop_ms = one_of(&[40, 480, 1000, 2000, 2000, 3300, 6000, 12_000, 60_000]);
        let segment_ms = one_of(&[1000, 2000, 2000, 2200, 6000]);
        let config = Config {
            prefix: "p".into(),
            segment: Duration::from_millis(segment_ms as u64),
            segment_max: Duration::from_millis(one_of(&[segment_ms, 10_000, 10_300]) as u64),
            part: Duration::from_millis(one_of(&[100, 200, 200, 330]) as u64),
            window: one_of(&[3, 7]) as usize,
            ..Config::default()
        };
        let audio = one_of(&[0, 22_050, 44_100, 48_000]);
        let feed = Feed {
            rate: (audio == 0 || one_of(&[0, 1, 2, 3]) > 0).then_some(rate),
            gop: (gop_ms * rate.0 / rate.1 / 1000).max(1),
            audio: (audio > 0).then_some(audio as u32),
            seconds: one_of(&[1, 3, 20, 40]),
            start_ms: one_of(&[0, 5, 1 << 31]),
            seed,
            ..Feed::default()
        };
        let gap = |_| {
            let (from, long) =
                (one_of(&[300, 960, 2000, 7010]), one_of(&[300, 2100, 9900, 11_500]));
            (from, long, one_of(&[0, 1]) == 1)
        };
        let gaps = (0..seed as i64 % 3).map(gap).collect();
        Self { feed, config, gaps, cut_off: random.below(40) as usize }
    }

    fn units(&self) -> Vec<AccessUnit> {
        let mut units = self.feed.units();
        units.truncate(units.len().saturating_sub(self.cut_off));
        for (from, long, all) in &self.gaps {
            let begin = Ticks::from_ms(self.feed.start_ms + from);
            let end = begin + Ticks::from_ms(*long);
            units.retain(|unit| {
                unit.dts < begin || unit.dts >= end || !(*all || unit.track == VIDEO)
            });
        }
        units
    }
}

#[test]
fn every_version_of_every_playlist() {
    for seed in 1..250 {
        let stream = Stream::random(seed);
        // The last line that a failure shows.
        println!("seed {seed}: {stream:?}");
        let mut packager = stream.feed.packager(stream.config.clone());
        let (mut checker, mut fixed) = (Checker::default(), Fixed::default());
        let units = stream.units();
        for unit in &units {
            packager.push(unit);
            checker.check(&mut packager);
            fixed.check(&mut packager);
        }
        packager.end();
        checker.check(&mut packager);
        fixed.check(&mut packager);
        let least = Ticks(packager.window().part_target().0 * 85 / 100);
        let followed = checker.parts.iter().zip(checker.parts.iter().skip(1));
        let in_segment = followed.filter(|(part, next)| next.msn() == part.msn());
        let short = in_segment.filter(|(part, _)| part.duration() < least).count();
        // One before each gap: what lasts across it cannot be divided.
        assert!(short <= stream.gaps.len(), "{short} short parts");
    }
}
