//! Sockets and media memory: the one room that knows io_uring, and the one with `unsafe`.
//!
//! Everything above sees [`Conn`], [`Transport`], [`Listener`], [`Batch`] and [`Arena`], which behave
//! alike on both [`Backend`]s. All of it belongs to the core that made it (`!Send`), except the arena.

pub mod arena;
pub mod batch;
pub mod conn;
mod epoll;
pub mod hyper;
pub mod listener;
pub mod probe;
mod socket;
mod sys;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod transport;
pub(crate) mod uring;

pub use arena::{Arena, ArenaPool};
pub use batch::Batch;
pub use conn::{Conn, WeakConn};
pub use hyper::HyperIo;
pub use listener::Listener;
pub use probe::Backend;
pub use sys::{FdLimit, allowed_cpus, pin_to, raise_fd_limit};
pub use transport::{ConnectError, Remote, Transport};
