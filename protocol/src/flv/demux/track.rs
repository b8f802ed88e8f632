use std::sync::Arc;

use bytes::Bytes;

use crate::codec::nal::{self, LengthSize};
use crate::codec::{CodecConfig, Error, aac, ac3, av1, avc, flac, hevc, mp3, opus, vp9};
use crate::flv::SkipReason;
use crate::flv::body::Codec;
use crate::media::{Track, TrackId};
use crate::pool::Pool;

/// One track of a publisher: its configuration, and whether players have got it.
#[derive(Debug)]
pub(super) struct TrackState {
    id: TrackId,
    /// What messages call the codec, and what it is: some encoders send HEVC as AVC.
    declared: Codec,
    codec: Codec,
    length_size: LengthSize,
    vp9_record: Option<vp9::Record>,
    /// That of the newest sequence header. In-band parameter sets can overrule it; then the same
    /// header again must not bring it back.
    header: Option<CodecConfig>,
    config: Option<Arc<CodecConfig>>,
    /// The configuration that players have got.
    announced: Option<Arc<CodecConfig>>,
}

/// A frame in the form of an access unit.
pub(super) struct Frame {
    pub(super) keyframe: bool,
    pub(super) payload: Bytes,
    /// Samples and samples per second of an audio frame.
    pub(super) samples: Option<(u32, u32)>,
}

impl TrackState {
    pub(super) fn new(id: TrackId, codec: Codec) -> Self {
        Self {
            id,
            declared: codec,
            codec,
            length_size: LengthSize::Four,
            vp9_record: None,
            header: None,
            config: None,
            announced: None,
        }
    }

    pub(super) fn id(&self) -> TrackId {
        self.id
    }

    pub(super) fn use_codec(&mut self, codec: Codec) {
        if codec != self.declared {
            *self = Self::new(self.id, codec);
        }
    }

    /// Takes a sequence header. The same again, or one that differs in nothing that matters,
    /// changes nothing.
    pub(super) fn configure(&mut self, record: &[u8]) -> Result<(), SkipReason> {
        match self.parse(record) {
            Ok(Some(config)) => {
                if self.header.as_ref() != Some(&config) {
                    self.header = Some(config.clone());
                    self.adopt(config);
                }
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => Err(SkipReason::BadConfiguration(error)),
        }
    }

    /// `None` when the rest of the configuration comes with the first keyframe.
    fn parse(&mut self, record: &[u8]) -> Result<Option<CodecConfig>, Error> {
        match self.codec {
            Codec::Avc => match avc::Config::parse(record) {
                Ok((config, length_size)) => {
                    self.length_size = length_size;
                    Ok(Some(CodecConfig::Avc(config)))
                }
                // Before Enhanced RTMP, OBS sent an hvcC under the number of AVC.
                Err(error) if hevc::Config::parse(record).is_err() => Err(error),
                Err(_) => {
                    self.codec = Codec::Hevc;
                    self.parse(record)
                }
            },
            Codec::Hevc => {
                let (config, length_size) = hevc::Config::parse(record)?;
                self.length_size = length_size;
                Ok(Some(CodecConfig::Hevc(config)))
            }
            Codec::Av1 => match av1::Config::parse(record) {
                Err(Error::Missing(_)) => Ok(None),
                parsed => parsed.map(CodecConfig::Av1).map(Some),
            },
            Codec::Vp9 => {
                self.vp9_record = Some(vp9::Record::parse(record)?);
                Ok(None)
            }
            Codec::Aac => aac::Config::parse(record).map(CodecConfig::Aac).map(Some),
            Codec::Opus => opus::Config::parse(record).map(CodecConfig::Opus).map(Some),
            Codec::Flac => flac::Config::parse(record).map(CodecConfig::Flac).map(Some),
            // The frames tell all; a sequence start has nothing to add.
            Codec::Mp3 | Codec::Ac3 | Codec::Eac3 => Ok(None),
        }
    }

    fn adopt(&mut self, config: CodecConfig) {
        let known = self.announced.clone().filter(|announced| **announced == config);
        self.config = Some(known.unwrap_or_else(|| Arc::new(config)));
    }

    /// The track, if players have not got its configuration yet.
    pub(super) fn announcement(&mut self) -> Option<Track> {
        if self.is_announced() {
            return None;
        }
        self.announced.clone_from(&self.config);
        Some(Track { id: self.id, codec: self.config.clone()? })
    }

    fn is_announced(&self) -> bool {
        match (&self.config, &self.announced) {
            (Some(config), Some(announced)) => Arc::ptr_eq(config, announced),
            _ => false,
        }
    }

    /// Brings a frame into the form of an access unit, and takes the configuration it carries.
    pub(super) fn frame(
        &mut self,
        data: Bytes,
        called_keyframe: bool,
        pool: &mut impl Pool,
    ) -> Result<Frame, SkipReason> {
        self.configure_by_adts(&data);
        let payload = self.payload(data, pool)?;
        let (keyframe, has_picture) = self.kind_of(&payload, called_keyframe);
        if keyframe || !has_picture {
            self.configure_in_band(&payload);
        }
        if !has_picture {
            return Err(SkipReason::NoPicture);
        }
        let config = self.config.as_deref().ok_or(SkipReason::NoConfiguration)?;
        // After a change of configuration, too, players can only go on from a keyframe.
        if !keyframe && !self.is_announced() {
            return Err(SkipReason::NoKeyframe);
        }
        let samples = config.frame_samples(&payload).zip(config.sample_rate());
        Ok(Frame { keyframe, payload, samples })
    }

    fn payload(&self, data: Bytes, pool: &mut impl Pool) -> Result<Bytes, SkipReason> {
        let payload = match self.codec {
            Codec::Avc | Codec::Hevc => nal::to_payload(data, self.length_size, pool)?,
            Codec::Av1 => av1::without_temporal_delimiter(data),
            Codec::Aac => aac::without_adts(data),
            _ => data,
        };
        if payload.is_empty() { Err(SkipReason::Empty) } else { Ok(payload) }
    }

    /// Whether players can start at the access unit, and whether it can be shown or heard at all.
    fn kind_of(&self, payload: &[u8], called_keyframe: bool) -> (bool, bool) {
        match self.codec {
            Codec::Avc => (avc::is_keyframe(payload, called_keyframe), avc::has_picture(payload)),
            Codec::Hevc => {
                (hevc::is_keyframe(payload, called_keyframe), hevc::has_picture(payload))
            }
            Codec::Av1 => (av1::is_keyframe(payload), av1::has_picture(payload)),
            Codec::Vp9 => (vp9::is_keyframe(payload), true),
            _ => (true, true),
        }
    }

    /// Some encoders leave ADTS headers before their frames, and send no other configuration. Where
    /// there is one, it counts.
    fn configure_by_adts(&mut self, frame: &[u8]) {
        if self.codec != Codec::Aac || self.header.is_some() {
            return;
        }
        if let Some(Ok(config)) = aac::Config::from_adts(frame) {
            let config = CodecConfig::Aac(config);
            if self.config.as_deref() != Some(&config) {
                self.adopt(config);
            }
        }
    }

    /// Takes the configuration that an access unit carries, where it says something new.
    fn configure_in_band(&mut self, payload: &[u8]) {
        let known = match self.config.as_deref() {
            Some(CodecConfig::Avc(config)) => config.covers(payload),
            Some(CodecConfig::Hevc(config)) => config.covers(payload),
            Some(CodecConfig::Av1(config)) => config.covers(payload),
            Some(CodecConfig::Ac3(config)) => config.covers(payload),
            Some(CodecConfig::Aac(_) | CodecConfig::Opus(_) | CodecConfig::Flac(_)) => true,
            _ => false,
        };
        if known {
            return;
        }
        let config = match self.codec {
            Codec::Avc => avc::Config::from_access_unit(payload).map(CodecConfig::Avc),
            Codec::Hevc => hevc::Config::from_access_unit(payload).map(CodecConfig::Hevc),
            Codec::Av1 => av1::Config::from_access_unit(payload).map(CodecConfig::Av1),
            Codec::Vp9 => {
                vp9::Config::from_access_unit(payload, self.vp9_record).map(CodecConfig::Vp9)
            }
            Codec::Mp3 => mp3::Config::from_access_unit(payload).map(CodecConfig::Mp3),
            Codec::Opus => Ok(CodecConfig::Opus(opus::Config::stereo())),
            Codec::Ac3 | Codec::Eac3 => {
                ac3::Config::from_access_unit(payload).map(CodecConfig::Ac3)
            }
            Codec::Aac | Codec::Flac => return,
        };
        // An access unit without parameter sets has nothing to say.
        if let Ok(config) = config {
            self.adopt(config);
        }
    }
}
