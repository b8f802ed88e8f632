//! Streams of several tracks, and of tracks that not every player can have.

use weir_e2e::media::{self, GOP, Mark, frames, marks, pictures};
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, publish};
use weir_e2e::{Backend, Gateway, wait_until};
use weir_protocol::flv::{Tag, TagKind};

fn start(backend: Backend) -> (Gateway, RtmpClient) {
    let gateway = Gateway::start(backend, &QUICK);
    let mut publisher = gateway.rtmp_client();
    publish(&mut publisher, "a");
    (gateway, publisher)
}

/// The pictures among `tags` as those of the second video track (Enhanced RTMP v2, OneTrack).
fn as_second_video(tags: &[Tag]) -> Vec<Tag> {
    let retag = |tag: &Tag| {
        let [first, part, rest @ ..] = &tag.body[..] else { panic!("a picture") };
        // A sequence header has no composition time here.
        let rest = if *part == 0 { &rest[3..] } else { rest };
        let head = [0x80 | first & 0x70 | 6, *part];
        let body = [&head[..], b"avc1\x01", rest].concat();
        Tag { body: body.into(), ..tag.clone() }
    };
    tags.iter().filter(|tag| tag.kind == TagKind::Video).map(retag).collect()
}

/// Whether a tag of `publisher` is among the next that a player gets; all have the form that players
/// without multitrack know.
fn sees(player: &mut FlvPlayer, publisher: u8, number: u32) -> Vec<Mark> {
    let mut seen = Vec::new();
    while !pictures(&seen, publisher).contains(&number) {
        let tag = player.next_tag().expect("the stream goes on");
        assert!(tag.kind != TagKind::Video || tag.body[0] & 0x8f == 7, "{:02x?}", &tag.body[..6]);
        seen.extend(marks(&tag.body));
    }
    seen
}

/// Players get the first video track, and the second one once the first has gone for good.
#[test]
fn players_go_on_with_the_track_that_is_left() {
    for backend in Backend::ALL {
        let (gateway, mut publisher) = start(backend);
        publisher.send(&as_second_video(&media::headers()));
        let both = |from, to| {
            let (first, second) = (frames(1, from, to), frames(2, from, to));
            let mut both = [first, as_second_video(&second)].concat();
            both.sort_by_key(|tag| tag.timestamp_ms);
            both
        };
        publisher.send(&both(0, 2 * GOP));
        let mut player = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
        let seen = sees(&mut player, 1, 2 * GOP - 1);
        assert_eq!(pictures(&seen, 2), [0; 0], "the second track is not for players");
        let info = gateway.stream("live/a").expect("the stream");
        let ids = |list: &str, field: &str| -> Vec<u64> {
            let list = info[list].as_array().expect("a list");
            list.iter().map(|it| it[field].as_u64().expect("a number")).collect()
        };
        assert_eq!(ids("tracks", "id"), [0, 1, 2], "{info}");
        assert_eq!(ids("left_out", "track"), [2], "{info}");
        let dropped = &info["hls_dropped"]["not_in_epoch"];
        let counted = gateway.metric("weir_hls_dropped_total", "not_in_epoch");
        assert!(counted > 0.0, "what came before a track was chosen");
        assert_eq!(dropped.as_f64(), Some(counted), "{info}");

        let last = 12 * GOP;
        let left = frames(2, 2 * GOP, last);
        let mut left = [
            as_second_video(&left),
            left.into_iter().filter(|tag| tag.kind == TagKind::Audio).collect(),
        ]
        .concat();
        left.sort_by_key(|tag| tag.timestamp_ms);
        publisher.send(&left);
        let seen = pictures(&sees(&mut player, 2, last - 1), 2);
        assert!(seen[0].is_multiple_of(GOP), "it begins with a keyframe: {seen:?}");
        assert_eq!(seen, (seen[0]..last).collect::<Vec<_>>(), "and goes on without a gap");
        let joined =
            FlvPlayer::start(gateway.http_connection(), "/live/a.flv").marks_to(2, last - 1);
        assert_eq!(pictures(&joined, 1), [0; 0]);
        wait_until("the track's end in the API", SOON, || {
            let info = gateway.stream("live/a")?;
            (info["left_out"] == serde_json::json!([])).then_some(())
        });
    }
}

/// ER-04, and what no player gets at all: told with a reason, while the pictures go on.
#[test]
fn er_04_what_some_outputs_lack_is_told() {
    const STREAMINFO: [u8; 34] = {
        let mut info = [0; 34];
        // 48 kHz, two channels of 16 bits.
        (info[10], info[11], info[12], info[13]) = (0x0b, 0xb8, 0x02, 0xf0);
        info
    };
    let flac = [b"\x90fLaC", &STREAMINFO[..]].concat();
    let table: [(&[&[u8]], &str, &str); 4] = [
        (&[b"\xb2speex"], "Speex audio", "all"),
        (&[b"\x72g711"], "G.711 audio", "all"),
        (&[b"\x91Opus\xf8\x01"], "opus", "ts"),
        (&[&flac, b"\x91fLaC\xff\xf8\xaa\x08\x00\xed"], "flac", "ts"),
    ];
    let gateway = Gateway::start(Backend::ALL[0], &QUICK);
    for (bodies, codec, output) in table {
        let name = codec.split(' ').next().expect("a name");
        let mut publisher = gateway.rtmp_client();
        publish(&mut publisher, name);
        let pictures = |from, to| {
            let mut tags = frames(1, from, to);
            tags.retain(|tag| tag.kind == TagKind::Video);
            tags
        };
        for number in 0..4 * GOP {
            let tags = pictures(number, number + 1);
            let sound = |body: &&[u8]| Tag {
                kind: TagKind::Audio,
                timestamp_ms: tags[0].timestamp_ms,
                body: body.to_vec().into(),
            };
            publisher.send(&bodies.iter().map(sound).collect::<Vec<_>>());
            publisher.send(&tags);
        }
        wait_until("what is left out", SOON, || {
            let info = gateway.stream(&format!("live/{name}"))?;
            let told = info["left_out"].as_array()?.first()?.clone();
            assert_eq!(told["codec"], codec, "{info}");
            assert!(!told["reason"].as_str()?.is_empty());
            (told["output"] == output).then_some(())
        });
        let mut player = FlvPlayer::start(gateway.http_connection(), &format!("/live/{name}.flv"));
        sees(&mut player, 1, 4 * GOP - 1);
    }
}

fn tag(kind: TagKind, timestamp_ms: u32, body: &[u8]) -> Tag {
    Tag { kind, timestamp_ms, body: body.to_vec().into() }
}

/// A second of media and more without its sequence headers, of those kinds.
fn media_of(kinds: &[TagKind]) -> Vec<Tag> {
    let mut tags = frames(1, 0, 4 * GOP);
    tags.retain(|tag| kinds.contains(&tag.kind));
    tags
}

/// The pictures of a stream as tracks of one body with these numbers (Enhanced RTMP v2, ManyTracks).
fn as_many_tracks(numbers: &[u8]) -> Vec<Tag> {
    let headers = media::headers().into_iter();
    let headers = headers.filter(|tag| tag.kind == TagKind::Video);
    let tags: Vec<_> = headers.chain(media_of(&[TagKind::Video])).collect();
    let retag = |each: &Tag| {
        let [first, part, rest @ ..] = &each.body[..] else { panic!("a picture") };
        let rest = if *part == 0 { &rest[3..] } else { rest };
        let mut body = [0x80 | first & 0x70 | 6, 0x10 | *part].to_vec();
        body.extend(b"avc1");
        for number in numbers {
            body.push(*number);
            body.extend(&u32::try_from(rest.len()).expect("a length").to_be_bytes()[1..]);
            body.extend(rest);
        }
        tag(TagKind::Video, each.timestamp_ms, &body)
    };
    tags.iter().map(retag).collect()
}

/// Publishes `tags`, and waits until the API tells that all of it has come and `expected` of what is
/// left out: kind, track, codec, and a part of the reason. The log has one line, of the first.
fn check_left_out(
    gateway: &mut Gateway,
    name: &str,
    tags: &[Tag],
    expected: &[(&str, Option<u64>, &str, &str)],
) -> serde_json::Value {
    let mut publisher = gateway.rtmp_client();
    assert_eq!(publisher.ask_to_publish(name), "NetStream.Publish.Start");
    publisher.send(tags);
    let bytes: usize = tags.iter().map(|tag| tag.body.len()).sum();
    let stream = format!("live/{name}");
    let info = wait_until(name, SOON, || {
        let info = gateway.stream(&stream)?;
        (info["bytes_in"] == bytes).then_some(info)
    });
    let told = info["left_out"].as_array().expect("a list");
    assert_eq!(told.len(), expected.len(), "{name}: {info}");
    for (told, (kind, track, codec, reason)) in told.iter().zip(expected) {
        assert_eq!((&told["kind"], &told["output"]), (&(*kind).into(), &"all".into()), "{info}");
        assert_eq!((told["track"].as_u64(), &told["codec"]), (*track, &(*codec).into()), "{info}");
        assert!(told["reason"].as_str().expect("a reason").contains(reason), "{name}: {info}");
    }
    let log = gateway.process().log();
    let lines: Vec<_> =
        log.lines().filter(|line| line.contains("left out") && line.contains(&stream)).collect();
    assert_eq!(lines.len(), 1, "{name}: {lines:?}");
    assert!(lines[0].contains(expected[0].3), "{name}: {lines:?}");
    info
}

/// Of what is of no use, operators learn why: one entry and one line each.
#[test]
fn media_of_no_use_is_told() {
    use TagKind::{Audio, Video};
    let mut gateway = Gateway::start(Backend::ALL[0], &QUICK);
    let header = |kind| media::headers().into_iter().find(|tag| tag.kind == kind).expect("it");

    let mut avcc = header(Video).body.to_vec();
    // The two bits of lengthSizeMinusOne, of which 2 is reserved.
    avcc[9] = 0xfe;
    let tags = [vec![tag(Video, 0, &avcc)], media_of(&[Video])].concat();
    let because = ("video", Some(0), "h264", "codec configuration has an invalid");
    check_left_out(&mut gateway, "length_size", &tags, &[because]);

    let because = ("audio", Some(1), "aac", "configuration has not come");
    let info = check_left_out(&mut gateway, "no_asc", &media_of(&[Audio]), &[because]);
    assert_eq!((&info["state"], &info["tracks"]), (&"live".into(), &serde_json::json!([])));

    let nine: Vec<_> =
        [&b"\x96\x00hvc1\x09\x01"[..], b"\x96\x01hvc1\x09\0\0\0\0\0\0\x03\x26\x01\x88"]
            .map(|body| tag(Video, 0, body))
            .into();
    let because = ("video", None, "hevc", "track number 9");
    check_left_out(&mut gateway, "track_9", &nine, &[because]);

    for (name, config) in [
        ("xhe_aac", &[0xf9, 0x46, 0x40][..]),
        ("object_type_39", &[0xf8, 0xe6, 0x40]),
        ("channels_8", &[0x11, 0xc0]),
        ("no_channels", &[0x11, 0x80]),
        ("one_byte", &[0x11]),
    ] {
        let asc = tag(Audio, 0, &[&[0xaf, 0], config].concat());
        let tags = [vec![header(Video), asc], media_of(&[Video, Audio])].concat();
        let because = ("audio", Some(1), "aac", "codec configuration");
        let info = check_left_out(&mut gateway, name, &tags, &[because]);
        let tracks = info["tracks"].as_array().expect("tracks");
        assert!(tracks.iter().all(|track| track["codec"] == "h264") && tracks.len() == 1, "{info}");
    }

    let many = as_many_tracks(&[0, 1, 200]);
    let beyond = ("video", None, "h264", "track number 200");
    let second = ("video", Some(2), "h264", "one video and one audio track");
    check_left_out(&mut gateway, "many", &many, &[beyond, second]);
}

/// What comes right is told of no more, and what lasts for moments only is nothing for the log.
#[test]
fn what_has_come_right_is_left_out_no_more() {
    for backend in Backend::ALL {
        let mut gateway = Gateway::start(backend, &QUICK);
        let mut publisher = gateway.rtmp_client();
        assert_eq!(publisher.ask_to_publish("a"), "NetStream.Publish.Start");
        let [video, audio]: [Tag; 2] = media::headers().try_into().expect("two headers");
        publisher.send(&[video, tag(TagKind::Audio, 0, &[0xaf, 0])]);
        publisher.send(&frames(1, 1, GOP));
        wait_until("what is left out", SOON, || {
            let info = gateway.stream("live/a")?;
            let reasons = info["left_out"].as_array()?.iter().map(|told| told["reason"].as_str());
            let reasons: Option<Vec<_>> = reasons.collect();
            let expected = ["codec configuration is empty", "its first keyframe has not come"];
            let mut reasons = reasons.expect("reasons");
            reasons.sort_unstable();
            (reasons == expected).then_some(())
        });
        publisher.send(&[audio]);
        publisher.send(&frames(1, GOP, 3 * GOP));
        wait_until("nothing left out", SOON, || {
            let info = gateway.stream("live/a")?;
            (info["left_out"] == serde_json::json!([])).then_some(())
        });
        let log = gateway.process().log();
        assert!(!log.contains("left out"), "{log}");
    }
}
