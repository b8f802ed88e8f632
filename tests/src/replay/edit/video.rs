//! Bodies of video tags, legacy and Enhanced (FLV v10.1 §E.4.3.1, Enhanced RTMP v2).

use weir_protocol::codec::nal::nal_units;
use weir_protocol::codec::{avc, hevc};

/// What the first bytes of a body say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) header: bool,
    pub(super) frame: bool,
    pub(super) hevc: bool,
    enhanced: bool,
    /// Where the composition time lies.
    time_at: Option<usize>,
    /// Where the record or the NAL units begin.
    pub(super) data_at: usize,
}

impl Form {
    /// `None` where there are no NAL units.
    pub(super) fn of(body: &[u8]) -> Option<Self> {
        let first = *body.first()?;
        if first & 0x80 == 0 {
            let hevc = match first & 0xf {
                7 => false,
                12 => true,
                _ => return None,
            };
            let kind = *body.get(1)?;
            let (header, frame) = (kind == 0, kind == 1);
            let whole = body.len() >= 5;
            let time_at = (frame && whole).then_some(2);
            return Some(Self { header, frame, hevc, enhanced: false, time_at, data_at: 5 });
        }
        let four_cc = body.get(1..5)?;
        let hevc = four_cc == b"hvc1";
        if !hevc && four_cc != b"avc1" {
            return None;
        }
        let kind = first & 0xf;
        let (header, timed) = (kind == 0, kind == 1 && body.len() >= 8);
        Some(Self {
            header,
            frame: kind == 1 || kind == 3,
            hevc,
            enhanced: true,
            time_at: timed.then_some(5),
            data_at: if timed { 8 } else { 5 },
        })
    }
}

/// Another composition time, or `ms` more than before. An Enhanced body without one gets it.
pub(super) fn set_time(body: &mut Vec<u8>, set: bool, ms: i32) {
    if Form::of(body).is_some_and(|form| form.enhanced && form.frame && body[0] & 0xf == 3) {
        body[0] = body[0] & 0xf0 | 1;
        body.splice(5..5, [0; 3]);
    }
    let Some(at) = Form::of(body).and_then(|form| form.time_at) else { return };
    let field = &mut body[at..at + 3];
    let before = i32::from_be_bytes([field[0], field[1], field[2], 0]) >> 8;
    let time = if set { ms } else { before.wrapping_add(ms) };
    field.copy_from_slice(&time.to_be_bytes()[1..]);
}

/// The number of a codec in FLV; an Enhanced body becomes one of FLV.
pub(super) fn set_codec(body: &mut Vec<u8>, number: u8) {
    let Some(form) = Form::of(body).filter(|form| form.enhanced) else {
        if let Some(first) = body.first_mut() {
            *first = *first & 0xf0 | number;
        }
        return;
    };
    let frame_type = body[0] & 0x70;
    let time = form.time_at.map_or([0; 3], |at| [body[at], body[at + 1], body[at + 2]]);
    let head = [frame_type | number, u8::from(!form.header), time[0], time[1], time[2]];
    body.splice(..form.data_at, head);
}

/// NAL lengths of `size` bytes, or what a header says of them.
///
/// # Panics
/// When a NAL unit is longer than its length can say.
pub(super) fn set_lengths(body: &mut Vec<u8>, size: usize) {
    let Some(form) = Form::of(body) else { return };
    if form.header {
        // lengthSizeMinusOne (ISO 14496-15 §5.3.3.1 and §8.3.3.1).
        let at = form.data_at + if form.hevc { 21 } else { 4 };
        if let Some(byte) = body.get_mut(at) {
            *byte = *byte & 0xfc | (size as u8 - 1);
        }
    } else if form.frame {
        rewrite(body, form, |unit, out| {
            let length = (unit.len() as u32).to_be_bytes();
            assert!(length[..4 - size].iter().all(|byte| *byte == 0), "a NAL unit is too long");
            out.extend_from_slice(&length[4 - size..]);
        });
    }
}

/// Start codes in place of lengths; of a header only the parameter sets are left.
pub(super) fn set_start_codes(body: &mut Vec<u8>, size: usize) {
    let Some(form) = Form::of(body) else { return };
    let code = &[0, 0, 0, 1][4 - size..];
    if form.header {
        let sets = parameter_sets(body);
        body.truncate(form.data_at);
        for set in sets {
            body.extend_from_slice(code);
            body.extend(set);
        }
    } else if form.frame {
        rewrite(body, form, |_, out| out.extend_from_slice(code));
    }
}

fn rewrite(body: &mut Vec<u8>, form: Form, before: impl Fn(&[u8], &mut Vec<u8>)) {
    let mut out = body.get(..form.data_at).unwrap_or(body).to_vec();
    for unit in nal_units(body.get(form.data_at..).unwrap_or_default()) {
        before(unit, &mut out);
        out.extend_from_slice(unit);
    }
    *body = out;
}

/// Leaves out the NAL units of these types.
pub(super) fn strip(body: &mut Vec<u8>, types: &[u8]) {
    let Some(form) = Form::of(body).filter(|form| form.frame) else { return };
    let kind = |unit: &[u8]| {
        if form.hevc { hevc::nal_type::of(unit) } else { avc::nal_type::of(unit) }
    };
    let mut out = body.get(..form.data_at).unwrap_or(body).to_vec();
    for unit in nal_units(body.get(form.data_at..).unwrap_or_default()) {
        if !kind(unit).is_some_and(|kind| types.contains(&kind)) {
            put(&mut out, unit);
        }
    }
    *body = out;
}

/// Puts NAL units before or behind those of a frame.
pub(super) fn add(body: &mut Vec<u8>, first: bool, units: &[Vec<u8>]) {
    let Some(form) = Form::of(body).filter(|form| form.frame) else { return };
    let mut more = Vec::new();
    units.iter().for_each(|unit| put(&mut more, unit));
    let at = if first { form.data_at.min(body.len()) } else { body.len() };
    body.splice(at..at, more);
}

fn put(out: &mut Vec<u8>, unit: &[u8]) {
    out.extend_from_slice(&(unit.len() as u32).to_be_bytes());
    out.extend_from_slice(unit);
}

/// The parameter sets of a sequence header; none where it can't be read.
pub(super) fn parameter_sets(header: &[u8]) -> Vec<Vec<u8>> {
    let Some(form) = Form::of(header).filter(|form| form.header) else { return Vec::new() };
    let record = header.get(form.data_at..).unwrap_or_default();
    let sets = if form.hevc {
        let parsed = hevc::Config::parse(record).ok();
        parsed.map(|(config, _)| [config.vps, config.sps, config.pps].concat())
    } else {
        avc::Config::parse(record).ok().map(|(config, _)| [config.sps, config.pps].concat())
    };
    sets.unwrap_or_default().into_iter().map(|set| set.to_vec()).collect()
}
