//! What the two ends of a connection tell each other of Enhanced RTMP v2, in `connect` and its answer.

use crate::amf0::Value;
use crate::codec::CodecConfig;
use crate::flv;
use crate::media::TrackKind;

/// The codecs that Weir passes on, by their FourCC.
const VIDEO_FOURCCS: [&str; 4] = ["avc1", "hvc1", "av01", "vp09"];
const AUDIO_FOURCCS: [&str; 6] = ["mp4a", "Opus", ".mp3", "fLaC", "ac-3", "ec-3"];

/// Of the FourCcInfoMask.
const CAN_FORWARD: f64 = 4.0;

/// Multitrack, and that ModEx signals are parsed (CapsExMask).
const CAPABILITIES: f64 = 6.0;

const LIST: &str = "fourCcList";
const VIDEO_MAP: &str = "videoFourCcInfoMap";
const AUDIO_MAP: &str = "audioFourCcInfoMap";
const CAPS: &str = "capsEx";
/// Stands for every codec, in lists and maps.
const ANY: &str = "*";

/// What Weir says of itself, as server and as client.
pub(super) fn properties() -> [(String, Value); 4] {
    let forwards = |codecs: &[&str]| {
        Value::Object(codecs.iter().map(|&cc| (cc.to_owned(), CAN_FORWARD.into())).collect())
    };
    let all = VIDEO_FOURCCS.iter().chain(&AUDIO_FOURCCS).map(|&cc| cc.into()).collect();
    [
        (LIST.to_owned(), Value::StrictArray(all)),
        (VIDEO_MAP.to_owned(), forwards(&VIDEO_FOURCCS)),
        (AUDIO_MAP.to_owned(), forwards(&AUDIO_FOURCCS)),
        (CAPS.to_owned(), CAPABILITIES.into()),
    ]
}

/// Whether the properties `said` hold any of these.
pub(super) fn is_spoken_in(said: &Value) -> bool {
    [LIST, VIDEO_MAP, AUDIO_MAP, CAPS].iter().any(|key| said.get(key).is_some())
}

/// The codecs that a server said it takes. One that said nothing is believed to take all: if not, it
/// refuses them itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerCodecs {
    video: Option<Vec<String>>,
    audio: Option<Vec<String>>,
}

impl PeerCodecs {
    /// Reads the properties of a `connect`'s answer. Weir's own codecs are all that is kept of them.
    pub(super) fn read(said: &Value) -> Self {
        Self {
            video: listed(said, VIDEO_MAP, &VIDEO_FOURCCS),
            audio: listed(said, AUDIO_MAP, &AUDIO_FOURCCS),
        }
    }

    /// Whether the server can be sent this codec. H.264, AAC and MP3 are older than the question.
    #[must_use]
    pub fn take(&self, codec: &CodecConfig) -> bool {
        let listed = match codec.kind() {
            TrackKind::Video => &self.video,
            TrackKind::Audio => &self.audio,
        };
        let is_legacy =
            matches!(codec, CodecConfig::Avc(_) | CodecConfig::Aac(_) | CodecConfig::Mp3(_));
        let is_named = |listed: &Vec<String>| {
            listed.iter().any(|four_cc| four_cc.as_bytes() == flv::four_cc(codec))
        };
        is_legacy || listed.as_ref().is_none_or(is_named)
    }
}

/// Those of `known` that the map names, or else the list; `None` where there is neither, or anything
/// goes.
fn listed(said: &Value, map: &str, known: &[&str]) -> Option<Vec<String>> {
    let mapped = said.get(map).and_then(Value::properties);
    let mapped = mapped.map(|codecs| codecs.iter().map(|(name, _)| name.as_str()).collect());
    let named: Vec<&str> = mapped.or_else(|| match said.get(LIST)? {
        Value::StrictArray(codecs) => Some(codecs.iter().filter_map(Value::as_str).collect()),
        _ => None,
    })?;
    let kept = |codec: &&&str| named.contains(*codec);
    let any = named.contains(&ANY);
    (!any).then(|| known.iter().filter(kept).map(|&codec| codec.to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::tests::{AVCC, HVCC, hex};
    use crate::codec::{aac, avc, hevc, opus};
    use crate::rtmp::command::object;

    fn codecs() -> [CodecConfig; 4] {
        let (avc, _) = avc::Config::parse(&hex(AVCC)).unwrap();
        let (hevc, _) = hevc::Config::parse(&hex(HVCC)).unwrap();
        [
            CodecConfig::Avc(avc),
            CodecConfig::Aac(aac::Config::parse(&[0x11, 0x90]).unwrap()),
            CodecConfig::Hevc(hevc),
            CodecConfig::Opus(
                opus::Config::parse(b"OpusHead\x01\x02\0\0\x80\xbb\0\0\0\0\0").unwrap(),
            ),
        ]
    }

    #[test]
    fn a_server_is_sent_what_it_takes() {
        let list = |codecs: &[&str]| {
            Value::StrictArray(codecs.iter().map(|&codec| Value::from(codec)).collect())
        };
        let map = |codecs: &[&str]| {
            Value::Object(codecs.iter().map(|&codec| (codec.to_owned(), 1.0.into())).collect())
        };
        for (said, takes_hevc, takes_opus) in [
            (Value::Null, true, true),
            (object([("fmsVer", "FMS/3,5,7,7009".into())]), true, true),
            (object([(LIST, 1.0.into())]), true, true),
            (object([(LIST, list(&["av01", "Opus"]))]), false, true),
            (object([(LIST, list(&["hvc1"]))]), true, false),
            (object([(LIST, list(&["*"]))]), true, true),
            (object([(VIDEO_MAP, map(&["av01"]))]), false, true),
            (object([(VIDEO_MAP, map(&["*"])), (LIST, list(&["av01"]))]), true, false),
            (object([(AUDIO_MAP, map(&["mp4a"])), (LIST, list(&["hvc1"]))]), true, false),
            (Value::Object(properties().into()), true, true),
        ] {
            let taken = codecs().map(|codec| PeerCodecs::read(&said).take(&codec));
            assert_eq!(taken, [true, true, takes_hevc, takes_opus], "{said:?}");
        }
    }
}
