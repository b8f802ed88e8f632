//! The init segment: `ftyp` and `moov` (ISO 14496-12 §8.2, CMAF §7.3.1).

use weir_protocol::codec::{CodecConfig, aac, opus};
use weir_protocol::media::{TIMESCALE, Track, TrackKind};

use super::boxes::BoxWriter;
use super::{AUDIO_TRACK_ID, VIDEO_TRACK_ID};

/// The init segment for muxed `video` and `audio`.
pub fn init_segment(video: Option<&Track>, audio: Option<&Track>) -> Vec<u8> {
    let mut w = BoxWriter::with_capacity(1536);
    w.plain(b"ftyp", |w| {
        w.bytes(b"iso6");
        w.u32(0);
        // CMAF §7.2: `cmfc` names the structure; `iso6` default-base-is-moof and signed trun.
        for brand in [b"iso6", b"cmfc", b"mp41"] {
            w.bytes(brand);
        }
    });
    w.plain(b"moov", |w| {
        movie_header(w);
        let tracks = [(VIDEO_TRACK_ID, video), (AUDIO_TRACK_ID, audio)];
        for (id, track) in tracks {
            if let Some(track) = track {
                track_box(w, id, &track.codec);
            }
        }
        w.plain(b"mvex", |w| {
            for (id, track) in tracks {
                if track.is_some() {
                    w.full(b"trex", 0, 0, |w| {
                        w.u32(id);
                        w.u32(1); // sample description
                        w.zeros(12); // duration, size and flags stand in each fragment
                    });
                }
            }
        });
    });
    w.into_bytes()
}

const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

fn movie_header(w: &mut BoxWriter) {
    w.full(b"mvhd", 0, 0, |w| {
        w.zeros(8); // creation and modification time
        w.u32(1000); // timescale
        w.u32(0); // duration: unknown, fragmented
        w.u32(0x1_0000); // rate 1.0
        w.u16(0x0100); // volume 1.0
        w.zeros(10);
        MATRIX.iter().for_each(|cell| w.u32(*cell));
        w.zeros(24);
        w.u32(AUDIO_TRACK_ID.saturating_add(1)); // next track ID
    });
}

fn track_box(w: &mut BoxWriter, id: u32, codec: &CodecConfig) {
    let (width, height) = codec.resolution().unwrap_or((0, 0));
    w.plain(b"trak", |w| {
        // Flags: enabled, in movie, in preview.
        w.full(b"tkhd", 0, 7, |w| {
            w.zeros(8);
            w.u32(id);
            w.zeros(4);
            w.u32(0); // duration
            w.zeros(8);
            w.u16(0); // layer
            w.u16(0); // alternate group
            w.u16(if codec.kind() == TrackKind::Audio { 0x0100 } else { 0 });
            w.zeros(2);
            MATRIX.iter().for_each(|cell| w.u32(*cell));
            w.u32(width.checked_shl(16).unwrap_or(0)); // 16.16 fixed point
            w.u32(height.checked_shl(16).unwrap_or(0));
        });
        w.plain(b"mdia", |w| {
            w.full(b"mdhd", 0, 0, |w| {
                w.zeros(8);
                w.u32(codec.sample_rate().unwrap_or(TIMESCALE));
                w.u32(0);
                w.u16(0x55c4); // language: und
                w.u16(0);
            });
            media_handler(w, codec.kind());
            w.plain(b"minf", |w| media_information(w, codec));
        });
    });
}

fn media_handler(w: &mut BoxWriter, kind: TrackKind) {
    w.full(b"hdlr", 0, 0, |w| {
        w.u32(0);
        w.bytes(match kind {
            TrackKind::Video => b"vide",
            TrackKind::Audio => b"soun",
        });
        w.zeros(12);
        w.bytes(b"weir\0");
    });
}

fn media_information(w: &mut BoxWriter, codec: &CodecConfig) {
    match codec.kind() {
        TrackKind::Video => w.full(b"vmhd", 0, 1, |w| w.zeros(8)),
        TrackKind::Audio => w.full(b"smhd", 0, 0, |w| w.zeros(4)),
    }
    w.plain(b"dinf", |w| {
        w.full(b"dref", 0, 0, |w| {
            w.u32(1);
            w.full(b"url ", 0, 1, |_| {}); // flag: in this file
        });
    });
    w.plain(b"stbl", |w| {
        w.full(b"stsd", 0, 0, |w| {
            w.u32(1);
            sample_entry(w, codec);
        });
        for kind in [b"stts", b"stsc", b"stco"] {
            w.full(kind, 0, 0, |w| w.u32(0));
        }
        w.full(b"stsz", 0, 0, |w| w.zeros(8));
    });
}

fn sample_entry(w: &mut BoxWriter, codec: &CodecConfig) {
    match codec {
        CodecConfig::Avc(c) => visual(w, b"avc1", codec, |w| {
            w.plain(b"avcC", |w| w.bytes(&c.record));
        }),
        CodecConfig::Hevc(c) => visual(w, b"hvc1", codec, |w| {
            w.plain(b"hvcC", |w| w.bytes(&c.record));
        }),
        CodecConfig::Av1(c) => visual(w, b"av01", codec, |w| {
            w.plain(b"av1C", |w| w.bytes(&c.record));
        }),
        CodecConfig::Vp9(c) => visual(w, b"vp09", codec, |w| {
            w.full(b"vpcC", 1, 0, |w| w.bytes(&c.record));
        }),
        CodecConfig::Aac(c) => sound(w, b"mp4a", codec, |w| aac_stream_descriptor(w, c)),
        CodecConfig::Mp3(_) => sound(w, b"mp4a", codec, |w| {
            // Object type 0x6B: MPEG-1 audio (ISO 14496-1 table 5).
            elementary_stream(w, 0x6b, &[]);
        }),
        CodecConfig::Opus(c) => sound(w, b"Opus", codec, |w| opus_specific(w, c)),
        CodecConfig::Flac(c) => sound(w, b"fLaC", codec, |w| {
            w.full(b"dfLa", 0, 0, |w| w.bytes(&c.record));
        }),
        CodecConfig::Ac3(c) => {
            let (entry, specific) =
                if c.is_enhanced { (b"ec-3", b"dec3") } else { (b"ac-3", b"dac3") };
            sound(w, entry, codec, |w| w.plain(specific, |w| w.bytes(&c.record)));
        }
    }
}

/// VisualSampleEntry (ISO 14496-12 §12.1.3).
fn visual(
    w: &mut BoxWriter,
    kind: &[u8; 4],
    codec: &CodecConfig,
    configuration: impl FnOnce(&mut BoxWriter),
) {
    let (width, height) = codec.resolution().unwrap_or((0, 0));
    w.plain(kind, |w| {
        w.zeros(6);
        w.u16(1); // data reference
        w.zeros(16);
        w.u16(u16::try_from(width).unwrap_or(u16::MAX));
        w.u16(u16::try_from(height).unwrap_or(u16::MAX));
        w.u32(0x48_0000); // 72 dpi
        w.u32(0x48_0000);
        w.zeros(4);
        w.u16(1); // frames per sample
        w.zeros(32); // compressor name
        w.u16(0x18); // depth
        w.u16(0xffff);
        configuration(w);
    });
}

/// AudioSampleEntry (ISO 14496-12 §12.2.3).
fn sound(
    w: &mut BoxWriter,
    kind: &[u8; 4],
    codec: &CodecConfig,
    configuration: impl FnOnce(&mut BoxWriter),
) {
    w.plain(kind, |w| {
        w.zeros(6);
        w.u16(1); // data reference
        w.zeros(8);
        // A configuration with its channels in a PCE counts none: 2 is what §12.2.3 says then.
        w.u16(codec.channels().filter(|count| *count > 0).unwrap_or(2).into());
        w.u16(16); // sample size
        w.zeros(4);
        // 16.16; a rate beyond 16 bits is said by the configuration and the timescale only.
        let rate = codec.sample_rate().and_then(|rate| u16::try_from(rate).ok()).unwrap_or(0);
        w.u16(rate);
        w.u16(0);
        configuration(w);
    });
}

fn aac_stream_descriptor(w: &mut BoxWriter, config: &aac::Config) {
    elementary_stream(w, 0x40, &config.record);
}

/// `esds` (ISO 14496-14 §5.6) with the descriptors of ISO 14496-1 §7.2.6.
fn elementary_stream(w: &mut BoxWriter, object_type: u8, specific: &[u8]) {
    let specific_len = u8::try_from(specific.len()).unwrap_or(u8::MAX).min(90);
    let specific = specific.get(..usize::from(specific_len)).unwrap_or_default();
    let info_len = if specific.is_empty() { 0 } else { specific_len.saturating_add(2) };
    let config_len = info_len.saturating_add(13);
    let descriptor_len = config_len.saturating_add(2).saturating_add(3).saturating_add(3);
    w.full(b"esds", 0, 0, |w| {
        w.bytes(&[0x03, descriptor_len, 0, 0, 0]); // ES_Descriptor, ES_ID 0
        w.bytes(&[0x04, config_len, object_type, 0x15]); // AudioStream, upStream 0
        w.zeros(3); // buffer size
        w.zeros(8); // maximum and average bit rate: unknown
        if !specific.is_empty() {
            w.bytes(&[0x05, specific_len]); // DecoderSpecificInfo
            w.bytes(specific);
        }
        w.bytes(&[0x06, 1, 2]); // SLConfigDescriptor: MP4
    });
}

fn opus_specific(w: &mut BoxWriter, config: &opus::Config) {
    w.plain(b"dOps", |w| w.bytes(&config.record));
}
