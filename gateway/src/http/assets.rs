//! The player page and its scripts, embedded in the binary.

use bytes::Bytes;
use hyper::Response;
use hyper::header::{self, HeaderValue};

use super::body::Body;
use super::respond::{self, Cache};
use super::slices::Slices;

macro_rules! asset {
    ($file:literal) => {
        include_bytes!(concat!("../../assets/", $file))
    };
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// Nothing but the embedded scripts may run on the page; media may come as MSE blobs.
const PAGE_POLICY: &str = "default-src 'self'; media-src 'self' blob:; worker-src 'self' blob:; \
     connect-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'";

pub fn player() -> Response<Body> {
    page(asset!("player.html"))
}

pub fn home() -> Response<Body> {
    page(asset!("home.html"))
}

pub fn file(name: &str, range: Option<&str>) -> Response<Body> {
    let (content_type, bytes): (_, &'static [u8]) = match name {
        "player.js" => (SCRIPT, asset!("player.js")),
        "player.css" => (STYLE, asset!("player.css")),
        "hls.js" => (SCRIPT, asset!("vendor/hls.js")),
        "mpegts.js" => (SCRIPT, asset!("vendor/mpegts.js")),
        _ => return respond::not_found(),
    };
    respond::full(content_type, Cache::No, Slices::from(Bytes::from_static(bytes)), range)
}

fn page(html: &'static [u8]) -> Response<Body> {
    let body = Slices::from(Bytes::from_static(html));
    let mut response = respond::full(HTML, Cache::No, body, None);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
