//! Response heads: every answer, errors included, carries the same rules.

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::Body;
use super::range::{self, Wanted};
use super::slices::Slices;

/// How long caches may keep an answer.
#[derive(Clone, Copy, Debug)]
pub enum Cache {
    /// The URI will never mean anything else.
    Immutable,
    /// Live playlists: shared for the moment, so that a cache in front collapses its players.
    Moment,
    /// Pages and scripts: revalidate.
    No,
    /// Streams without end.
    Never,
}

impl Cache {
    fn value(self) -> &'static str {
        match self {
            Self::Immutable => "public, max-age=31536000, immutable",
            Self::Moment => "public, max-age=1",
            Self::No => "no-cache",
            Self::Never => "no-store",
        }
    }
}

pub fn full(
    content_type: &'static str,
    cache: Cache,
    body: Slices,
    range: Option<&str>,
) -> Response<Body> {
    let len = body.len();
    let mut response = match range::parse(range, len) {
        Wanted::Whole => response(StatusCode::OK, body),
        Wanted::Part(wanted) => {
            let content_range = format!("bytes {}-{}/{len}", wanted.start, wanted.end - 1);
            let mut part = body;
            part.keep(wanted);
            let mut response = response(StatusCode::PARTIAL_CONTENT, part);
            set(response.headers_mut(), header::CONTENT_RANGE, &content_range);
            response
        }
        Wanted::Unsatisfiable => {
            let mut response = error(StatusCode::RANGE_NOT_SATISFIABLE, "range outside the body");
            set(response.headers_mut(), header::CONTENT_RANGE, &format!("bytes */{len}"));
            return response;
        }
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache.value()));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    response
}

pub fn live(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(Cache::Never.value()));
    rules(headers);
    response
}

/// A fixed sentence as plain text: nothing of the request is ever echoed.
pub fn error(status: StatusCode, sentence: &'static str) -> Response<Body> {
    let text = Bytes::from_static(sentence.as_bytes());
    let mut response = response(status, [text, Bytes::from_static(b"\n")].into_iter().collect());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    // A stream that is absent now may be live in a second.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(Cache::Moment.value()));
    response
}

pub fn not_found() -> Response<Body> {
    error(StatusCode::NOT_FOUND, "no such stream or file")
}

pub fn method_not_allowed() -> Response<Body> {
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "use GET, HEAD or OPTIONS");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(METHODS));
    response
}

/// The answer to a CORS preflight.
pub fn options() -> Response<Body> {
    let mut response = response(StatusCode::NO_CONTENT, Slices::default());
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, range"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

const METHODS: &str = "GET, HEAD, OPTIONS";

/// HEAD equals GET without the body, `Content-Length` included.
pub fn without_body(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    if let Some(len) = http_body::Body::size_hint(&body).exact() {
        set(&mut head.headers, header::CONTENT_LENGTH, &len.to_string());
    }
    Response::from_parts(head, Body::empty())
}

fn response(status: StatusCode, body: Slices) -> Response<Body> {
    let mut response = Response::new(Body::Full(body));
    *response.status_mut() = status;
    rules(response.headers_mut());
    response
}

fn rules(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let exposed = HeaderValue::from_static("content-length, content-range, date");
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

fn set(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
