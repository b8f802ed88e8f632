//! The colour of a video track, as Enhanced RTMP's metadata frames tell it (Metadata Frame).

use bytes::Bytes;

use super::body::{Codec, FRAME_TYPE_COMMAND, VIDEO_EX_HEADER, body_type};
use crate::amf0::{self, Reader, Value};
use crate::media::Track;

/// How pictures are to be shown, for high dynamic range. What an encoder leaves out, or says outside of
/// the range that the specification gives, is not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColorInfo {
    pub bit_depth: Option<f64>,
    /// Colour primaries, transfer characteristics and matrix coefficients by their numbers in
    /// ITU-T H.273.
    pub primaries: Option<f64>,
    pub transfer: Option<f64>,
    pub matrix: Option<f64>,
    /// Maximum frame average and maximum content light level, in cd/m².
    pub max_fall: Option<f64>,
    pub max_cll: Option<f64>,
    /// Of the mastering display, in the order of [`MASTERING`].
    pub mastering: [Option<f64>; MASTERING.len()],
}

/// Chromaticity coordinates and luminance in cd/m² (SMPTE ST 2086), with the names and the greatest
/// values that Enhanced RTMP gives them.
pub const MASTERING: [(&str, f64); 10] = [
    ("redX", 0.74),
    ("redY", 0.84),
    ("greenX", 0.74),
    ("greenY", 0.84),
    ("blueX", 0.74),
    ("blueY", 0.84),
    ("whitePointX", 0.74),
    ("whitePointY", 0.84),
    ("maxLuminance", 10_000.0),
    ("minLuminance", 5.0),
];

const NAME: &str = "colorInfo";
const CONFIG: &str = "colorConfig";
const LIGHT_LEVEL: &str = "hdrCll";
const MASTERING_DISPLAY: &str = "hdrMdcv";
const BRIGHTEST: f64 = 10_000.0;

impl ColorInfo {
    /// Reads the body of a metadata frame behind its FourCC. `None` when it tells nothing of colour;
    /// the default, when it takes back what was told before.
    #[must_use]
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::lenient(body);
        while let Ok(Some(name)) = reader.next() {
            let value = reader.next().ok()??;
            if name.as_str() == Some(NAME) {
                return Some(Self::read(&value));
            }
        }
        None
    }

    fn read(said: &Value) -> Self {
        let figure = |table: &str, name: &str, most: f64| {
            let number = said.get(table)?.get(name)?.as_number()?;
            (0.0..=most).contains(&number).then_some(number)
        };
        let config = |name, most| figure(CONFIG, name, most);
        Self {
            bit_depth: config("bitDepth", 16.0),
            primaries: config("colorPrimaries", 255.0),
            transfer: config("transferCharacteristics", 255.0),
            matrix: config("matrixCoefficients", 255.0),
            max_fall: figure(LIGHT_LEVEL, "maxFall", BRIGHTEST),
            max_cll: figure(LIGHT_LEVEL, "maxCLL", BRIGHTEST),
            mastering: MASTERING.map(|(name, most)| figure(MASTERING_DISPLAY, name, most)),
        }
    }

    /// The tag body that tells players. `None` for a track that they get in the form of FLV v10.1,
    /// which has no place for it, or when there is nothing to tell.
    #[must_use]
    pub fn body(&self, track: &Track) -> Option<Bytes> {
        let codec = Codec::from(&*track.codec);
        if codec == Codec::Avc || *self == Self::default() {
            return None;
        }
        // The frame type says nothing here; encoders send it as a command.
        let mut body = vec![VIDEO_EX_HEADER | FRAME_TYPE_COMMAND << 4 | body_type::METADATA];
        body.extend(codec.four_cc());
        body.extend(amf0::encode_all(&[NAME.into(), self.value()]));
        Some(body.into())
    }

    fn value(&self) -> Value {
        let table = |figures: &[(&str, Option<f64>)]| {
            let said = figures.iter().filter_map(|(name, figure)| {
                figure.map(|figure| ((*name).to_owned(), Value::Number(figure)))
            });
            Value::Object(said.collect())
        };
        let config = table(&[
            ("bitDepth", self.bit_depth),
            ("colorPrimaries", self.primaries),
            ("transferCharacteristics", self.transfer),
            ("matrixCoefficients", self.matrix),
        ]);
        let light_level = table(&[("maxFall", self.max_fall), ("maxCLL", self.max_cll)]);
        let mastering: Vec<_> = MASTERING
            .iter()
            .zip(self.mastering)
            .map(|((name, _), figure)| (*name, figure))
            .collect();
        let tables =
            [(CONFIG, config), (LIGHT_LEVEL, light_level), (MASTERING_DISPLAY, table(&mastering))];
        let told = tables.into_iter().filter(|(_, table)| *table != Value::Object(Vec::new()));
        Value::Object(told.map(|(name, table)| (name.to_owned(), table)).collect())
    }
}
