use weir_protocol::flv::SkipReason;

use crate::admin::model::RelayState;

/// A metric's label with all the values it can have.
pub trait Label: Copy + 'static {
    const NAME: &'static str;
    const ALL: &'static [Self];

    /// As it stands in the metric.
    fn value(self) -> &'static str;

    /// Its place in [`Label::ALL`].
    fn index(self) -> usize;
}

macro_rules! label {
    ($(#[$doc:meta])* $name:ident as $label:literal {
        $($(#[$variant_doc:meta])* $variant:ident = $value:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            pub const COUNT: usize = <Self as Label>::ALL.len();
        }

        impl Label for $name {
            const NAME: &'static str = $label;
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            fn value(self) -> &'static str {
                match self {
                    $(Self::$variant => $value,)+
                }
            }

            fn index(self) -> usize {
                self as usize
            }
        }
    };
}

label! {
    /// The listener a connection came in by.
    Transport as "protocol" {
        Rtmp = "rtmp",
        Rtmps = "rtmps",
        Http = "http",
    }
}

label! {
    PlayerProtocol as "protocol" {
        Hls = "hls",
        LlHls = "ll_hls",
        Flv = "flv",
        Rtmp = "rtmp",
    }
}

label! {
    /// Why a peer was not let in.
    Refused as "reason" {
        /// `limits.connections`
        ConnectionLimit = "connection_limit",
        /// `limits.connections_per_address`
        AddressLimit = "address_limit",
        /// `memory.max`
        Memory = "memory",
        /// No valid stream name.
        BadName = "bad_name",
        /// A publish that has come through this gateway before.
        Loop = "loop",
        /// A player asked for a stream that nobody publishes.
        NoStream = "no_stream",
        /// A publisher without the key of its stream.
        WrongKey = "wrong_key",
        /// A publisher whose address has sent too many wrong keys.
        Throttled = "throttled",
        /// A publisher of a stream that somebody publishes already.
        InUse = "in_use",
    }
}

label! {
    /// Why the gateway ended a connection.
    Closed as "reason" {
        /// A newer session publishes the same name.
        TakenOver = "taken_over",
        /// By the API.
        Kicked = "kicked",
        /// The stream that it played has ended.
        Ended = "ended",
        /// The process stops.
        Stopping = "stopping",
        HandshakeTimeout = "handshake_timeout",
        /// An RTMP peer that neither published nor played for too long.
        NoRequest = "no_request",
        /// A publisher that sent nothing, or a player that is not there any more.
        Idle = "idle",
        /// A player that took nothing.
        SendStall = "send_stall",
        /// The peer broke the protocol.
        Violation = "violation",
        /// No TLS came about on the port for RTMPS.
        TlsFailed = "tls_failed",
        /// The peer spoke RTMP without TLS on the port for RTMPS.
        PlainOnTls = "plain_on_tls",
        /// The peer spoke TLS on the port for RTMP.
        TlsOnPlain = "tls_on_plain",
    }
}

label! {
    MediaKind as "kind" {
        Video = "video",
        Audio = "audio",
    }
}

label! {
    /// Why a publisher's media message went no further.
    Skipped as "reason" {
        Empty = "empty",
        Malformed = "malformed",
        Unknown = "unknown",
        UnsupportedCodec = "unsupported_codec",
        TooManyTracks = "too_many_tracks",
        BadConfiguration = "bad_configuration",
        NoConfiguration = "no_configuration",
        NoKeyframe = "no_keyframe",
        NoPicture = "no_picture",
        PoolExhausted = "pool_exhausted",
    }
}

impl From<SkipReason> for Skipped {
    fn from(reason: SkipReason) -> Self {
        match reason {
            SkipReason::Empty => Self::Empty,
            SkipReason::Malformed => Self::Malformed,
            SkipReason::Unknown => Self::Unknown,
            SkipReason::UnsupportedCodec(_) => Self::UnsupportedCodec,
            SkipReason::TooManyTracks | SkipReason::TrackNumber(_) => Self::TooManyTracks,
            SkipReason::BadConfiguration(_) => Self::BadConfiguration,
            SkipReason::NoConfiguration => Self::NoConfiguration,
            SkipReason::NoKeyframe => Self::NoKeyframe,
            SkipReason::NoPicture => Self::NoPicture,
            SkipReason::PoolExhausted => Self::PoolExhausted,
        }
    }
}

label! {
    /// How a step of a publisher's clock was classed that was not taken as it came.
    TimeRepair as "kind" {
        Wrap = "wrap",
        Jitter = "jitter",
        Outlier = "outlier",
        NewTimeline = "new_timeline",
        Aligned = "aligned",
        Resync = "resync",
    }
}

label! {
    /// Why an access unit is in no HLS part.
    HlsDropped as "reason" {
        NotInEpoch = "not_in_epoch",
        BeforeKeyframe = "before_keyframe",
        OutOfTime = "out_of_time",
        Empty = "empty",
    }
}

label! {
    PushState as "state" {
        Connecting = "connecting",
        Live = "live",
        Waiting = "waiting",
    }
}

impl From<PushState> for RelayState {
    fn from(state: PushState) -> Self {
        match state {
            PushState::Connecting => Self::Connecting,
            PushState::Live => Self::Live,
            PushState::Waiting => Self::Waiting,
        }
    }
}

label! {
    PullState as "state" {
        Connecting = "connecting",
        Live = "live",
        Waiting = "waiting",
        /// Somebody publishes the stream here.
        Standby = "standby",
    }
}

impl From<PullState> for RelayState {
    fn from(state: PullState) -> Self {
        match state {
            PullState::Connecting => Self::Connecting,
            PullState::Live => Self::Live,
            PullState::Waiting => Self::Waiting,
            PullState::Standby => Self::Standby,
        }
    }
}

label! {
    /// Why a push or pull had to connect again.
    RelayFailure as "reason" {
        /// No connection, or no name for its host.
        Connect = "connect",
        /// The server closed it, or it broke.
        Closed = "closed",
        /// The server took nothing.
        Stalled = "stalled",
        /// The server said nothing.
        Silent = "silent",
        /// The server does not want this stream, mostly because of the key.
        Refused = "refused",
        /// The server ended the stream.
        Ended = "ended",
        Violation = "violation",
        /// The address leads back to this gateway.
        Loop = "loop",
    }
}

label! {
    /// Why a player's demand for an absent stream was not passed on to another server.
    PullRefused as "reason" {
        /// The server has just not had it.
        Absent = "absent",
        /// Too many pulls at once, or in a second.
        Busy = "busy",
    }
}

label! {
    HlsResource as "resource" {
        Multivariant = "multivariant",
        Playlist = "playlist",
        Init = "init",
        Segment = "segment",
        Part = "part",
    }
}

label! {
    StatusClass as "class" {
        Informational = "1xx",
        Success = "2xx",
        Redirection = "3xx",
        ClientError = "4xx",
        ServerError = "5xx",
    }
}

impl From<hyper::StatusCode> for StatusClass {
    fn from(status: hyper::StatusCode) -> Self {
        match status.as_u16() {
            ..200 => Self::Informational,
            200..300 => Self::Success,
            300..400 => Self::Redirection,
            400..500 => Self::ClientError,
            500.. => Self::ServerError,
        }
    }
}
