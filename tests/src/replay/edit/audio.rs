//! Bodies of audio tags (FLV v10.1 §E.4.2).

use weir_protocol::codec::aac;

/// AAC by the number of FLV, or any codec by FourCC, with a sequence header.
pub(super) fn is_header(body: &[u8]) -> bool {
    match body {
        [first, kind, ..] if first >> 4 == 10 => *kind == 0,
        [first, ..] => first >> 4 == 9 && first & 0xf == 0,
        [] => false,
    }
}

/// An ADTS header before the frame, if it is one of AAC with a configuration that ADTS can say.
pub(super) fn add_adts(body: &mut Vec<u8>, header: Option<&[u8]>) {
    let record = header.and_then(|header| header.get(2..));
    let Some(config) = record.and_then(|record| aac::Config::parse(record).ok()) else { return };
    if body.len() < 2 || body[0] >> 4 != 10 || is_header(body) {
        return;
    }
    let adts = config.adts_header(body.len() - 2).expect("what ADTS can say");
    body.splice(2..2, adts);
}
