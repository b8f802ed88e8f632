//! What a publisher sends and players do not get.

use weir_hls::Window;
use weir_protocol::codec;
use weir_protocol::flv::{SkipReason, Skipped};
use weir_protocol::media::{Track, TrackId, TrackKind};

use super::TrackSet;
use crate::limits;

/// A track, or sound or pictures that never became one, that some output goes without.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LeftOut {
    /// `video` or `audio`.
    pub kind: &'static str,
    /// Its number in the list of tracks; none of what can't be a track there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub track: Option<u8>,
    /// None of what does not get so far as to tell it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codec: Option<String>,
    /// `all`, `fmp4` or `ts`.
    pub output: &'static str,
    pub reason: String,
}

/// What a session sends and nobody can use: what stands in its way at the moment, once for each track
/// and once for each codec and track number that Weir does not take.
#[derive(Debug, Default)]
pub struct Losses {
    losses: Vec<Loss>,
    /// Tracks that have had frames.
    heard: Vec<TrackId>,
    /// What the log has of them.
    logged: Vec<Skipped>,
}

#[derive(Debug)]
struct Loss {
    what: Skipped,
    /// How many there were since the track's last frame.
    messages: u32,
}

impl Losses {
    /// Takes up what was skipped. Gives what the log has to tell: each thing once, and what an
    /// encoder may yet set right only when it lasts.
    pub fn note(&mut self, skipped: Skipped) -> Option<LeftOut> {
        if !self.is_loss(&skipped) {
            return None;
        }
        let known = self.losses.iter().position(|loss| loss.is_of_same(&skipped));
        let index = known.unwrap_or(self.losses.len());
        if index == limits::LOSSES {
            return None;
        }
        if known.is_none() {
            self.losses.push(Loss { what: skipped, messages: 0 });
        }
        let loss = &mut self.losses[index];
        loss.add(skipped);
        let is_due = is_certain(loss.what.reason) || loss.messages >= limits::LOSS_MESSAGES;
        if !is_due || self.logged.contains(&loss.what) || self.logged.len() == limits::LOSSES {
            return None;
        }
        self.logged.push(loss.what);
        Some(loss.left_out())
    }

    /// A frame of the track has come, so that whatever stood in its way is over.
    pub fn heal(&mut self, track: TrackId) {
        if !self.heard.contains(&track) {
            self.heard.push(track);
        }
        self.losses.retain(|Loss { what, .. }| match what.track {
            Some(lost) => lost != track,
            None => what.kind != track.kind() || !is_of_one_message(what.reason),
        });
    }

    /// A message without content is none, nor is a single bad one of a track that has frames.
    fn is_loss(&self, skipped: &Skipped) -> bool {
        let is_its = |heard: &TrackId| match skipped.track {
            Some(track) => track == *heard,
            None => skipped.kind == heard.kind(),
        };
        match skipped.reason {
            SkipReason::Empty => false,
            reason => !is_of_one_message(reason) || !self.heard.iter().any(is_its),
        }
    }
}

impl Loss {
    fn is_of_same(&self, other: &Skipped) -> bool {
        let of_track = self.what.track.is_some() || self.what.reason == other.reason;
        of_track && (self.what.kind, self.what.track) == (other.kind, other.track)
    }

    fn add(&mut self, skipped: Skipped) {
        self.messages = self.messages.saturating_add(1);
        let is_other = skipped.codec != self.what.codec;
        if is_other || weight(skipped.reason) >= weight(self.what.reason) {
            self.what = skipped;
        }
    }

    fn left_out(&self) -> LeftOut {
        let (codec, reason) = match self.what.reason {
            SkipReason::UnsupportedCodec(codec) => {
                (Some(codec.to_string()), "Weir does not know this codec".to_owned())
            }
            reason => (self.what.codec.map(str::to_owned), explain(reason)),
        };
        LeftOut {
            kind: kind_name(self.what.kind),
            track: self.what.track.map(|track| track.0),
            codec,
            output: "all",
            reason,
        }
    }
}

fn explain(reason: SkipReason) -> String {
    match reason {
        SkipReason::NoConfiguration => "its codec configuration has not come".to_owned(),
        SkipReason::NoKeyframe => "its first keyframe has not come".to_owned(),
        other => other.to_string(),
    }
}

/// Whether the reason tells nothing of the next message.
fn is_of_one_message(reason: SkipReason) -> bool {
    use SkipReason::{Empty, Malformed, NoPicture, PoolExhausted, Unknown};
    matches!(reason, Empty | Malformed | NoPicture | PoolExhausted | Unknown)
}

/// Whether there is nothing to wait for. Some encoders send an empty configuration first.
fn is_certain(reason: SkipReason) -> bool {
    use SkipReason::{BadConfiguration, TooManyTracks, TrackNumber, UnsupportedCodec};
    match reason {
        BadConfiguration(error) => error != codec::Error::Empty,
        other => matches!(other, TooManyTracks | TrackNumber(_) | UnsupportedCodec(_)),
    }
}

/// Of two reasons for the same track, the heavier is the cause of the other.
fn weight(reason: SkipReason) -> u8 {
    match reason {
        SkipReason::NoConfiguration => 1,
        reason if is_of_one_message(reason) => 0,
        _ => 2,
    }
}

/// All that is left out at the moment.
pub fn list(losses: &Losses, tracks: &TrackSet, window: &Window) -> Vec<LeftOut> {
    let lost = losses.losses.iter().map(Loss::left_out);
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
    lost.chain(further).chain(not_in_fmp4).chain(not_in_ts).collect()
}

fn left_out(track: &Track, output: &'static str, reason: String) -> LeftOut {
    LeftOut {
        kind: kind_name(track.kind()),
        track: Some(track.id.0),
        codec: Some(track.codec.name().to_owned()),
        output,
        reason,
    }
}

fn kind_name(kind: TrackKind) -> &'static str {
    match kind {
        TrackKind::Video => "video",
        TrackKind::Audio => "audio",
    }
}

#[cfg(test)]
mod tests {
    use weir_protocol::flv::CodecId;

    use super::*;
    use crate::stream::track_set::tests::{AUDIO, VIDEO};

    const BAD: SkipReason = SkipReason::BadConfiguration(codec::Error::Invalid("field"));

    fn of_track(track: TrackId, reason: SkipReason) -> Skipped {
        Skipped { kind: track.kind(), track: Some(track), codec: Some("aac"), reason }
    }

    fn of_none(kind: TrackKind, reason: SkipReason) -> Skipped {
        Skipped { kind, track: None, codec: None, reason }
    }

    fn listed(losses: &Losses) -> Vec<SkipReason> {
        losses.losses.iter().map(|loss| loss.what.reason).collect()
    }

    #[test]
    fn an_unknown_codec_is_logged_once_and_stays() {
        let mut losses = Losses::default();
        let speex = SkipReason::UnsupportedCodec(CodecId::Audio(11));
        let told = losses.note(of_none(TrackKind::Audio, speex)).expect("it is news");
        assert_eq!((told.kind, told.track, told.output), ("audio", None, "all"));
        assert_eq!(told.codec.as_deref(), Some("Speex audio"));
        assert_eq!(losses.note(of_none(TrackKind::Audio, speex)), None);
        losses.heal(AUDIO);
        assert_eq!(listed(&losses), [speex]);
    }

    /// Whatever numbers and codecs a publisher goes through.
    #[test]
    fn what_is_told_is_bounded() {
        let mut losses = Losses::default();
        let reasons = (0..=255).flat_map(|id| {
            [SkipReason::UnsupportedCodec(CodecId::Video(id)), SkipReason::TrackNumber(id)]
        });
        let news =
            reasons.filter(|reason| losses.note(of_none(TrackKind::Video, *reason)).is_some());
        assert_eq!(news.count(), limits::LOSSES);
        assert_eq!(losses.losses.len(), limits::LOSSES);
        let mut losses = Losses::default();
        for missing in ["a", "b", "c"].repeat(limits::LOSSES).iter().enumerate() {
            let error = codec::Error::Missing(missing.1);
            losses.note(of_track(AUDIO, SkipReason::BadConfiguration(error)));
        }
        assert_eq!((losses.losses.len(), losses.logged.len()), (1, 3));
    }

    #[test]
    fn a_bad_configuration_is_why_frames_have_none() {
        let mut losses = Losses::default();
        assert!(losses.note(of_track(AUDIO, SkipReason::NoConfiguration)).is_none());
        let told = losses.note(of_track(AUDIO, BAD)).expect("it is certain");
        assert_eq!((told.track, told.codec.as_deref()), (Some(1), Some("aac")));
        for _ in 0..2 * limits::LOSS_MESSAGES {
            assert_eq!(losses.note(of_track(AUDIO, SkipReason::NoConfiguration)), None);
        }
        assert_eq!(listed(&losses), [BAD]);
        losses.note(of_track(AUDIO, SkipReason::NoKeyframe));
        assert_eq!(listed(&losses), [SkipReason::NoKeyframe], "a configuration has come");
        losses.heal(VIDEO);
        assert_eq!(listed(&losses).len(), 1, "another track");
        losses.heal(AUDIO);
        assert_eq!(listed(&losses), []);
    }

    #[test]
    fn what_can_still_come_right_is_listed_at_once_and_logged_when_it_lasts() {
        let empty = SkipReason::BadConfiguration(codec::Error::Empty);
        for reason in [SkipReason::NoConfiguration, SkipReason::NoKeyframe, empty] {
            let mut losses = Losses::default();
            let mut note = || losses.note(of_track(VIDEO, reason)).is_some();
            let logged: Vec<_> = (1..=2 * limits::LOSS_MESSAGES).filter(|_| note()).collect();
            assert_eq!(logged, [limits::LOSS_MESSAGES], "{reason}");
            losses.heal(VIDEO);
            assert!(losses.note(of_track(VIDEO, reason)).is_none());
            assert_eq!(listed(&losses), [reason], "it is so again");
        }
    }

    #[test]
    fn single_bad_messages_matter_while_there_are_no_frames() {
        let mut losses = Losses::default();
        losses.note(of_none(TrackKind::Video, SkipReason::Malformed));
        losses.note(of_track(VIDEO, SkipReason::NoPicture));
        losses.note(of_track(AUDIO, SkipReason::Empty));
        assert_eq!(listed(&losses), [SkipReason::Malformed, SkipReason::NoPicture]);
        losses.heal(VIDEO);
        losses.note(of_none(TrackKind::Video, SkipReason::Malformed));
        losses.note(of_track(VIDEO, SkipReason::NoPicture));
        assert_eq!(listed(&losses), []);
        losses.note(of_none(TrackKind::Audio, SkipReason::Malformed));
        assert_eq!(listed(&losses), [SkipReason::Malformed], "of the other kind");
    }
}
