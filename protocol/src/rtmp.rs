//! RTMP: server and client sessions without I/O (Adobe RTMP 1.0, Enhanced RTMP v2).
//!
//! A session is given what arrives, with the time, and drained of what it has to say:
//!
//! 1. [`ServerSession::handle_input`] takes bytes as they were received;
//! 2. [`ServerSession::poll_output`] is called until it returns `None`: bytes to send, and events;
//! 3. answers to events ([`ServerSession::accept_publish`] and its like) make new outputs: go to 2;
//! 4. at [`ServerSession::poll_timeout`], [`ServerSession::handle_timeout`].
//!
//! Any error ends the session: send what is still to be drained, and close the connection.

pub mod chunk;
mod client_session;
pub mod command;
mod enhanced;
mod error;
pub mod handshake;
mod link;
pub mod message;
mod server_session;
mod url;
mod via;

pub use crate::limits::Limits;
pub use client_session::{ClientEvent, ClientSession};
pub use enhanced::PeerCodecs;
pub use error::{Error, Waiting};
pub use server_session::{Connect, Event, Output, PublishMode, ServerSession};
pub use url::RtmpUrl;
