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
