//! Every bound on what a peer may make an RTMP session do or hold, each with its reason.

use std::time::Duration;

/// What an operator may tune. The defaults suit a public ingest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// From the first byte to the end of the handshake. A handshake is three flights of 3 KiB;
    /// ten seconds outlast a lost segment or two on a bad mobile link.
    pub handshake_timeout: Duration,
    /// How long a session may live without a publish or a play that was accepted. It is not
    /// prolonged by commands, so that nobody can stay for nothing.
    pub idle_timeout: Duration,
    /// How long an accepted publisher may send no audio, video or data. Long enough for a slow
    /// scene switch or a stalled uplink, short enough that a dead peer is not kept for minutes.
    pub media_timeout: Duration,
    /// Declared bytes of all half-done messages together before a publish is accepted. Commands
    /// need some hundred; media is not stored at all until then.
    pub unfinished_bytes: usize,
    /// The same after a publish is accepted: one message of the greatest size next to the
    /// half-done audio, data and further video tracks of a multitrack stream.
    pub unfinished_bytes_publishing: usize,
    /// One command or control message. The longest real ones carry a signed token or two.
    pub command_bytes: usize,
    /// One media message. An intra picture of 8K video at 200 Mbit/s stays below; 24 bits allow 16 MiB.
    pub message_bytes: usize,
    /// Chunk streams in use at once. Encoders use up to six, multitrack ones a few more.
    pub chunk_streams: usize,
    /// The smallest chunk size a peer may set. Each chunk costs a turn of the parser, but its
    /// header crosses the network as well, so even 1 costs a bounded amount per byte received.
    pub min_chunk_size: u32,
    /// Message streams alive at once. Encoders use one, Flash players a few.
    pub message_streams: usize,
    /// Bytes received after a publish command and before the gateway's answer. The gateway
    /// should stop reading meanwhile; this is for what was read already, and covers two seconds
    /// at 16 Mbit/s should it go on.
    pub held_bytes: usize,
    /// Commands in any [`RATE_WINDOW`]. Publishing takes six, a restart of it as many again.
    pub commands: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(20),
            media_timeout: Duration::from_secs(15),
            unfinished_bytes: 64 * 1024,
            unfinished_bytes_publishing: 16 * 1024 * 1024,
            command_bytes: 32 * 1024,
            message_bytes: 8 * 1024 * 1024,
            chunk_streams: 64,
            min_chunk_size: 1,
            message_streams: 8,
            held_bytes: 4 * 1024 * 1024,
            commands: 128,
        }
    }
}

/// Bytes of media that a session may have reserved before they have arrived: the half-done pictures
/// of a stream of 20 Mbit/s are reserved at once, and a peer that declares much and sends little holds
/// no more than this. What is longer grows with what arrives, by moving to twice the room.
pub const RESERVED_AHEAD: usize = 512 * 1024;

/// What a message gets at first when the session has that much reserved already.
pub const FIRST_RESERVE: usize = 4096;

/// Over which commands and pings are counted.
pub const RATE_WINDOW: Duration = Duration::from_secs(10);

/// Pings answered in a [`RATE_WINDOW`]; encoders ping every few seconds. The rest go unanswered.
pub const MAX_PONGS: u32 = 64;

/// The chunk size of what Weir sends. Most frames then fit one or two chunks, which keeps the list
/// of slices per frame short, and no known client refuses it (some refuse more than 65536).
pub const OUT_CHUNK_SIZE: u32 = 65_536;

/// What Weir announces as acknowledgement window and peer bandwidth: 2.5 MB, as peers have known
/// it from other servers. Weir never waits for an acknowledgement, so the value is not critical.
pub const OUT_WINDOW: u32 = 2_500_000;

/// The smallest acknowledgement window that is obeyed. One acknowledgement is 16 bytes, so even
/// a peer that asks for one per byte is sent less than half a percent of what it sends.
pub const MIN_ACK_WINDOW: u32 = 4096;

/// Places that a stream may have come by on its way from gateway to gateway. Nobody chains so many on
/// purpose: it runs in a circle under ever new names.
pub const MAX_VIA: usize = 16;

/// The greatest chunk size; messages cannot be longer (RTMP 1.0 §5.4.1).
pub const MAX_CHUNK_SIZE: u32 = 0xff_ffff;

/// Before anything is set (RTMP 1.0 §5.4.1).
pub const DEFAULT_CHUNK_SIZE: u32 = 128;

/// Outputs that an idle session keeps room for.
pub const IDLE_OUTPUTS: usize = 64;
