use std::future::Future;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use tokio::time::timeout;
use weir_protocol::stream_name::StreamName;

use super::model::{
    CertificateInfo, MemoryInfo, ServerInfo, merge_clients, merge_relays, merge_streams,
};
use super::{Admin, Control, Unanswered, guard};
use crate::certificates::Facts;
use crate::limits::ADMIN_ANSWER_WAIT;
use crate::process;

type Answer = Response<Full<Bytes>>;

/// The admin listener's routes.
pub(super) struct Api<C> {
    pub admin: Admin<C>,
    /// Only programs on this machine can connect; see [`guard`].
    pub on_loopback: bool,
}

/// Why a request is not answered with what it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    NoRoute,
    NoStream,
    NoClient,
    MethodNotAllowed { allowed: &'static str },
    ForbiddenHost,
    ForbiddenOrigin,
    Unanswered,
}

impl From<Unanswered> for Problem {
    fn from(_: Unanswered) -> Self {
        Self::Unanswered
    }
}

impl Problem {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::NoRoute => {
                (StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
            }
            Self::NoStream => (StatusCode::NOT_FOUND, "not_found", "there is no such stream"),
            Self::NoClient => (StatusCode::NOT_FOUND, "not_found", "there is no such client"),
            Self::MethodNotAllowed { .. } => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "this address takes only the methods in the Allow header",
            ),
            Self::ForbiddenHost => (
                StatusCode::FORBIDDEN,
                "forbidden_host",
                "this listener is on loopback and answers only to localhost or an IP address",
            ),
            Self::ForbiddenOrigin => (
                StatusCode::FORBIDDEN,
                "forbidden_origin",
                "a page of another origin may not change anything here",
            ),
            Self::Unanswered => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "a core has not answered in time; try again, and see the log if it stays so",
            ),
        }
    }

    fn answer(self) -> Answer {
        #[derive(Serialize)]
        struct Body {
            error: Inner,
        }
        #[derive(Serialize)]
        struct Inner {
            code: &'static str,
            message: &'static str,
        }
        let (status, code, message) = self.parts();
        let mut answer = json(&Body { error: Inner { code, message } });
        *answer.status_mut() = status;
        if let Self::MethodNotAllowed { allowed } = self {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        }
        answer
    }
}

/// What a path names.
#[derive(Debug, PartialEq, Eq)]
enum Route {
    Index,
    Health,
    Ready,
    Metrics,
    Server,
    Streams,
    Stream(StreamName),
    Clients,
    Client(u64),
    Relays,
}

impl Route {
    fn of(path: &str) -> Result<Self, Problem> {
        if let Some(name) = path.strip_prefix("/api/v1/streams/") {
            return StreamName::from_path(name).map(Self::Stream).map_err(|_| Problem::NoStream);
        }
        if let Some(id) = path.strip_prefix("/api/v1/clients/") {
            return id.parse().map(Self::Client).map_err(|_| Problem::NoClient);
        }
        match path {
            "/" => Ok(Self::Index),
            "/healthz" => Ok(Self::Health),
            "/readyz" => Ok(Self::Ready),
            "/metrics" => Ok(Self::Metrics),
            "/api/v1/server" => Ok(Self::Server),
            "/api/v1/streams" => Ok(Self::Streams),
            "/api/v1/clients" => Ok(Self::Clients),
            "/api/v1/relays" => Ok(Self::Relays),
            _ => Err(Problem::NoRoute),
        }
    }

    fn can_be_deleted(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Client(_))
    }
}

impl<C: Control> Api<C> {
    pub async fn answer<B>(&self, request: Request<B>) -> Answer {
        let mut answer = match self.route(&request).await {
            Ok(answer) => answer,
            Err(problem) => problem.answer(),
        };
        for (name, value) in SECURITY_HEADERS {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer
    }

    async fn route<B>(&self, request: &Request<B>) -> Result<Answer, Problem> {
        guard::check(request, self.on_loopback)?;
        let route = Route::of(request.uri().path())?;
        match *request.method() {
            // hyper leaves out the body of an answer to HEAD.
            Method::GET | Method::HEAD => self.get(route).await,
            Method::DELETE if route.can_be_deleted() => self.delete(route).await,
            _ if route.can_be_deleted() => {
                Err(Problem::MethodNotAllowed { allowed: "GET, HEAD, DELETE" })
            }
            _ => Err(Problem::MethodNotAllowed { allowed: "GET, HEAD" }),
        }
    }

    async fn get(&self, route: Route) -> Result<Answer, Problem> {
        #[derive(Serialize)]
        struct Streams<T> {
            streams: T,
        }
        #[derive(Serialize)]
        struct Clients<T> {
            clients: T,
        }
        #[derive(Serialize)]
        struct Relays<T> {
            relays: T,
        }
        let control = &self.admin.control;
        Ok(match route {
            Route::Index => text("text/html; charset=utf-8", INDEX_PAGE),
            Route::Health => text(PLAIN, "ok\n"),
            Route::Ready => self.ready(),
            Route::Metrics => text(PROMETHEUS, self.admin.exporter.render()),
            Route::Server => json(&self.server()),
            Route::Streams => {
                json(&Streams { streams: merge_streams(bounded(control.reports()).await?) })
            }
            Route::Stream(name) => {
                let streams = merge_streams(bounded(control.reports()).await?);
                let stream = streams.iter().find(|stream| stream.name == name);
                json(stream.ok_or(Problem::NoStream)?)
            }
            Route::Clients => {
                json(&Clients { clients: merge_clients(bounded(control.reports()).await?) })
            }
            Route::Relays => {
                json(&Relays { relays: merge_relays(bounded(control.reports()).await?) })
            }
            Route::Client(id) => {
                let clients = merge_clients(bounded(control.reports()).await?);
                json(clients.iter().find(|client| client.id == id).ok_or(Problem::NoClient)?)
            }
        })
    }

    async fn delete(&self, route: Route) -> Result<Answer, Problem> {
        let control = &self.admin.control;
        match route {
            Route::Stream(name) if bounded(control.kick_stream(name.clone())).await? => {
                tracing::info!(stream = %name, "admin: stream ended by request");
            }
            Route::Client(id) if bounded(control.kick_client(id)).await? => {
                tracing::info!(client = id, "admin: client disconnected by request");
            }
            Route::Client(_) => return Err(Problem::NoClient),
            _ => return Err(Problem::NoStream),
        }
        let mut answer = Response::default();
        *answer.status_mut() = StatusCode::NO_CONTENT;
        Ok(answer)
    }

    fn ready(&self) -> Answer {
        if self.admin.control.ready() {
            return text(PLAIN, "ready\n");
        }
        let mut answer = text(PLAIN, "not ready\n");
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        answer
    }

    fn server(&self) -> ServerInfo {
        let process = &self.admin.process;
        let arena = process.arena.usage();
        ServerInfo {
            version: process::VERSION,
            uptime_seconds: process.uptime().as_secs(),
            io_backend: process.io_backend,
            io_note: process.io_note.clone(),
            cores: process.cpus.len(),
            cpus: process.cpus.clone(),
            memory: MemoryInfo {
                rss: process::rss_bytes(),
                arena_in_use: arena.in_use_bytes as u64,
                budget: arena.max_bytes as u64,
            },
            certificate: process.certificates.as_ref().map(|certificates| {
                let Facts { names, expires } = certificates.facts();
                CertificateInfo { names, expires, failures: certificates.failures() }
            }),
            fd_limit: process::fd_limit(),
            open_fds: process::open_fds(),
        }
    }
}

/// An answer of the cores, or none in time.
async fn bounded<T>(answer: impl Future<Output = Result<T, Unanswered>>) -> Result<T, Problem> {
    let answer = timeout(ADMIN_ANSWER_WAIT, answer).await.unwrap_or(Err(Unanswered));
    Ok(answer?)
}

const PLAIN: &str = "text/plain; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Nothing here is to be cached, framed, or guessed to be a script.
const SECURITY_HEADERS: [(HeaderName, &str); 3] = [
    (CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (
        HeaderName::from_static("content-security-policy"),
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    ),
];

const INDEX_PAGE: &str = include_str!("index.html");

fn text(content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}

fn json(body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(body) => text("application/json", body),
        // None of the model's types can fail to serialise; should one, it is this answer's loss.
        Err(error) => {
            tracing::error!(%error, "admin: cannot write JSON");
            let mut answer = text(PLAIN, "internal error\n");
            *answer.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            answer
        }
    }
}
