//! Supplemental enhancement information: the list of messages in one NAL unit of AVC or HEVC
//! (H.264 §7.3.2.3, H.265 §7.3.2.4).

use super::nal::rbsp_bytes;

/// payloadType: recovery point (H.264 §D.1.8, H.265 §D.2.8).
pub(super) const RECOVERY_POINT: u32 = 6;

/// Messages that are looked at. Encoders put two or three into one NAL unit.
const MAX_MESSAGES: usize = 32;

/// Whether a message of type `wanted` is in the list. `messages` is the NAL unit behind its header.
pub(super) fn has(messages: &[u8], wanted: u32) -> bool {
    let mut bytes = rbsp_bytes(messages);
    for _ in 0..MAX_MESSAGES {
        let (Some(kind), Some(size)) = (number(&mut bytes), number(&mut bytes)) else {
            return false;
        };
        let is_whole = match usize::try_from(size).unwrap_or(usize::MAX).checked_sub(1) {
            Some(last) => bytes.nth(last).is_some(),
            None => true,
        };
        if !is_whole || kind == wanted {
            return is_whole;
        }
    }
    false
}

/// payloadType and payloadSize: bytes of 255 and one below, added up.
fn number(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut sum = 0_u32;
    loop {
        let byte = bytes.next()?;
        sum = sum.saturating_add(byte.into());
        if byte != 0xff {
            return Some(sum);
        }
    }
}
