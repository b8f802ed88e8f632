//! Bounds of the process, each with the reason for its size.
//!
//! What an operator may want to change is a key in [`crate::config`]; here is what protects the
//! process whatever the configuration says.

use std::time::Duration;

use weir_protocol::media::Ticks;

/// A configuration is about a kilobyte. A wrong path (a video, `/dev/zero`) is refused, not read.
pub const CONFIG_FILE_BYTES: u64 = 1 << 20;

/// `[[publish_key]]` in the configuration. Each publish is compared with every one, some 20 µs.
pub const PUBLISH_KEYS: usize = 1000;

/// Different wrong publish keys from one address before it has to wait. People who type one in get
/// it right sooner.
pub const GUESSES: u32 = 10;

/// The wait after [`GUESSES`]; it doubles with each further one up to [`GUESS_WAIT_MOST`]. Who
/// comes with the right key from such an address waits as well, so it is not for hours.
pub const GUESS_WAIT_FIRST: Duration = Duration::from_secs(1);
pub const GUESS_WAIT_MOST: Duration = Duration::from_secs(300);

/// Wrong keys are forgotten so long after the last one, or after its wait: longer than
/// [`GUESS_WAIT_MOST`], so that waiting gains nothing.
pub const GUESS_MEMORY: Duration = Duration::from_secs(900);

/// Addresses whose wrong keys are counted, some 100 bytes each. More than there are that could all
/// be guessing at once without `limits.connections` being what stops them.
pub const GUESSERS: usize = 4096;

/// Wrong keys of one address that are told apart: one by one, encoders with an old key send the
/// same again and again, and behind one address there are a few at most.
pub const GUESSES_TOLD_APART: usize = 4;

/// A chain of certificates is some kilobytes, all authorities of a machine are a few hundred. The same
/// holds.
pub const PEM_FILE_BYTES: u64 = 1 << 20;

/// How often the certificate's files are looked at: two calls to the system. A new one is in use after
/// the second look that finds it, within the minute that tools for renewal leave at the very least.
pub const CERTIFICATE_LOOK: Duration = Duration::from_secs(5);

/// A few people, a metrics scraper and a health checker, each with the six connections that a
/// browser opens; 64 leave room and cost at most 64 file descriptors.
pub const ADMIN_CONNECTIONS: usize = 64;

/// Under `publish.conflict = "refuse"`, a publisher that has sent no media for so long is taken over
/// like one that has left. Encoders send some forty times a second; a session that died with its
/// network must not keep the encoder out that comes back by another one 3 s later.
pub const PUBLISHER_SILENCE: Duration = Duration::from_secs(2);

/// Players of one address that wait for a stream to begin, on each core: a household or a test wall,
/// not everybody behind a proxy. Further ones are answered as if `rtmp_play.absent` were `end`.
pub const WAITING_PLAYERS_PER_ADDRESS: usize = 64;

/// A core answers within one turn of its loop, well under a millisecond. One that has not answered
/// after 2 s is stuck, and the operator should learn that now: kubelet's and Prometheus's own
/// default limits are 1 s and 10 s.
pub const ADMIN_ANSWER_WAIT: Duration = Duration::from_secs(2);

/// A request's head on the admin listener, and the pause between two requests. Longer than the 15 s
/// between Prometheus's scrapes, so that a scraper keeps its connection.
pub const ADMIN_HEADER_WAIT: Duration = Duration::from_secs(30);

/// The head of an admin request: a path, a Host, a browser's cookies for localhost.
pub const ADMIN_HEAD_BYTES: usize = 16 * 1024;

/// Requests in flight on the admin listener get this long to end when the process stops. The whole
/// process has 1 s.
pub const ADMIN_STOP_WAIT: Duration = Duration::from_millis(300);

/// After a failed accept (mostly: no file descriptor left) the next try waits so long. It neither
/// spins nor keeps a peer waiting noticeably once descriptors are free.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// `[[push]]` in the configuration. Each publish is compared with every one, and one stream can match
/// all of them: that many connections, at the cost of a player each.
pub const PUSH_RULES: usize = 200;

/// `[[pull]]` in the configuration. Each lookup of an absent stream is compared with every one.
pub const PULL_RULES: usize = 1000;

/// How far behind the live edge a player may fall before it is moved on to the newest keyframe. Two
/// GOPs of what encoders send by default outlast a stall of a mobile network.
pub const LOG_SPAN: Ticks = Ticks::from_ms(4000);

/// One stream's live log on one core. Four seconds at 60 Mbit/s; a GOP that is larger is not kept
/// whole, so new players wait for the next keyframe instead.
pub const LOG_BYTES: usize = 32 << 20;

/// Audio alone has no keyframes: players begin so far back at most, to have their buffers filled.
pub const AUDIO_JOIN_SPAN: Ticks = Ticks::from_ms(1000);

/// How long the first access units wait for declared tracks to send. Encoders start their tracks
/// within some hundred milliseconds of each other.
pub const TRACK_DETECTION_SPAN: Ticks = Ticks::from_ms(1000);

/// The same in bytes: one second at 64 Mbit/s.
pub const TRACK_DETECTION_BYTES: usize = 8 << 20;

/// A track that sends nothing for so long gives its place in the outputs to another of its kind. Far
/// longer than between two frames of a slow slide show, and short enough that viewers are still there.
pub const TRACK_SILENCE: Ticks = Ticks::from_ms(3000);

/// What one send of a live player carries at most. Large enough that a player which catches up does
/// so in few calls, small enough that what a slow one holds stays small.
pub const PLAYER_BATCH_BYTES: usize = 256 * 1024;

/// HLS players counted per stream and core, 50 bytes each. Beyond it the count is a lower bound.
pub const HLS_VIEWERS_COUNTED: usize = 100_000;

/// An HLS player that has asked for nothing so long has left, or for two target durations.
pub const HLS_VIEWER_SPAN: Duration = Duration::from_secs(10);

/// A playlist request that comes with the publisher waits for the first segment: `hls.segment_max`,
/// and this for the detection of tracks.
pub const HLS_START_MARGIN: Duration = Duration::from_secs(4);

/// Segments that a transport-stream playlist begins with. Players that know no parts start three
/// segments from the end (RFC 8216 §6.3.3); Chromium's own takes a shorter live playlist for broken.
pub const TS_START_SEGMENTS: usize = 3;

/// Another core answers within a turn of its loop; if not, it is stuck.
pub const ATTACH_TIMEOUT: Duration = Duration::from_secs(1);

/// A replica that no player has asked for so long is dropped. Longer than between two reloads of a
/// playlist, so that it does not come and go.
pub const REPLICA_LINGER: Duration = Duration::from_secs(30);

/// A replica asks its owner anew when it has heard nothing for so long, and so finds out what it
/// missed should the owner have dropped it for being behind.
pub const REPLICA_SILENCE: Duration = Duration::from_secs(2);

/// Messages between cores that may wait: a second's worth of read batches of a thousand streams.
pub const MAILBOX_MESSAGES: usize = 16 * 1024;

/// Messages taken per turn of a core's loop, so that sockets have theirs.
pub const MAILBOX_TURN: usize = 256;

/// An ended stream can be fetched at least this long, for players that reload slowly.
pub const ENDED_LINGER_MIN: Duration = Duration::from_secs(10);

/// How often deadlines are looked at: they are seconds, so a tenth is precise enough.
pub const TICK: Duration = Duration::from_millis(100);

/// When the process stops, players get this long to take in what they are due and leave.
pub const STOP_GRACE: Duration = Duration::from_millis(500);

pub const STOP_POLL: Duration = Duration::from_millis(10);

/// The whole stop, after which the process ends whatever its threads do. Together with the start of
/// the next process it stays below the second that supervisors and players shrug off.
pub const STOP_TIME: Duration = Duration::from_millis(800);

/// An RTMP peer that is sent away gets so long to take the reason.
pub const FAREWELL: Duration = Duration::from_millis(300);

/// A request's head: hyper's own least buffer, and more than browsers' cookies and tokens need.
pub const HTTP_HEAD_BYTES: usize = 32 * 1024;

/// `weir publish` gives up on an address that does not answer after so long.
pub const PUBLISH_CONNECT: Duration = Duration::from_secs(10);

/// `weir publish` gives up on a server that takes nothing for so long.
pub const PUBLISH_STALL: Duration = Duration::from_secs(20);

/// Things that one publisher sends in vain and operators are told of: its tracks, of which there are
/// 16, and the codecs and track numbers beyond. Encoders have one or two.
pub const LOSSES: usize = 24;

/// Messages of a track that come to nothing before the log tells of a configuration or a keyframe that
/// is missing: a second of pictures. Publishers that join a running stream send as much before.
pub const LOSS_MESSAGES: u32 = 25;

/// `User-Agent` and `flashVer` are kept this far, for the API.
pub const AGENT_CHARS: usize = 200;

/// A relay's server is looked up, connected to, and answers each command within so long: a few lost
/// segments on a bad line, and no longer than encoders wait.
pub const RELAY_CONNECT: Duration = Duration::from_secs(10);

/// The first wait of a relay before it connects again, and the longest. A restarted server is found
/// soon; one that is gone for hours costs a connection a minute.
pub const RELAY_RETRY_FIRST: Duration = Duration::from_secs(2);
pub const RELAY_RETRY_MOST: Duration = Duration::from_secs(60);

/// A pull has players who wait, and a server that has no stream yet is no server that is gone.
pub const PULL_RETRY_MOST: Duration = Duration::from_secs(10);

/// A relay that lasted so long counts as healthy: its next wait is the first one again. Services that
/// let a wrong key in close the connection sooner.
pub const RELAY_HEALTHY: Duration = Duration::from_secs(30);

/// What another server says is kept so far for the API and the log.
pub const RELAY_ERROR_CHARS: usize = 200;

/// What another server says is searched for the key and its parts. Shorter ones are no secrets, and
/// would make holes in words.
pub const RELAY_SECRET_CHARS: usize = 4;

/// Pulls on demand at once, all cores together. At the rate below that many are taken up by a server
/// that lets each wait for the whole of [`PULL_WAIT`], with some to spare for those that are there.
pub const DEMAND_PULLS: usize = 128;

/// Pulls on demand that begin in a second: more than real audiences ask for at once, and little
/// enough for the other server when somebody tries names.
pub const DEMAND_PULLS_PER_SECOND: u32 = 20;

/// A player's request, and the pull itself, wait so long for the first frame. A server sends the
/// newest GOP at once, or has nothing.
pub const PULL_WAIT: Duration = Duration::from_secs(5);

/// A name that the other server did not have is not asked for again for so long: between two
/// attempts of a player that waits for its stream.
pub const PULL_ABSENT_SPAN: Duration = Duration::from_secs(3);

/// Such names that are remembered, at up to 300 bytes each: those of [`PULL_ABSENT_SPAN`] at
/// [`DEMAND_PULLS_PER_SECOND`], many times over.
pub const PULL_ABSENT_NAMES: usize = 1024;

/// How often a pull on demand looks whether somebody still watches.
pub const PULL_AUDIENCE_LOOK: Duration = Duration::from_secs(1);

/// How often a pull looks whether the name's publisher is still there.
pub const PULL_STANDBY_LOOK: Duration = Duration::from_secs(1);
