//! From length-prefixed NAL units to Annex B, as a transport stream wants them: exactly one access
//! unit delimiter, first; parameter sets before a keyframe (ISO 13818-1 §2.14.1, H.264 §7.4.1.2.3).

use super::layout::Video;

/// As long as the 4-byte length that it stands for: conversion keeps sizes.
pub const START_CODE: [u8; 4] = [0, 0, 0, 1];

/// primary_pic_type 7: any slice type (H.264 §7.4.2.4).
const AVC_DELIMITER: [u8; 6] = [0, 0, 0, 1, 9, 0xf0];
/// pic_type 2: any slice type (H.265 §7.4.3.5).
const HEVC_DELIMITER: [u8; 7] = [0, 0, 0, 1, 0x46, 1, 0x50];

/// The NAL units of one access unit; stops where a length is wrong.
pub struct Nals<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Nals<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let (length, rest) = self.rest.split_first_chunk::<4>()?;
            let len = usize::try_from(u32::from_be_bytes(*length)).ok()?;
            let (nal, rest) = rest.split_at_checked(len)?;
            self.rest = rest;
            if !nal.is_empty() {
                return Some(nal);
            }
        }
    }
}

/// One access unit on its way to Annex B.
#[derive(Clone, Copy)]
pub struct Picture<'a> {
    video: &'a Video,
    payload: &'a [u8],
    introduce: bool,
}

impl<'a> Picture<'a> {
    /// With parameter sets where a decoder may start, to `introduce` the pictures.
    pub fn new(video: &'a Video, payload: &'a [u8], introduce: bool) -> Self {
        Self { video, payload, introduce }
    }

    /// Bytes that [`Picture::write`] gives; zero if the access unit has no NAL unit to show.
    pub fn len(&self) -> usize {
        let body = self.nals().fold(0_usize, |sum, nal| {
            sum.saturating_add(nal.len()).saturating_add(START_CODE.len())
        });
        match body {
            0 => 0,
            _ => body.saturating_add(self.delimiter().len()).saturating_add(self.prefix().len()),
        }
    }

    /// Gives the bytes in order to `put`, until it returns `None`.
    pub fn write(&self, mut put: impl FnMut(&[u8]) -> Option<()>) -> Option<()> {
        put(self.delimiter())?;
        put(self.prefix())?;
        for nal in self.nals() {
            put(&START_CODE)?;
            put(nal)?;
        }
        Some(())
    }

    fn nals(&self) -> impl Iterator<Item = &'a [u8]> {
        let Self { video, payload, .. } = *self;
        Nals { rest: payload }.filter(move |nal| !is_delimiter(video, nal))
    }

    fn delimiter(&self) -> &'static [u8] {
        match self.video {
            Video::Avc { .. } => &AVC_DELIMITER,
            Video::Hevc { .. } => &HEVC_DELIMITER,
        }
    }

    /// The parameter sets, unless the access unit has its own.
    fn prefix(&self) -> &'a [u8] {
        let (Video::Avc { parameter_sets } | Video::Hevc { parameter_sets }) = self.video;
        let video = self.video;
        if self.introduce && !self.nals().any(|nal| is_sequence_set(video, nal)) {
            parameter_sets
        } else {
            &[]
        }
    }
}

fn is_delimiter(video: &Video, nal: &[u8]) -> bool {
    match video {
        Video::Avc { .. } => avc_type(nal) == 9,
        Video::Hevc { .. } => hevc_type(nal) == 35,
    }
}

fn is_sequence_set(video: &Video, nal: &[u8]) -> bool {
    match video {
        Video::Avc { .. } => avc_type(nal) == 7,
        Video::Hevc { .. } => hevc_type(nal) == 33,
    }
}

fn avc_type(nal: &[u8]) -> u8 {
    nal.first().map_or(0, |byte| byte & 0x1f)
}

fn hevc_type(nal: &[u8]) -> u8 {
    nal.first().map_or(0, |byte| byte >> 1 & 0x3f)
}
