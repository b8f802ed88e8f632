use std::time::Duration;

use crate::amf0;

/// Why a session is over. After an error the session is of no use; close the connection.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("the first byte is 0x{0:02x}, not the 3 of RTMP")]
    NotRtmp(u8),
    #[error("chunk stream {0} begins with a header that leaves out the message length")]
    NoHeader(u32),
    #[error("more than {0} chunk streams in use")]
    TooManyChunkStreams(usize),
    #[error("a message of {length} bytes is longer than the allowed {limit}")]
    MessageTooLong { length: usize, limit: usize },
    #[error("half-done messages declare more than {0} bytes together")]
    TooMuchUnfinished(usize),
    #[error("chunk size {0} is smaller than the allowed one")]
    ChunkSizeTooSmall(u32),
    #[error("the memory for message bodies is used up")]
    OutOfMemory,
    #[error("more than {0} bytes were sent before the publish was accepted")]
    TooMuchHeld(usize),
    #[error("too many commands in a short time")]
    TooManyCommands,
    #[error("a command cannot be read: {0}")]
    Command(#[from] amf0::Error),
    #[error("{0} for {1:?}")]
    Timeout(Waiting, Duration),
    #[error("the server refused: {code} ({description})")]
    Rejected { code: String, description: String },
    #[error("the server address is not an RTMP URL: {0}")]
    BadUrl(&'static str),
}

/// What a session waited for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Waiting {
    #[error("no complete handshake")]
    Handshake,
    #[error("no publish or play")]
    Request,
    #[error("no media")]
    Media,
    #[error("no answer from the server")]
    Answer,
}

impl Error {
    /// A short constant for logs and metric labels.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NotRtmp(_) => "not_rtmp",
            Self::NoHeader(_) => "chunk_without_header",
            Self::TooManyChunkStreams(_) => "too_many_chunk_streams",
            Self::MessageTooLong { .. } => "message_too_long",
            Self::TooMuchUnfinished(_) => "too_much_unfinished",
            Self::ChunkSizeTooSmall(_) => "chunk_size_too_small",
            Self::OutOfMemory => "out_of_memory",
            Self::TooMuchHeld(_) => "too_much_before_publish",
            Self::TooManyCommands => "too_many_commands",
            Self::Command(_) => "bad_command",
            Self::Timeout(Waiting::Handshake, _) => "handshake_timeout",
            Self::Timeout(Waiting::Request, _) => "idle_timeout",
            Self::Timeout(Waiting::Media, _) => "media_timeout",
            Self::Timeout(Waiting::Answer, _) => "answer_timeout",
            Self::Rejected { .. } => "rejected",
            Self::BadUrl(_) => "bad_url",
        }
    }
}
