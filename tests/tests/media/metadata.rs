//! What encoders say of themselves decides nothing.

use weir_e2e::replay::flv::Clip;
use weir_e2e::{Backend, clips};
use weir_protocol::amf0::{self, Value};
use weir_protocol::flv::{Tag, TagKind};

use crate::same;

/// The clip with these figures in its metadata, or without metadata.
fn saying(figures: Option<&[(&str, Value)]>) -> Clip {
    let mut clip = clips::plain().clone();
    clip.tags.retain(|tag| tag.kind != TagKind::Script);
    if let Some(figures) = figures {
        let figures = figures.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let name = |name: &str| Value::String(name.to_owned());
        let figures = Value::EcmaArray(figures.collect());
        let body = amf0::encode_all(&[name("@setDataFrame"), name("onMetaData"), figures]);
        clip.tags.insert(0, Tag { kind: TagKind::Script, timestamp_ms: 0, body: body.into() });
    }
    clip
}

#[test]
fn am_05_codecs_and_sizes_follow_from_the_media() {
    let text = |text: &str| Value::String(text.to_owned());
    let codecs = |video: Value, audio: Value| {
        saying(Some(&[("videocodecid", video), ("audiocodecid", audio)]))
    };
    let sizes = |width: f64, height: f64| {
        saying(Some(&[("width", Value::Number(width)), ("height", Value::Number(height))]))
    };
    let number = Value::Number;
    let clips = [
        saying(None),
        saying(Some(&[])),
        codecs(text("avc1"), text("mp4a")),
        codecs(text("hvc1"), text("Opus")),
        codecs(text("av01"), number(2.0)),
        codecs(number(1_752_589_105.0), number(1_332_770_163.0)),
        codecs(number(0.0), number(0.0)),
        codecs(number(f64::NAN), number(f64::NAN)),
        codecs(Value::Boolean(true), Value::Null),
        sizes(-1920.0, -1080.0),
        sizes(f64::INFINITY, f64::NAN),
        sizes(3840.0, 2160.0),
    ];
    let variants: Vec<(&Clip, &str)> = clips.iter().map(|clip| (clip, "")).collect();
    same(Backend::Epoll, "AM-05", &variants);
}
