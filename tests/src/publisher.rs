//! Real encoders that publish the demo clip, at its own speed and for ever.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::obs::{Obs, Scene};
use crate::process::Process;
use crate::tools::{self, Scratch};

/// An encoder, or another RTMP stack, that tests publish with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publisher {
    /// Debian's ffmpeg: legacy RTMP, H.264 and AAC, sent as they are in the clip.
    Ffmpeg5,
    /// ffmpeg 9 with H.264 and AAC.
    Ffmpeg9,
    /// ffmpeg 9, Enhanced RTMP: HEVC and AAC.
    Hevc,
    /// ffmpeg 9, Enhanced RTMP: AV1 and Opus.
    Av1Opus,
    /// ffmpeg 9, Enhanced RTMP: VP9 and Opus.
    Vp9Opus,
    /// ffmpeg 9, Enhanced RTMP: two tracks each of H.264 and AAC.
    Multitrack,
    /// ffmpeg 9, Enhanced RTMP: H.264 and FLAC.
    Flac,
    /// ffmpeg 9, Enhanced RTMP: H.264 and AC-3.
    Ac3,
    /// ffmpeg 9, Enhanced RTMP: H.264 and E-AC-3.
    Eac3,
    /// GStreamer's own RTMP client.
    GstRtmp2,
    /// GStreamer with librtmp.
    GstRtmp,
    /// OBS Studio on a virtual display, encoding its own scene.
    Obs,
}

impl Publisher {
    /// The encoders of the clip's own H.264 and AAC.
    pub const LEGACY: [Self; 5] =
        [Self::Ffmpeg5, Self::Ffmpeg9, Self::GstRtmp2, Self::GstRtmp, Self::Obs];

    /// The codecs that only Enhanced RTMP carries.
    pub const ENHANCED: [Self; 3] = [Self::Hevc, Self::Av1Opus, Self::Vp9Opus];

    /// H.264 with sound that only Enhanced RTMP carries.
    pub const ENHANCED_AUDIO: [Self; 3] = [Self::Flac, Self::Ac3, Self::Eac3];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ffmpeg5 => "ffmpeg5",
            Self::Ffmpeg9 => "ffmpeg9",
            Self::Hevc => "hevc",
            Self::Av1Opus => "av1",
            Self::Vp9Opus => "vp9",
            Self::Multitrack => "multitrack",
            Self::Flac => "flac",
            Self::Ac3 => "ac3",
            Self::Eac3 => "eac3",
            Self::GstRtmp2 => "gst-rtmp2",
            Self::GstRtmp => "gst-rtmp",
            Self::Obs => "obs",
        }
    }

    /// Begins to publish to `application` (`rtmp://…/live`) with `key` (`name?token=…`).
    #[must_use]
    pub fn publish(self, application: &str, key: &str, scratch: &Scratch) -> Process {
        let address = format!("{application}/{key}");
        let mut command = match self {
            Self::Ffmpeg5 => ffmpeg(Path::new("ffmpeg"), &["-c", "copy"], &address),
            Self::Ffmpeg9 => ffmpeg(tools::ffmpeg9(), &["-c", "copy"], &address),
            Self::Hevc => ffmpeg(tools::ffmpeg9(), &HEVC, &address),
            Self::Av1Opus => ffmpeg(tools::ffmpeg9(), &AV1_OPUS, &address),
            Self::Vp9Opus => ffmpeg(tools::ffmpeg9(), &VP9_OPUS, &address),
            Self::Multitrack => ffmpeg(tools::ffmpeg9(), &TWICE, &address),
            Self::Flac | Self::Ac3 | Self::Eac3 => {
                let encoding = ["-c:v", "copy", "-c:a", self.name()];
                ffmpeg(tools::ffmpeg9(), &encoding, &address)
            }
            // Tests' certificates are their own.
            Self::GstRtmp2 if address.starts_with("rtmps:") => {
                gstreamer("rtmp2sink tls-validation-flags=no-flags", &address, scratch)
            }
            Self::GstRtmp2 => gstreamer("rtmp2sink", &address, scratch),
            // librtmp ends the address at a space and takes options after it.
            Self::GstRtmp => gstreamer("rtmpsink", &format!("{address} live=1"), scratch),
            Self::Obs => return Obs::start(application, key, &Scene::Clip, scratch).process,
        };
        Process::start(self.name(), &mut command, scratch.path())
    }
}

// A picture of 320x180 at 15 fps: small enough to be encoded at twice its speed on half a core.
const SMALL: &str = "scale=320:180,fps=15";
const HEVC: [&str; 14] = [
    "-vf",
    "scale=320:180,fps=15,setparams=color_primaries=bt2020:color_trc=smpte2084:colorspace=bt2020nc",
    "-c:v",
    "libx265",
    "-preset",
    "ultrafast",
    "-x265-params",
    "keyint=30:min-keyint=30:scenecut=0:bframes=0:log-level=error:pools=1",
    "-c:a",
    "copy",
    "-rtmp_enhanced_codecs",
    "hvc1,av01,vp09",
    "-g",
    "30",
];
const AV1_OPUS: [&str; 14] = [
    "-vf",
    SMALL,
    "-c:v",
    "libsvtav1",
    "-preset",
    "12",
    "-g",
    "30",
    "-svtav1-params",
    "pred-struct=1:lp=1",
    "-c:a",
    "libopus",
    "-rtmp_enhanced_codecs",
    "hvc1,av01,vp09,Opus",
];
const VP9_OPUS: [&str; 18] = [
    "-vf",
    SMALL,
    "-c:v",
    "libvpx-vp9",
    "-deadline",
    "realtime",
    "-cpu-used",
    "8",
    "-g",
    "30",
    "-b:v",
    "300k",
    "-lag-in-frames",
    "0",
    "-c:a",
    "libopus",
    "-rtmp_enhanced_codecs",
    "hvc1,av01,vp09,Opus",
];

const TWICE: [&str; 10] =
    ["-map", "0:v", "-map", "0:v", "-map", "0:a", "-map", "0:a", "-c", "copy"];

fn ffmpeg(program: &Path, encoding: &[&str], address: &str) -> Command {
    let mut command = Command::new(program);
    command.args(["-hide_banner", "-nostdin", "-v", "warning", "-re", "-stream_loop", "-1", "-i"]);
    command.arg(tools::demo_clip()).args(encoding);
    if address.starts_with("rtmps:") {
        // Nobody vouches for the certificates of tests.
        command.args(["-tls_verify", "0"]);
    }
    command.args(["-f", "flv", address]);
    command
}

/// GStreamer cannot loop a file, so it gets one that is long enough for any test.
fn gstreamer(sink: &str, address: &str, scratch: &Scratch) -> Command {
    let clip = long_clip(scratch);
    let mut command = Command::new("gst-launch-1.0");
    command.args(["-q", "filesrc", &format!("location={}", clip.display()), "!"]);
    command.args(["flvdemux", "name=demux", "flvmux", "name=mux", "streamable=true", "!"]);
    command.args(sink.split(' ')).arg(format!("location={address}"));
    command.args(["demux.video", "!", "h264parse", "!", "queue", "!", "mux.video"]);
    command.args(["demux.audio", "!", "aacparse", "!", "queue", "!", "mux.audio"]);
    command
}

fn long_clip(scratch: &Scratch) -> PathBuf {
    let path = scratch.file("long.flv");
    if !path.exists() {
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-v", "error", "-stream_loop", "11", "-i"]);
        command.arg(tools::demo_clip()).args(["-c", "copy"]).arg(&path);
        tools::run("ffmpeg", &mut command);
    }
    path
}
