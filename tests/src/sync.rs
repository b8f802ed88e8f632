//! Whether picture and sound of a file are in sync, measured on what the demo clip shows.

use std::path::Path;
use std::process::Command;

use crate::tools::{self, Scratch};

/// The start of each second in a file, as it is seen and as it is heard, in seconds.
#[derive(Clone, Debug)]
pub struct Marks {
    pub flashes: Vec<f64>,
    pub beeps: Vec<f64>,
}

// The square of the clip that flashes lies here, in parts of width and height.
const SQUARE: &str = "crop=iw*0.15:ih*0.2:iw*0.78:ih*0.15";
/// Mean luma between that of the square dark (48) and lit (235).
const LIT: f64 = 140.0;
/// RMS level in dB between silence and the tone (-11).
const LOUD: f64 = -30.0;

impl Marks {
    /// Decodes `file` with ffmpeg and looks for flashes and beeps.
    #[must_use]
    pub fn of(file: &Path) -> Self {
        let scratch = Scratch::new();
        let (luma, level) = (scratch.file("luma"), scratch.file("level"));
        let mut command = Command::new("ffmpeg");
        command.args(["-nostdin", "-v", "error", "-copyts", "-i"]).arg(file);
        let print = format!("metadata=print:key=lavfi.signalstats.YAVG:file={}", luma.display());
        let video = format!("{SQUARE},format=yuv420p,signalstats,{print}");
        command.args(["-map", "0:v:0", "-vf", &video, "-f", "null", "-"]);
        let print = format!("key=lavfi.astats.Overall.RMS_level:file={}", level.display());
        let audio = format!(
            "aresample=48000,asetnsamples=n=240:p=0,astats=metadata=1:reset=1,ametadata=print:{print}"
        );
        command.args(["-map", "0:a:0", "-af", &audio, "-f", "null", "-"]);
        tools::run("ffmpeg", &mut command);
        Self { flashes: onsets(&luma, LIT), beeps: onsets(&level, LOUD) }
    }

    /// Sound behind picture for each flash that has its beep, in seconds; negative is ahead.
    #[must_use]
    pub fn offsets(&self) -> Vec<f64> {
        let nearest = |flash: &f64| {
            let offsets = self.beeps.iter().map(|beep| beep - flash);
            offsets.min_by(|a, b| a.abs().total_cmp(&b.abs())).filter(|offset| offset.abs() < 0.5)
        };
        self.flashes.iter().filter_map(nearest).collect()
    }

    /// # Panics
    /// Unless at least `seconds` flashes met their beeps, each within `tolerance` seconds.
    pub fn assert_in_sync(&self, seconds: usize, tolerance: f64) {
        let offsets = self.offsets();
        assert!(offsets.len() >= seconds, "only {} flashes met a beep: {self:?}", offsets.len());
        let worst = offsets.iter().fold(0.0_f64, |worst, offset| worst.max(offset.abs()));
        assert!(worst <= tolerance, "picture and sound are {worst:.3} s apart: {offsets:?}");
    }
}

/// The times at which a printed value rises above `threshold`. A file that begins above it tells
/// nothing about when that began.
fn onsets(printed: &Path, threshold: f64) -> Vec<f64> {
    let text = std::fs::read_to_string(printed).expect("ffmpeg printed its measurements");
    let mut onsets = Vec::new();
    let mut time = 0.0;
    let mut was_above = true;
    for line in text.lines() {
        if let Some((_, at)) = line.split_once("pts_time:") {
            time = at.split_whitespace().next().and_then(|at| at.parse().ok()).unwrap_or(time);
        } else if let Some((_, value)) = line.split_once('=') {
            // Digital silence is printed as -inf, which parses, too.
            let above = value.parse::<f64>().is_ok_and(|value| value > threshold);
            if above && !was_above {
                onsets.push(time);
            }
            was_above = above;
        }
    }
    onsets
}
