//! Continuous streams: HTTP-FLV and RTMP play.

use std::fs;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::time::{Duration, Instant};

use weir_e2e::http::Client;
use weir_e2e::publisher::Publisher;
use weir_e2e::sync::Marks;
use weir_e2e::{Backend, Gateway, Process, tools, validate};

on_both_backends!(
    flv_begins_at_once_and_stays_in_sync,
    rtmp_players_get_the_stream,
    enhanced_codecs_reach_rtmp_and_flv_players,
);

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
    rtmpdump
        .args(["-s", "INT", "6", "rtmpdump", "-q", "-v", "-r", &url, "-B", "3", "-o"])
        .arg(&by_rtmpdump);
    tools::output("rtmpdump", &mut rtmpdump);
    Marks::of(&by_rtmpdump).assert_in_sync(2, 0.06);

    let mut mpv = Command::new("mpv");
    mpv.args(["--no-config", "--vo=null", "--ao=null", "--untimed", "--no-terminal"]);
    tools::run("mpv", mpv.args(["--frames=90", &url]));

    ffplay_shows(&url);
}

/// It has no end of its own on a live stream, and prints how far it has come and how far its sound is
/// from its picture.
fn ffplay_shows(url: &str) {
    let mut ffplay = Command::new("timeout");
    for (name, value) in [
        ("SDL_VIDEODRIVER", "dummy"),
        ("SDL_RENDER_DRIVER", "software"),
        ("SDL_AUDIODRIVER", "dummy"),
    ] {
        ffplay.env(name, value);
    }
    ffplay.args(["-s", "INT", "6", "ffplay", "-hide_banner", url]);
    let said = String::from_utf8(tools::output("ffplay", &mut ffplay).stderr).unwrap();
    assert!(said.contains("Video: h264") && said.contains("Audio: aac"), "{said}");
    let last = said.rsplit('\r').find(|line| line.contains("A-V:")).expect("its progress");
    let (time, rest) = last.split_once("A-V:").unwrap();
    let apart = rest.split_whitespace().next().unwrap().parse::<f64>().unwrap();
    let time = time.trim().parse::<f64>().unwrap();
    assert!(time > 2.0 && apart.abs() < 0.1, "{last}");
}

/// A client that knows Enhanced RTMP gets what an encoder of Enhanced RTMP sent.
fn enhanced_codecs_reach_rtmp_and_flv_players(backend: Backend) {
    let mut gateway = Gateway::start(backend, &[]);
    let codecs = [("hevc", "aac"), ("av1", "opus"), ("vp9", "opus")];
    for (encoder, (video, audio)) in Publisher::ENHANCED.into_iter().zip(codecs) {
        let name = encoder.name();
        let _publisher = encoder.publish(&gateway.rtmp("live"), name, gateway.scratch());
        gateway.wait_for(&format!("live/{name}/index.m3u8"));
        let rtmp = gateway.rtmp(&format!("live/{name}"));
        for (url, kind) in [(rtmp, "rtmp"), (gateway.http(&format!("live/{name}.flv")), "flv")] {
            let recorded = gateway.scratch().file(format!("{name}-{kind}.mp4"));
            let mut ffmpeg = Command::new(tools::ffmpeg9());
            ffmpeg.args(["-nostdin", "-v", "error", "-i", &url, "-t", "3", "-c", "copy"]);
            tools::run("ffmpeg 9", ffmpeg.arg(&recorded));
            let mut ffprobe = Command::new("ffprobe");
            ffprobe.args(["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0"]);
            let streams = tools::run("ffprobe", ffprobe.arg(&recorded));
            assert!(streams.contains(video) && streams.contains(audio), "{kind}: {streams}");
            Marks::of(&recorded).assert_in_sync(2, 0.1);
        }
    }
}
