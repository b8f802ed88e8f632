//! What a publisher sends and players do not get.

use weir_hls::Window;
use weir_protocol::flv::CodecId;
use weir_protocol::media::Track;

use super::TrackSet;
use crate::limits;

/// A track, or sound or pictures that never became one, that some output goes without.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// Its number in the list of tracks; none of what could not be read at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track: Option<u8>,
    pub codec: String,
    /// `all`, `fmp4` or `ts`.
    pub output: &'static str,
    pub reason: String,
}

/// Codecs that the publisher sends and Weir does not know, each once.
#[derive(Debug, Default)]
pub struct UnknownCodecs(Vec<CodecId>);

impl UnknownCodecs {
    /// Whether this one is news. A publisher that goes through all numbers is not followed for long.
    pub fn note(&mut self, codec: CodecId) -> bool {
        let is_news = !self.0.contains(&codec) && self.0.len() < limits::UNKNOWN_CODECS;
        if is_news {
            self.0.push(codec);
        }
        is_news
    }
}

/// All that is left out at the moment.
pub fn list(unknown: &UnknownCodecs, tracks: &TrackSet, window: &Window) -> Vec<LeftOut> {
    let unknown = unknown.0.iter().map(|codec| LeftOut {
        track: None,
        codec: codec.to_string(),
        output: "all",
        reason: "Weir does not know this codec".to_owned(),
    });
    let further = tracks.tracks.iter().filter(|track| tracks.flv_track(track.id).is_none());
    let further = further.map(|track| {
        left_out(track, "all", "outputs carry one video and one audio track".to_owned())
    });
    let epoch = window.epoch();
    let not_in_fmp4 = epoch
        .and_then(|epoch| epoch.missing_in_fmp4())
        .map(|track| left_out(track, "fmp4", "players refuse it beside video in fMP4".to_owned()));
    let not_in_ts = epoch.into_iter().flat_map(|epoch| epoch.missing_in_ts());
    let not_in_ts = not_in_ts.map(|(track, why)| left_out(track, "ts", why.to_string()));
    unknown.chain(further).chain(not_in_fmp4).chain(not_in_ts).collect()
}

fn left_out(track: &Track, output: &'static str, reason: String) -> LeftOut {
    LeftOut { track: Some(track.id.0), codec: track.codec.name().to_owned(), output, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codecs_are_told_once_and_are_bounded() {
        let mut unknown = UnknownCodecs::default();
        assert!(unknown.note(CodecId::Audio(7)));
        assert!(!unknown.note(CodecId::Audio(7)));
        let news = (0..=255).filter(|id| unknown.note(CodecId::Video(*id))).count();
        assert_eq!(news, limits::UNKNOWN_CODECS - 1);
    }
}
