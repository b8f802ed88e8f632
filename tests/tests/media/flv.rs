//! HTTP-FLV promises what comes, and nothing else (FLV v10.1 §E.2).

use std::thread;

use weir_e2e::airing::KEEP_ALL;
use weir_e2e::http_connection::Piece;
use weir_e2e::replay::edit::{Editor, is_frame};
use weir_e2e::replay::flv::{Clip, Sender};
use weir_e2e::script::SOON;
use weir_e2e::{Backend, Gateway, clips, wait_until};
use weir_protocol::amf0::{Reader, Value};
use weir_protocol::flv::{FileReader, Tag, TagKind};

const AUDIO: u8 = 4;
const VIDEO: u8 = 1;
/// So much is sent before a player gets it.
const STEP_MS: u64 = 500;
/// When the second player comes.
const LATE_MS: u64 = 6000;

/// All that a player got.
struct Heard {
    /// Of the file header.
    flags: u8,
    tags: Vec<Tag>,
}

impl Heard {
    fn has(&self, kind: TagKind) -> bool {
        self.tags.iter().any(|tag| tag.kind == kind && is_frame(tag))
    }

    /// What metadata said of the tracks, in the form of the flags, each time that it came.
    fn promises(&self) -> Vec<u8> {
        let scripts = self.tags.iter().filter(|tag| tag.kind == TagKind::Script);
        let promise = |tag: &Tag| {
            let mut values = Reader::new(&tag.body);
            let name = values.next().expect("AMF").expect("a name");
            assert_eq!(name.as_str(), Some("onMetaData"));
            let figures = values.next().expect("AMF").expect("figures");
            let is = |name: &str| figures.get(name).and_then(Value::as_bool) == Some(true);
            (AUDIO * u8::from(is("hasAudio"))) | (VIDEO * u8::from(is("hasVideo")))
        };
        scripts.map(promise).collect()
    }
}

/// Two players of one publish: one before the first frame, one that is late.
fn heard(gateway: &Gateway, key: &str, clip: &Clip, edits: &str) -> [Heard; 2] {
    let name = format!("live/{key}");
    let mut editor = Editor::parse(edits).expect("edits");
    let mut sender = Sender::start(&gateway.replay_target(key)).expect("it may publish");
    let mut players = vec![player(gateway, &name, 1)];
    let mut next_ms = STEP_MS;
    for (tag, at_ms) in clip.turns(1) {
        if at_ms >= next_ms {
            next_ms += STEP_MS;
            sender.sync().expect("the gateway reads");
        }
        if next_ms > LATE_MS && players.len() == 1 {
            players.push(player(gateway, &name, 2));
        }
        editor.push(tag, at_ms).iter().for_each(|tag| sender.send(tag));
    }
    sender.sync().expect("the gateway reads");
    sender.finish();
    let heard = players.into_iter().map(|player| player.join().expect("a player"));
    heard.collect::<Vec<_>>().try_into().ok().expect("two players")
}

fn player(gateway: &Gateway, name: &str, number: u64) -> thread::JoinHandle<Heard> {
    let mut connection = gateway.http_connection();
    connection.ask("GET", &format!("/{name}.flv"), "");
    let player = thread::spawn(move || {
        let head = connection.head();
        assert_eq!(head.status, 200);
        let mut bytes = Vec::new();
        while let Piece::Bytes(more) = connection.piece(&head) {
            bytes.extend(more);
        }
        let mut reader = FileReader::default();
        reader.push(&bytes);
        let tags = std::iter::from_fn(|| reader.next().expect("FLV")).collect();
        Heard { flags: bytes[4], tags }
    });
    wait_until("the player in the API", SOON, || {
        (gateway.stream(name)?["players"]["flv"] == number).then_some(())
    });
    player
}

#[test]
fn fl_01_promises_follow_from_frames() {
    let plain = clips::plain();
    let late = "drop audio.frame@..3s";
    let header_late =
        "header audio.frame@3s..3030ms audio; drop audio.header#0; drop audio.frame@..3s";
    // What the first player is told, and in the end; the second is told that at once.
    let table = [
        (plain, "", AUDIO | VIDEO, AUDIO | VIDEO),
        (clips::reordered(), "", AUDIO | VIDEO, AUDIO | VIDEO),
        (clips::hevc(), "", AUDIO | VIDEO, AUDIO | VIDEO),
        (clips::sound(), "", AUDIO, AUDIO),
        (clips::pictures(), "", VIDEO, VIDEO),
        (plain, "drop audio.frame", VIDEO, VIDEO),
        (plain, "drop video.frame", AUDIO, AUDIO),
        (plain, "drop audio.header", VIDEO, VIDEO),
        (plain, late, VIDEO, AUDIO | VIDEO),
        (plain, header_late, VIDEO, AUDIO | VIDEO),
        (plain, "drop video.frame@..3s", AUDIO, AUDIO | VIDEO),
    ];
    for backend in Backend::ALL {
        let gateway = Gateway::start(backend, &KEEP_ALL);
        for (number, (clip, edits, first, last)) in table.iter().enumerate() {
            let [early, late] = heard(&gateway, &format!("fl-01-{number}"), clip, edits);
            for (who, player, begin) in [("early", &early, first), ("late", &late, last)] {
                let told = player.promises();
                let what = format!("{who} player of [{edits}] number {number}: {told:?}");
                assert_eq!(player.flags, *begin, "{what}");
                assert_eq!(told.first(), Some(begin), "{what}");
                assert_eq!(told.last(), Some(last), "{what}");
                for (kind, flag) in [(TagKind::Audio, AUDIO), (TagKind::Video, VIDEO)] {
                    assert_eq!(player.has(kind), last & flag != 0, "{what}: {kind:?}");
                }
            }
        }
    }
}
