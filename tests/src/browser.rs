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

    /// # Panics
    /// Unless the picture moved all the time, at `fps`, with sound, and no request failed.
    pub fn assert_smooth(&self, fps: f64) {
        let report = &self.0;
        assert!(!report["first_picture_ms"].is_null(), "no picture: {report:#}");
        let watched = self.number("watched_s");
        let advanced = self.number("advanced_s");
        // Players may run up to a tenth faster to catch up with the live edge.
        let speed = advanced / watched;
        assert!((0.93..1.15).contains(&speed), "time advanced at {speed:.2}: {report:#}");
        let frames = self.number("frames");
        assert!(frames >= 0.85 * fps * advanced, "too few frames: {report:#}");
        assert_eq!(report["waits"], 0, "playback stalled: {report:#}");
        assert!(self.number("early_waits") <= 1.0, "playback began with stalls: {report:#}");
        assert_eq!(report["has_audio"], true, "no sound: {report:#}");
        for list in ["http_errors", "errors", "console_errors"] {
            assert_eq!(report[list], json!([]), "{list}: {report:#}");
        }
    }
}

/// Lets all `jobs` play for `seconds` in one Chromium.
///
/// # Panics
/// When Chromium or Node fails, not when a player does.
#[must_use]
pub fn play(jobs: &[Job], seconds: u32) -> Vec<Viewing> {
    let jobs: Vec<Value> = jobs
        .iter()
        .map(|job| json!({"mode": job.mode, "url": job.url, "screenshot": job.screenshot}))
        .collect();
    let request = json!({"seconds": seconds, "jobs": jobs}).to_string();
    let script = tools::root().join("tests/browser/play.mjs");
    let output = tools::run("node", Command::new("node").arg(script).arg(request));
    match serde_json::from_str(&output) {
        Ok(Value::Array(reports)) => reports.into_iter().map(Viewing).collect(),
        _ => panic!("play.mjs printed {output}"),
    }
}
