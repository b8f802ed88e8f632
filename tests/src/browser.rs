//! Players in Chromium, by `tests/browser/play.mjs`.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::tools;

/// A player to run and the address to give it.
#[derive(Clone, Debug)]
pub struct Job {
    mode: &'static str,
    url: String,
    screenshot: Option<String>,
}

impl Job {
    /// `mode` is one of `hlsjs-ll`, `hlsjs-ts`, `native`, `mpegts`, `shaka`, `page-ll`, `page-ts`
    /// and `page-flv`.
    #[must_use]
    pub fn new(mode: &'static str, url: String) -> Self {
        Self { mode, url, screenshot: None }
    }

    /// Also takes a picture of the page at the end.
    #[must_use]
    pub fn with_screenshot(mut self, file: &Path) -> Self {
        self.screenshot = Some(file.display().to_string());
        self
    }
}

/// What a player saw from its first picture on.
#[derive(Clone, Debug)]
pub struct Viewing(Value);

impl Viewing {
    /// The whole report, for whatever has no method here.
    #[must_use]
    pub fn report(&self) -> &Value {
        &self.0
    }

    fn number(&self, key: &str) -> f64 {
        self.0[key].as_f64().unwrap_or(f64::NAN)
    }

    /// Seconds behind the live edge, where the player knows it.
    #[must_use]
    pub fn latency(&self) -> Option<f64> {
        self.0["latency_s"].as_f64()
    }

    /// Milliseconds from opening the page to the first picture.
    #[must_use]
    pub fn first_picture_ms(&self) -> f64 {
        self.number("first_picture_ms")
    }

    /// What a viewer at `fps` would complain of, if anything: a picture that did not move all the
    /// time, no sound, a failed request.
    fn complaint(&self, fps: f64) -> Option<String> {
        let report = &self.0;
        if report["first_picture_ms"].is_null() {
            return Some("no picture".to_owned());
        }
        let advanced = self.number("advanced_s");
        // Players may run up to a tenth faster to catch up with the live edge.
        let speed = advanced / self.number("watched_s");
        let frames = self.number("frames");
        let complaints = [
            (!(0.93..1.15).contains(&speed), "time advanced at the wrong speed"),
            (frames < 0.85 * fps * advanced, "too few frames"),
            (report["waits"] != 0, "playback stalled"),
            (self.number("early_waits") > 1.0, "playback began with stalls"),
            (report["has_audio"] != true, "no sound"),
            (report["http_errors"] != json!([]), "failed requests"),
            (report["errors"] != json!([]), "errors of the player"),
            (report["console_errors"] != json!([]), "errors on the console"),
        ];
        complaints.iter().find(|(so, _)| *so).map(|(_, complaint)| (*complaint).to_owned())
    }
}

/// Lets `job` play for `seconds`, without anything to complain of at `fps`.
///
/// Each player has the machine to itself: it decodes in software, and two cores are few. Where one
/// viewing is not smooth all the same, a second one decides: a hiccup of the machine passes, a fault
/// of the gateway comes again.
///
/// # Panics
/// When neither viewing is smooth.
#[must_use]
pub fn play_smoothly(job: &Job, seconds: u32, fps: f64) -> Viewing {
    let mut complaints = Vec::new();
    for _ in 0..2 {
        let viewing = play(job, seconds);
        match viewing.complaint(fps) {
            None => return viewing,
            Some(complaint) => complaints.push(format!("{complaint}: {:#}", viewing.report())),
        }
    }
    panic!("not smooth twice:\n{}", complaints.join("\n"));
}

/// Lets `job` play for `seconds` in a Chromium of its own.
///
/// # Panics
/// When Chromium or Node fails, not when the player does.
fn play(job: &Job, seconds: u32) -> Viewing {
    let job = json!({"mode": job.mode, "url": job.url, "screenshot": job.screenshot});
    let request = json!({"seconds": seconds, "jobs": [job]}).to_string();
    let script = tools::root().join("tests/browser/play.mjs");
    let output = tools::run("node", Command::new("node").arg(script).arg(request));
    match serde_json::from_str(&output) {
        Ok(Value::Array(mut reports)) if reports.len() == 1 => Viewing(reports.remove(0)),
        _ => panic!("play.mjs printed {output}"),
    }
}
