//! RTMP connections: a publisher feeds a stream, a player follows one.
//!
//! Each connection has two tasks: one reads and drives the session, one sends. Nobody else touches
//! the socket.

mod connection;
mod play;
mod player;
mod publisher;
mod shared;
mod tally;
mod tls;

pub use connection::serve;
pub use player::Player;
pub use publisher::Publishing;
