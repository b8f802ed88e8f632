//! Servers that other people wrote.

use std::process::Command;

use weir_e2e::media::{GOP, frames, pictures};
use weir_e2e::nginx_rtmp::NginxRtmp;
use weir_e2e::publisher::Publisher;
use weir_e2e::script::{FlvPlayer, SOON, publish};
use weir_e2e::{Backend, Process, Reserved, wait_until};
use weir_protocol::flv::{FileReader, TagKind};

use crate::{Relays, beside, is_live, relay_when, start, wait_for_no_publisher};

/// From a gateway to nginx, and from there to another gateway.
#[test]
fn nginx_takes_what_is_pushed_and_gives_what_is_pulled() {
    for backend in Backend::ALL {
        let nginx = NginxRtmp::start();
        let holder = start(backend);
        let url = format!("rtmp://{}/live/key", nginx.address);
        let origin = beside(&holder, backend, &Relays::default().push("live/a", &url), &[]);
        let rules = Relays::default().pull("in/a", &url, "always");
        // nginx does not say that a publisher has left: only its silence does.
        let edge = beside(&holder, backend, &rules, &["--timeouts-idle", "2s"]);
        let mut publisher = origin.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        relay_when(&origin, "a live push", nginx.address, is_live);
        // nginx keeps nothing for who comes later.
        let mut next = GOP;
        wait_until("a live pull", SOON, || {
            publisher.send(&frames(1, next, next + GOP));
            next += GOP;
            edge.stream("in/a").filter(|stream| stream["publisher"].is_object())
        });
        let mut player = FlvPlayer::start(edge.http_connection(), "/in/a.flv");
        publisher.send(&frames(1, next, next + 2 * GOP));
        let last = next + 2 * GOP - 1;
        let seen = pictures(&player.marks_to(1, last), 1);
        assert_eq!(seen, (seen[0]..=last).collect::<Vec<_>>());
        publisher.finish();
        wait_for_no_publisher(&edge, "in/a");
    }
}

/// ffmpeg as a server takes one connection, and ends with it.
#[test]
fn ffmpeg_records_what_is_pushed_to_it() {
    for backend in Backend::ALL {
        let reserved = Reserved::take();
        let address = reserved.address;
        let holder = start(backend);
        let url = format!("rtmp://{address}/live/key");
        let origin = beside(&holder, backend, &Relays::default().push("live/a", &url), &[]);
        let file = holder.scratch().file("recorded.flv");
        let mut command = Command::new("ffmpeg");
        command.args(["-hide_banner", "-nostdin", "-v", "warning", "-y", "-listen", "1"]);
        command.args(["-f", "flv", "-i", &url, "-c", "copy"]).arg(&file);
        let mut recorder = Process::start("recorder", &mut command, holder.scratch().path());
        let publisher = Publisher::Ffmpeg5.publish(&origin.rtmp("live"), "a", holder.scratch());
        let size = || std::fs::metadata(&file).map_or(0, |about| about.len());
        wait_until("a recording", SOON * 2, || {
            recorder.assert_running();
            (size() > 100_000).then_some(())
        });
        relay_when(&origin, "a live push", address, is_live);
        drop(publisher);
        let status = recorder.wait(SOON * 2);
        assert!(status.success(), "{status}: {}", recorder.log());
        let mut reader = FileReader::default();
        reader.push(&std::fs::read(&file).expect("the recording"));
        let tags: Vec<_> = std::iter::from_fn(|| reader.next().expect("FLV")).collect();
        let of = |kind| tags.iter().filter(move |tag| tag.kind == kind);
        assert!(of(TagKind::Video).count() > 20 && of(TagKind::Audio).count() > 20);
        // A sequence header, then a keyframe.
        let heads: Vec<_> = of(TagKind::Video).take(2).map(|tag| tag.body[..2].to_vec()).collect();
        assert_eq!(heads, [[0x17, 0], [0x17, 1]]);
    }
}
