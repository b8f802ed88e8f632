//! OBS Studio with a home of its own: one scene, one service, one small encoder.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::process::Process;
use crate::reserved::Reserved;
use crate::tools::{self, Scratch};

// The simple output encodes with x264; its key frame distance is set by a custom setting.
const PROFILE: &str = "[General]\nName=weir\n\
    [Video]\nBaseCX=640\nBaseCY=360\nOutputCX=640\nOutputCY=360\nFPSType=0\nFPSCommon=30\n\
    [Audio]\nSampleRate=48000\nChannelSetup=Stereo\n\
    [Output]\nMode=Simple\nReconnect=true\nRetryDelay=1\n\
    [SimpleOutput]\nStreamEncoder=x264\nVBitrate=600\nABitrate=96\nUseAdvanced=true\n\
    Preset=ultrafast\nx264Settings=keyint=60 bframes=0 scenecut=0\n";

/// What fills the scene: a media source.
#[derive(Clone, Debug)]
pub enum Scene {
    /// The demo clip, for ever.
    Clip,
    /// A live stream at this address.
    Stream(String),
}

/// A running OBS that streams.
#[derive(Debug)]
pub struct Obs {
    pub process: Process,
    /// Its websocket's address: OBS takes no port zero.
    control: Reserved,
}

impl Obs {
    /// Streams `scene` to `server` with `key` at once, on a display that `xvfb-run` finds free.
    ///
    /// # Panics
    /// When OBS is not installed.
    #[must_use]
    pub fn start(server: &str, key: &str, scene: &Scene, scratch: &Scratch) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let home = scratch.directory(&format!("obs-{number}"));
        let control = Reserved::take();
        configure(&home, control.address.port(), &service(server, key), &collection(scene));
        let process = Process::start("obs", &mut command(&home), &home);
        Self { process, control }
    }

    /// Ends its stream as its user would, by the button.
    ///
    /// # Panics
    /// When it does not.
    pub fn stop_streaming(&self) {
        self.control("stop");
    }

    /// # Panics
    /// When it cannot stream.
    pub fn start_streaming(&self) {
        self.control("start");
    }

    fn control(&self, wish: &str) {
        let script = tools::root().join("tests/obs/control.py");
        let mut command = Command::new(tools::python());
        let port = self.control.address.port().to_string();
        tools::run("OBS's control", command.arg(script).args([&port, wish]));
    }
}

fn configure(home: &Path, port: u16, service: &Value, collection: &Value) {
    let write = |name: &str, text: &str| {
        let path = home.join("config/obs-studio").join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(path, text).expect("a configuration file");
    };
    let global = format!(
        "[General]\nFirstRun=true\nLastVersion=486539266\n\
         [OBSWebSocket]\nServerEnabled=true\nServerPort={port}\nAuthRequired=false\n\
         AlertsEnabled=false\nFirstLoad=false\n"
    );
    write("global.ini", &global);
    write("basic/profiles/weir/basic.ini", PROFILE);
    write("basic/profiles/weir/service.json", &service.to_string());
    write("basic/scenes/weir.json", &collection.to_string());
}

fn command(home: &Path) -> Command {
    let mut command = Command::new("xvfb-run");
    command.args(["--auto-servernum", "--server-args=-screen 0 1280x800x24 +extension GLX"]);
    command.args(["obs", "--multi", "--collection", "weir", "--profile", "weir"]);
    command.args(["--startstreaming", "--minimize-to-tray"]);
    command.args(["--disable-updater", "--disable-missing-files-check"]);
    command.env("HOME", home).env("XDG_CONFIG_HOME", home.join("config"));
    command.env("XDG_RUNTIME_DIR", home);
    command.env("LIBGL_ALWAYS_SOFTWARE", "1").env("GALLIUM_DRIVER", "llvmpipe");
    command.env("QT_QPA_PLATFORM", "xcb");
    // It asks its makers for news at every start; nobody answers at the discard port.
    for proxy in ["http_proxy", "https_proxy"] {
        command.env(proxy, "http://127.0.0.1:9");
    }
    command
}

fn service(server: &str, key: &str) -> Value {
    let settings = json!({"server": server, "key": key, "use_auth": false});
    json!({"type": "rtmp_custom", "settings": settings})
}

fn collection(scene: &Scene) -> Value {
    let media = match scene {
        Scene::Clip => json!({
            "local_file": tools::demo_clip(), "looping": true, "is_local_file": true,
            "restart_on_activate": false, "close_when_inactive": false,
        }),
        Scene::Stream(address) => json!({
            "input": address, "input_format": "flv", "is_local_file": false,
            "restart_on_activate": false, "close_when_inactive": false,
            "buffering_mb": 1, "reconnect_delay_sec": 1,
        }),
    };
    let item = json!({
        "name": "media", "id": 1, "visible": true, "locked": false,
        "pos": {"x": 0.0, "y": 0.0}, "scale": {"x": 1.0, "y": 1.0}, "bounds_type": 0,
    });
    json!({
        "name": "weir",
        "current_scene": "scene",
        "current_program_scene": "scene",
        "scene_order": [{"name": "scene"}],
        "sources": [
            {"id": "scene", "name": "scene", "settings": {"id_counter": 1, "items": [item]}},
            {"id": "ffmpeg_source", "name": "media", "mixers": 255, "volume": 1.0,
             "settings": media},
        ],
    })
}
