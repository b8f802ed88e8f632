//! One HTTP connection: hyper's server over `io::Conn`, and the way from a request to its answer.

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::rc::Rc;

use hyper::body::Incoming;
use hyper::header::{self, HeaderMap};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioTimer;

use super::body::Body;
use super::flv::FlvBody;
use super::respond;
use super::route::Route;
use super::{assets, hls};
use crate::clock;
use crate::core::Core;
use crate::core::connection::Connection;
use crate::io::{Conn, HyperIo};
use crate::limits;
use crate::metrics::Closed;
use crate::relay;
use crate::stream::Stream;

/// Serves requests until the peer leaves, the connection is closed from outside, or the process
/// stops: then the request under way is finished first.
pub async fn serve(core: Rc<Core>, connection: Rc<Connection>, conn: Conn) {
    let service = service_fn(|request| {
        let (core, connection) = (core.clone(), connection.clone());
        async move { Ok::<_, Infallible>(answer(core, connection, request).await) }
    });
    let mut stop = std::pin::pin!(core.stop_news.notified());
    // hyper has a buffer from its first read on; a peer that only connects gets none.
    let first = conn.readable();
    tokio::select! {
        biased;
        first = tokio::time::timeout(core.config.timeouts.http_header, first) => {
            if first.is_err() {
                return;
            }
        }
        () = stop.as_mut() => return,
    }
    let stall = core.config.timeouts.send_stall;
    let io = HyperIo::new(conn, core.arena, stall);
    let mut http = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(core.config.timeouts.http_header)
            .max_buf_size(limits::HTTP_HEAD_BYTES)
            .serve_connection(io, service)
    );
    let result = tokio::select! {
        biased;
        result = http.as_mut() => result,
        () = stop.as_mut() => {
            http.as_mut().graceful_shutdown();
            http.await
        }
    };
    if let Err(error) = result {
        if is_stall(&error) {
            connection.close(Closed::SendStall);
        }
        tracing::debug!(peer = %connection.peer, %error, "http connection ended");
    }
}

/// The peer has taken nothing for longer than [`HyperIo`] waits.
fn is_stall(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
}

async fn answer(
    core: Rc<Core>,
    connection: Rc<Connection>,
    request: Request<Incoming>,
) -> Response<Body> {
    let head_only = match *request.method() {
        Method::GET => false,
        Method::HEAD => true,
        Method::OPTIONS => return respond::options(),
        _ => return respond::method_not_allowed(),
    };
    note_agent(&connection, request.headers());
    let response = dispatch(&core, &connection, &request, head_only).await;
    core.counters.http_responses.of(response.status().into()).increment();
    if head_only { respond::without_body(response) } else { response }
}

async fn dispatch(
    core: &Rc<Core>,
    connection: &Rc<Connection>,
    request: &Request<Incoming>,
    head_only: bool,
) -> Response<Body> {
    let range = text(request.headers(), header::RANGE);
    let viewer = hls::Viewer { address: connection.peer.ip(), headers: request.headers(), range };
    let query = request.uri().query().unwrap_or("");
    match Route::parse(request.uri().path()) {
        Route::Home => assets::home(),
        Route::Asset(file) => assets::file(&file, range),
        Route::Player(_) => assets::player(),
        Route::Multivariant(name) => hls::multivariant(core, &name, &viewer).await,
        Route::Media(name) => hls::media(core, &name, query, &viewer).await,
        Route::TsMedia(name) => hls::ts_media(core, &name, query, &viewer).await,
        Route::Resource { name, uri } => hls::resource(core, &name, &uri, &viewer).await,
        Route::Flv(name) => match relay::find(core, &name, clock::now()).await {
            Some(stream) if !stream.is_ended() => flv(core, connection, stream, head_only),
            _ => respond::not_found(),
        },
        Route::NotFound => respond::not_found(),
    }
}

fn flv(
    core: &Rc<Core>,
    connection: &Rc<Connection>,
    stream: Rc<Stream>,
    head_only: bool,
) -> Response<Body> {
    let body = if head_only {
        Body::empty()
    } else {
        Body::Flv(Box::new(FlvBody::new(core.clone(), connection.clone(), stream)))
    };
    respond::live("video/x-flv", body)
}

fn note_agent(connection: &Connection, headers: &HeaderMap) {
    if connection.agent.borrow().is_some() {
        return;
    }
    if let Some(agent) = text(headers, header::USER_AGENT) {
        let agent: String = agent.chars().take(limits::AGENT_CHARS).collect();
        *connection.agent.borrow_mut() = Some(agent);
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
