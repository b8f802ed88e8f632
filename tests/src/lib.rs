//! What the black-box tests are made of: a gateway process, real encoders and players, and
//! validators of what the gateway serves.
//!
//! Everything that a test needs is installed by `make setup`. A program that is missing makes its
//! test fail: a test that was skipped proves nothing.

pub mod airing;
pub mod bench;
pub mod browser;
pub mod clips;
pub mod fuzz;
pub mod gateway;
pub mod http;
pub mod http_connection;
pub mod media;
pub mod mp4;
pub mod nginx_rtmp;
pub mod obs;
pub mod playlist;
pub mod process;
pub mod publisher;
pub mod recorder;
pub mod replay;
pub mod reserved;
pub mod rtmp_client;
pub mod rtmp_peer;
pub mod rtmp_server;
pub mod script;
pub mod sim;
pub mod sync;
pub mod tls;
pub mod tools;
pub mod validate;

pub use gateway::{Backend, Gateway};
pub use process::{Process, wait_until};
pub use reserved::Reserved;
pub use tools::Scratch;
