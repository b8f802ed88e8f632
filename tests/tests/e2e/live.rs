//! Continuous streams: HTTP-FLV and RTMP play.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use weir_e2e::http::Client;
use weir_e2e::publisher::Publisher;
use weir_e2e::sync::Marks;
use weir_e2e::{Backend, Gateway, Process, tools, validate};

on_both_backends!(flv_begins_at_once_and_stays_in_sync, rtmp_players_get_the_stream);

fn on_air(backend: Backend) -> (Gateway, Process) {
    let mut gateway = Gateway::start(backend, &[]);
    let publisher = Publisher::Ffmpeg5.publish(&gateway.rtmp("live"), "clip", gateway.scratch());
    gateway.wait_for("live/clip/index.m3u8");
    (gateway, publisher)
}

fn flv_begins_at_once_and_stays_in_sync(backend: Backend) {
    let (gateway, _publisher) = on_air(backend);
    let file = gateway.scratch().file("live.flv");
    let client = Client::new(Duration::from_secs(30));
    let asked = Instant::now();
    let (status, mut body) = client.stream(&gateway.http("live/clip.flv"));
    assert_eq!(status, 200);
    let mut recorded = fs::File::create(&file).unwrap();
    let mut first_frame = None;
    let mut bytes = vec![0; 64 * 1024];
    let mut length = 0;
    while asked.elapsed() < Duration::from_secs(6) {
        let count = body.read(&mut bytes).unwrap();
        assert!(count > 0, "the stream ended");
        recorded.write_all(&bytes[..count]).unwrap();
        length += count;
        // Headers alone are shorter; a key frame of the clip is longer.
        if length > 4000 {
            first_frame.get_or_insert_with(|| asked.elapsed());
        }
    }
    // No wait for the next key frame, which may be 2 s away.
    assert!(first_frame.unwrap() < Duration::from_millis(500), "{first_frame:?}");
    drop(recorded);
    let decodable = gateway.scratch().file("whole.flv");
    whole_tags(&file, &decodable);
    validate::decodes(&decodable);
    Marks::of(&decodable).assert_in_sync(5, 0.06);
}

/// Cuts off the tag that was still under way when the recording ended.
fn whole_tags(from: &std::path::Path, to: &std::path::Path) {
    let bytes = fs::read(from).unwrap();
    assert_eq!(&bytes[..4], b"FLV\x01");
    let mut end = 13;
    while let Some(header) = bytes.get(end..end + 11) {
        let body =
            usize::from(header[1]) << 16 | usize::from(header[2]) << 8 | usize::from(header[3]);
        if bytes.len() < end + 11 + body + 4 {
            break;
        }
        end += 11 + body + 4;
    }
    fs::write(to, &bytes[..end]).unwrap();
}

fn rtmp_players_get_the_stream(backend: Backend) {
    let (gateway, _publisher) = on_air(backend);
    let url = gateway.rtmp("live/clip");
    let by_ffmpeg = gateway.scratch().file("ffmpeg.flv");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-nostdin", "-v", "error", "-rtmp_live", "live", "-i", &url]);
    tools::run("ffmpeg", ffmpeg.args(["-t", "4", "-c", "copy"]).arg(&by_ffmpeg));
    Marks::of(&by_ffmpeg).assert_in_sync(3, 0.06);

    let by_rtmpdump = gateway.scratch().file("rtmpdump.flv");
    let mut rtmpdump = Command::new("timeout");
    rtmpdump.args(["20", "rtmpdump", "-q", "-v", "-r", &url, "-B", "3", "-o"]).arg(&by_rtmpdump);
    tools::output("rtmpdump", &mut rtmpdump);
    Marks::of(&by_rtmpdump).assert_in_sync(2, 0.06);
}
