use super::samples::DRIFT;
use super::*;

const VIDEO: TrackId = TrackId(0);
const AUDIO: TrackId = TrackId(1);

fn at(timestamp_ms: u32) -> Arrival {
    Arrival { timestamp_ms, fraction: Ticks::ZERO, samples: None }
}

/// Stamps video frames and gives their places in milliseconds, a new timeline marked by `true`.
fn video(timestamps: &[u32]) -> (Vec<(i64, bool)>, Repairs) {
    let mut normaliser = Normaliser::default();
    let mut stamp = |timestamp: &u32| {
        let stamp = normaliser.stamp(VIDEO, at(*timestamp));
        (stamp.dts.as_ms(), stamp.new_timeline)
    };
    let places = timestamps.iter().map(&mut stamp).collect();
    (places, normaliser.repairs())
}

#[test]
fn steps_are_classed() {
    let table: &[(&[u32], &[i64], Repairs)] = &[
        (&[500, 540, 580], &[0, 40, 80], Repairs::default()),
        (&[0, 5_000, 15_000], &[0, 5_000, 15_000], Repairs::default()),
        (&[u32::MAX - 5, 4, 44], &[0, 10, 50], Repairs { wraps: 1, ..Repairs::default() }),
        (&[0x7fff_ffff - 9, 30, 70], &[0, 40, 80], Repairs { wraps: 1, ..Repairs::default() }),
        (&[0xff_ffff - 9, 30, 70], &[0, 40, 80], Repairs { wraps: 1, ..Repairs::default() }),
        (&[0xff_ffff - 9, 0x100_0000 + 30], &[0, 40], Repairs::default()),
        (&[0, 0, 40, 40, 20], &[0, 0, 40, 40, 40], Repairs { jitter: 3, ..Repairs::default() }),
        (
            &[0, 40, 37_600_080, 120],
            &[0, 40, 80, 120],
            Repairs { outliers: 1, ..Repairs::default() },
        ),
        (
            &[9_800_000, 9_800_040, 80, 9_800_120],
            &[0, 40, 80, 120],
            Repairs { outliers: 1, ..Repairs::default() },
        ),
    ];
    for (timestamps, places, repairs) in table {
        let expected = places.iter().map(|place| (*place, false)).collect();
        assert_eq!(video(timestamps), (expected, *repairs), "{timestamps:?}");
    }
}

#[test]
fn a_persisting_jump_is_a_new_timeline_and_time_goes_on() {
    for second in [0_u32, 1_000, 3_600_000, 100_000_000] {
        let first = (0..10).map(|frame| 60_000 + frame * 40);
        let then = (0..10).map(|frame| second + frame * 40);
        let timestamps: Vec<_> = first.chain(then).collect();
        let (places, repairs) = video(&timestamps);
        let expected: Vec<_> = (0..20).map(|frame| (frame * 40, frame == 12)).collect();
        assert_eq!(places, expected, "to {second}");
        assert_eq!(repairs, Repairs { new_timelines: 1, ..Repairs::default() });
    }
}

#[test]
fn decoding_times_rise_strictly_whatever_comes() {
    let mut normaliser = Normaliser::default();
    let (mut state, mut last) = (1_u32, [Ticks(i64::MIN); 2]);
    for round in 0..200_000_u32 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let timestamp_ms = match state >> 28 {
            0 => state,
            1 => state >> 16,
            _ => round * 20,
        };
        let samples = (round % 2 == 1).then_some((state >> 20, (state >> 8 & 0xffff) + 1));
        let track = TrackId((round % 2) as u8);
        let stamp = normaliser.stamp(track, Arrival { samples, ..at(timestamp_ms) });
        let last = &mut last[usize::from(track.0)];
        assert!(stamp.dts > *last, "round {round}");
        *last = stamp.dts;
    }
}

/// Audio and video by turns; `edit` gives the timestamps of the frame at a true time.
fn both(ms: i64, edit: impl Fn(TrackId, i64) -> i64) -> (Vec<[Stamp; 2]>, Repairs) {
    let mut normaliser = Normaliser::default();
    let mut stamps = Vec::new();
    for true_ms in (0..ms).step_by(40) {
        stamps.push(
            [VIDEO, AUDIO].map(|track| normaliser.stamp(track, at(edit(track, true_ms) as u32))),
        );
    }
    (stamps, normaliser.repairs())
}

fn assert_together(stamps: &[[Stamp; 2]], within_ms: i64) {
    for (frame, [video, audio]) in stamps.iter().enumerate() {
        let apart = distance(video.dts, audio.dts).as_ms();
        assert!(apart <= within_ms, "frame {frame}: {apart} ms apart");
    }
}

#[test]
fn tracks_restart_together_with_one_event() {
    let (stamps, repairs) = both(20_000, |_, ms| ms % 10_000);
    assert_together(&stamps, 80);
    assert_eq!(stamps.iter().flatten().filter(|stamp| stamp.new_timeline).count(), 1);
    assert_eq!(repairs.new_timelines, 1);
    assert_eq!(stamps.last().unwrap()[0].dts.as_ms(), 19_960);
}

#[test]
fn different_origins_are_aligned_on_arrival() {
    let origin = |track: TrackId, ms| if track == VIDEO { 95_443_000 + ms } else { ms };
    let (stamps, repairs) = both(20_000, origin);
    assert_together(&stamps, 0);
    assert_eq!(repairs, Repairs { aligned: 1, ..Repairs::default() });

    // Later the odd track joins the other's clock.
    let (stamps, repairs) =
        both(20_000, |track, ms| origin(if ms < 10_000 { track } else { VIDEO }, ms));
    assert_together(&stamps, 0);
    assert_eq!(repairs.new_timelines, 0);

    // Both restart, each at an origin of its own.
    let restart = |track, ms: i64| origin(track, ms % 10_000) + 1_000_000 * (ms / 10_000);
    let (stamps, repairs) = both(20_000, restart);
    assert_together(&stamps, 80);
    assert_eq!(repairs.new_timelines, 1);
}

#[test]
fn a_track_may_vanish_and_return() {
    let mut normaliser = Normaliser::default();
    for ms in (0..120_000).step_by(40) {
        let video = normaliser.stamp(VIDEO, at(ms));
        assert_eq!(video.dts.as_ms(), i64::from(ms));
        if !(5_000..65_000).contains(&ms) {
            assert_eq!(normaliser.stamp(AUDIO, at(ms)).dts.as_ms(), i64::from(ms));
        }
    }
    assert_eq!(normaliser.repairs(), Repairs::default());
}

#[test]
fn a_pause_of_all_tracks_stays_a_gap() {
    let (stamps, repairs) = both(10_000, |_, ms| if ms < 5_000 { ms } else { ms + 5_000 });
    assert_eq!(stamps.last().unwrap().map(|stamp| stamp.dts.as_ms()), [14_960, 14_960]);
    assert!(stamps.iter().flatten().all(|stamp| !stamp.new_timeline));
    assert_eq!(repairs.new_timelines, 0);
}

#[test]
fn repeated_outliers_in_one_track_leave_both_where_they_are() {
    let (stamps, repairs) = both(60_000, |track, ms| match (track, ms % 2_000) {
        (VIDEO, 1_000) => ms + 9_800_000,
        (AUDIO, 1_480) => ms + 8_000,
        _ => ms,
    });
    for (frame, pair) in stamps.iter().enumerate() {
        assert_eq!(pair.map(|stamp| stamp.dts.as_ms()), [40 * frame as i64; 2]);
    }
    assert_eq!(repairs, Repairs { outliers: 60, ..Repairs::default() });
}

/// Pictures in true time and audio frames in turn, for so long: stamps the audio with `stamp`, which is
/// given the frame's number, and gives the worst distance of the last minute from true time, in ms.
fn audio_error(rate: u32, hours: i64, with_video: bool, stamp: impl Fn(i64) -> u32) -> i64 {
    let mut normaliser = Normaliser::default();
    let frames = hours * 3600 * i64::from(rate) / 1024;
    let (mut next_picture, mut worst) = (0_i64, 0);
    for index in 0..frames {
        let time = Ticks::from_rate(index * 1024, rate);
        while with_video && next_picture <= time.as_ms() {
            normaliser.stamp(VIDEO, at(next_picture as u32));
            next_picture += 40;
        }
        let arrival = Arrival { samples: Some((1024, rate)), ..at(stamp(index)) };
        let dts = normaliser.stamp(AUDIO, arrival).dts;
        if index > frames - 2600 {
            worst = worst.max(distance(dts, time).as_ms());
        }
    }
    worst
}

/// TS-08: encoders that stamp every frame the same whole number of milliseconds later.
#[test]
fn ts_08_constant_steps_do_not_leave_the_pictures() {
    for (rate, step) in [(44_100, 23), (44_100, 24), (48_000, 21), (48_000, 22), (32_000, 32)] {
        for with_video in [true, false] {
            let error = audio_error(rate, 2, with_video, |index| (index * step) as u32);
            assert!(error < 100, "{rate} Hz, {step} ms, video {with_video}: {error} ms");
        }
    }
}

/// TS-08: a sound card that is fast or slow, stamped by the clock of the pictures: stamps are right.
#[test]
fn ts_08_a_drifting_sound_card_follows_its_stamps() {
    for per_mille in [998_i64, 1002] {
        let mut normaliser = Normaliser::default();
        let (mut next_picture, mut worst) = (0_i64, 0);
        for index in 0..200_000_i64 {
            let time = index * 1024 * per_mille / 44_100;
            while next_picture <= time {
                normaliser.stamp(VIDEO, at(next_picture as u32));
                next_picture += 40;
            }
            let arrival = Arrival { samples: Some((1024, 44_100)), ..at(time as u32) };
            let dts = normaliser.stamp(AUDIO, arrival).dts;
            worst = worst.max((dts.as_ms() - time).abs());
        }
        assert!(worst <= 125, "{per_mille}: {worst} ms");
    }
}

/// TS-08: 60 days of 44.1 kHz, stamps rounded to milliseconds, in frames of almost half a second.
#[test]
fn ts_08_rounding_does_not_add_up_over_sixty_days() {
    let mut normaliser = Normaliser::default();
    let frames = 60 * 86_400 * 44_100 / 20_000_i64;
    for index in 0..frames {
        let timestamp_ms = (index * 20_000 * 1000 / 44_100) as u32;
        let arrival = Arrival { samples: Some((20_000, 44_100)), ..at(timestamp_ms) };
        let dts = normaliser.stamp(AUDIO, arrival).dts;
        assert!(index < frames - 1 || dts == Ticks::from_rate(index * 20_000, 44_100), "{dts:?}");
    }
    let expected = Repairs { wraps: 1, ..Repairs::default() };
    assert_eq!(normaliser.repairs(), expected);
}

#[test]
fn audio_counts_in_samples() {
    let mut normaliser = Normaliser::default();
    let frame = Ticks::from_rate(1024, 44_100);
    let mut last = None;
    for index in 0..100_000_i64 {
        let timestamp_ms = (index * 1024 * 1000 / 44_100) as u32;
        let arrival = Arrival { samples: Some((1024, 44_100)), ..at(timestamp_ms) };
        let dts = normaliser.stamp(AUDIO, arrival).dts;
        if let Some(last) = last {
            assert!(distance(dts - last, frame) <= Ticks(1), "frame {index}");
        }
        assert_eq!(dts, Ticks::from_rate(index * 1024, 44_100));
        last = Some(dts);
    }
    assert_eq!(normaliser.repairs(), Repairs::default());
}

#[test]
fn timestamps_that_are_not_of_the_frames_are_followed() {
    for step in [20_u32, 26, 30] {
        let mut normaliser = Normaliser::default();
        for index in 0..50_000 {
            let arrival = Arrival { samples: Some((1024, 44_100)), ..at(index * step) };
            let dts = normaliser.stamp(AUDIO, arrival).dts;
            let apart = distance(dts, Ticks::from_ms(i64::from(index * step)));
            assert!(apart <= DRIFT + Ticks::from_ms(25), "{step}: {apart:?}");
        }
        assert!(normaliser.repairs().resyncs > 0);
    }
}

/// Sends `days` from `first_day` on with a clock of `period` ms and demands every place.
fn assert_days_pass(tracks: &[TrackId], step_ms: usize, first_day: i64, days: i64, period: i64) {
    const DAY_MS: i64 = 24 * 3_600_000;
    let mut normaliser = Normaliser::default();
    let first_ms = first_day * DAY_MS;
    let last_ms = first_ms + days * DAY_MS;
    for ms in (first_ms..last_ms).step_by(step_ms) {
        for track in tracks {
            let stamp = normaliser.stamp(*track, at((ms % period) as u32));
            assert_eq!(stamp, Stamp { dts: Ticks::from_ms(ms - first_ms), new_timeline: false });
        }
    }
    let wraps = tracks.len() as u64 * (last_ms / period - first_ms / period) as u64;
    assert_eq!(normaliser.repairs(), Repairs { wraps, ..Repairs::default() });
}

#[test]
fn months_pass_without_a_break() {
    for period in [1_i64 << 24, 1 << 31, 1 << 32] {
        assert_days_pass(&[VIDEO], 9_970, 0, 120, period);
        assert_days_pass(&[VIDEO, AUDIO], 970, 47, 4, period);
    }
}

#[test]
fn a_timeline_can_go_on_from_an_earlier_one() {
    let mut normaliser = Normaliser::starting_at(Ticks(1_000_000));
    assert_eq!(normaliser.stamp(VIDEO, at(77)).dts, Ticks(1_000_000));
    let arrival = Arrival { fraction: Ticks(45), ..at(117) };
    assert_eq!(normaliser.stamp(VIDEO, arrival).dts, Ticks(1_003_645));
    assert_eq!(normaliser.stamp(AUDIO, at(57)).dts, Ticks(998_200));
}
