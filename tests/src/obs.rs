//! OBS Studio with a home of its own: one scene with the demo clip, one service, one small encoder.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::tools;

const WEBSOCKET: &str = "[General]\nFirstRun=true\nLastVersion=486539266\n\
    [OBSWebSocket]\nServerEnabled=false\nFirstLoad=false\n";

// The simple output encodes with x264; its key frame distance is set by a custom setting.
const PROFILE: &str = "[General]\nName=weir\n\
    [Video]\nBaseCX=640\nBaseCY=360\nOutputCX=640\nOutputCY=360\nFPSType=0\nFPSCommon=30\n\
    [Audio]\nSampleRate=48000\nChannelSetup=Stereo\n\
    [Output]\nMode=Simple\nReconnect=true\nRetryDelay=1\n\
    [SimpleOutput]\nStreamEncoder=x264\nVBitrate=600\nABitrate=96\nUseAdvanced=true\n\
    Preset=ultrafast\nx264Settings=keyint=60 bframes=0 scenecut=0\n";

/// A number for a directory of this process.
pub(crate) fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// OBS that streams to `server` with `key` at once, on a display that `xvfb-run` finds free.
pub(crate) fn command(server: &str, key: &str, home: &Path) -> Command {
    let config = home.join("config");
    let write = |name: &str, text: &str| {
        let path = config.join("obs-studio").join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, text).expect("a configuration file");
    };
    write("global.ini", WEBSOCKET);
    write("basic/profiles/weir/basic.ini", PROFILE);
    write("basic/profiles/weir/service.json", &service(server, key));
    write("basic/scenes/weir.json", &scene());

    let mut command = Command::new("xvfb-run");
    command.args(["--auto-servernum", "--server-args=-screen 0 1280x800x24 +extension GLX"]);
    command.args(["obs", "--multi", "--collection", "weir", "--profile", "weir"]);
    command.args(["--startstreaming", "--minimize-to-tray"]);
    command.args(["--disable-updater", "--disable-missing-files-check"]);
    command.env("HOME", home).env("XDG_CONFIG_HOME", &config).env("XDG_RUNTIME_DIR", home);
    command.env("LIBGL_ALWAYS_SOFTWARE", "1").env("GALLIUM_DRIVER", "llvmpipe");
    command.env("QT_QPA_PLATFORM", "xcb");
    // It asks its makers for news at every start; nobody answers at the discard port.
    for proxy in ["http_proxy", "https_proxy"] {
        command.env(proxy, "http://127.0.0.1:9");
    }
    command
}

fn service(server: &str, key: &str) -> String {
    let settings = json!({"server": server, "key": key, "use_auth": false});
    json!({"type": "rtmp_custom", "settings": settings}).to_string()
}

fn scene() -> String {
    let clip = tools::demo_clip().display().to_string();
    let item = json!({
        "name": "clip", "id": 1, "visible": true, "locked": false,
        "pos": {"x": 0.0, "y": 0.0}, "scale": {"x": 1.0, "y": 1.0}, "bounds_type": 0,
    });
    json!({
        "name": "weir",
        "current_scene": "scene",
        "current_program_scene": "scene",
        "scene_order": [{"name": "scene"}],
        "sources": [
            {"id": "scene", "name": "scene", "settings": {"id_counter": 1, "items": [item]}},
            {"id": "ffmpeg_source", "name": "clip", "mixers": 255, "volume": 1.0,
             "settings": {"local_file": clip, "looping": true, "is_local_file": true,
                          "restart_on_activate": false, "close_when_inactive": false}},
        ],
    })
    .to_string()
}
