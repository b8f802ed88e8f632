//! Real players show the picture, with sound, without a stall and without a failed request.

use std::process::Command;

use weir_e2e::browser::{self, Job, Viewing};
use weir_e2e::publisher::Publisher;
use weir_e2e::{Backend, Gateway, Process, tools};

on_both_backends!(mse_players, native_and_shaka, player_page, command_line_players);

const FPS: f64 = 30.0;

fn on_air(backend: Backend) -> (Gateway, Process) {
    let mut gateway = Gateway::start(backend, &[]);
    let publisher = Publisher::Ffmpeg5.publish(&gateway.rtmp("live"), "clip", gateway.scratch());
    // The last to begin, with three segments: fewer are too few for Chromium's own player.
    gateway.wait_for("live/clip.m3u8");
    (gateway, publisher)
}

fn smooth(jobs: &[Job]) -> Vec<Viewing> {
    jobs.iter().map(|job| browser::play_smoothly(job, 8, FPS)).collect()
}

fn mse_players(backend: Backend) {
    let (gateway, _publisher) = on_air(backend);
    let viewings = smooth(&[
        Job::new("hlsjs-ll", gateway.http("live/clip/index.m3u8")),
        Job::new("hlsjs-ts", gateway.http("live/clip.m3u8")),
        Job::new("mpegts", gateway.http("live/clip.flv")),
    ]);
    let latency = |index: usize| viewings[index].latency().unwrap();
    // By default hls.js stays as far behind as its start made it; on an idle machine that is 1.2 s.
    assert!(latency(0) < 4.0, "LL-HLS is {} s behind", latency(0));
    assert!(latency(2) < 2.6, "FLV is {} s behind", latency(2));
}

fn native_and_shaka(backend: Backend) {
    let (gateway, _publisher) = on_air(backend);
    smooth(&[
        Job::new("native", gateway.http("live/clip.m3u8")),
        Job::new("native", gateway.http("live/clip/index.m3u8")),
        Job::new("shaka", gateway.http("live/clip/index.m3u8")),
    ]);
}

fn player_page(backend: Backend) {
    let (gateway, _publisher) = on_air(backend);
    let page = gateway.http("live/clip");
    let viewings = smooth(&[
        Job::new("page-ll", page.clone()).with_screenshot(&gateway.scratch().file("page.png")),
        Job::new("page-ts", page.clone()),
        Job::new("page-flv", page),
    ]);
    for (viewing, mode) in viewings.iter().zip(["ll", "ts", "flv"]) {
        let page = &viewing.report()["page"];
        assert_eq!((page["state"].as_str(), page["mode"].as_str()), (Some("live"), Some(mode)));
        let shown = &page["stats"];
        assert_eq!((shown["width"].as_u64(), shown["height"].as_u64()), (Some(640), Some(360)));
        assert!(shown["codecs"].as_str().unwrap().to_lowercase().contains("avc1.4d401f"), "{page}");
        assert!(shown["bitrate"].as_f64().unwrap() > 50_000.0, "{page}");
    }
    // The page catches up with the live edge.
    let latency = viewings[0].latency().unwrap();
    assert!(latency < 2.5, "the page is {latency} s behind with LL-HLS");
}

fn command_line_players(backend: Backend) {
    let (gateway, _publisher) = on_air(backend);
    for path in ["live/clip/index.m3u8", "live/clip.m3u8", "live/clip.flv"] {
        let url = gateway.http(path);
        let mut ffprobe = Command::new("ffprobe");
        ffprobe.args(["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0"]);
        let streams = tools::run("ffprobe", ffprobe.arg(&url));
        assert!(streams.contains("h264") && streams.contains("aac"), "{url}: {streams}");

        let mut mpv = Command::new("mpv");
        mpv.args(["--no-config", "--vo=null", "--ao=null", "--untimed", "--no-terminal"]);
        tools::run("mpv", mpv.args(["--frames=90", &url]));
    }
    gstreamer_follows(&gateway);
}

/// GStreamer has no end of its own on a live playlist: it records for a while, until its time limit.
fn gstreamer_follows(gateway: &Gateway) {
    let file = gateway.scratch().file("gstreamer.ts");
    let mut gstreamer = Command::new("timeout");
    gstreamer.args(["-s", "INT", "8", "gst-launch-1.0", "-q", "souphttpsrc"]);
    gstreamer.args([&format!("location={}", gateway.http("live/clip.m3u8")), "!", "hlsdemux", "!"]);
    gstreamer.args(["filesink", "sync=false", &format!("location={}", file.display())]);
    tools::output("gst-launch-1.0", &mut gstreamer);
    let mut ffprobe = Command::new("ffprobe");
    ffprobe.args(["-v", "error", "-select_streams", "v", "-count_packets"]);
    ffprobe.args(["-show_entries", "stream=nb_read_packets", "-of", "csv=p=0"]).arg(&file);
    let frames = tools::run("ffprobe", &mut ffprobe);
    let frames: u32 = frames.lines().next().and_then(|line| line.parse().ok()).unwrap_or(0);
    assert!(frames >= 60, "GStreamer got {frames} frames");
}
