//! HTTP for players: HLS, HTTP-FLV and the player page, by hyper over `io::Conn`.

mod assets;
mod body;
mod flv;
mod hls;
mod range;
mod respond;
mod route;
mod serve;
mod slices;

pub use serve::serve;
