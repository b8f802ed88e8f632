use crate::amf0::{Reader, Value};

/// What an encoder says about its stream in onMetaData. Advisory only: tracks come from frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metadata {
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub frame_rate: Option<f64>,
    pub video_kbps: Option<f64>,
    pub audio_kbps: Option<f64>,
    pub audio_sample_rate: Option<u32>,
    pub audio_channels: Option<u32>,
    pub encoder: Option<String>,
}

/// Longer names are cut off.
const MAX_ENCODER_CHARS: usize = 128;
/// No figure of a real stream is larger.
const LARGEST_FIGURE: f64 = 1e9;

impl Metadata {
    /// Reads a script body: `onMetaData`, or the `@setDataFrame` that wraps it in RTMP. `None` for
    /// other script data and for what can't be read.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::lenient(body);
        let mut value = reader.next().ok()??;
        if value.as_str() == Some("@setDataFrame") {
            value = reader.next().ok()??;
        }
        if value.as_str() != Some("onMetaData") {
            return None;
        }
        let value = reader.next().ok()??;
        value.properties()?;
        Some(Self {
            width: whole(&value, "width"),
            height: whole(&value, "height"),
            frame_rate: figure(&value, "framerate").or_else(|| figure(&value, "fps")),
            video_kbps: figure(&value, "videodatarate"),
            audio_kbps: figure(&value, "audiodatarate"),
            audio_sample_rate: whole(&value, "audiosamplerate"),
            audio_channels: whole(&value, "audiochannels"),
            encoder: value
                .get("encoder")
                .and_then(Value::as_str)
                .map(|name| name.chars().take(MAX_ENCODER_CHARS).collect()),
        })
    }
}

/// A number, also as text, if it is one that a stream can have.
fn figure(value: &Value, name: &str) -> Option<f64> {
    let number = match value.get(name)? {
        Value::Number(number) => *number,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (number > 0.0 && number <= LARGEST_FIGURE).then_some(number)
}

fn whole(value: &Value, name: &str) -> Option<u32> {
    figure(value, name).map(|number| number.round() as u32).filter(|number| *number > 0)
}
