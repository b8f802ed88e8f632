//! Keeps web pages of other sites away from a listener that asks for no password.
//!
//! A page can point its own name at 127.0.0.1 (DNS rebinding) and then read and write here as if
//! it were same-origin; what gives it away is the Host header. A page can also send a request
//! without reading the answer (CSRF); what gives that away is the Origin header.

use std::net::Ipv6Addr;

use hyper::header::{HOST, ORIGIN};
use hyper::http::uri::Authority;
use hyper::{Method, Request};

use super::api::Problem;

pub(super) fn check<B>(request: &Request<B>, on_loopback: bool) -> Result<(), Problem> {
    let host = authority(request);
    // A listener that others can reach goes by names only its operator knows.
    if on_loopback && !host.as_ref().is_some_and(is_local) {
        return Err(Problem::ForbiddenHost);
    }
    let reads_only = matches!(*request.method(), Method::GET | Method::HEAD);
    if !reads_only && request.headers().contains_key(ORIGIN) && !is_same_origin(request, host) {
        return Err(Problem::ForbiddenOrigin);
    }
    Ok(())
}

/// From the request target where it is absolute, else from the Host header (RFC 9112 §3.2.2).
fn authority<B>(request: &Request<B>) -> Option<Authority> {
    if let Some(authority) = request.uri().authority() {
        return Some(authority.clone());
    }
    request.headers().get(HOST)?.to_str().ok()?.parse().ok()
}

/// Names that no page can point elsewhere: addresses, and `localhost` (RFC 6761 §6.3).
fn is_local(authority: &Authority) -> bool {
    let host = authority.host();
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::Ipv4Addr>().is_ok()
        || bracketed.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok())
}

fn is_same_origin<B>(request: &Request<B>, host: Option<Authority>) -> bool {
    let origin = request.headers().get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.and_then(|origin| origin.split_once("://")).map(|(_, rest)| rest);
    let origin: Option<Authority> = origin.and_then(|rest| rest.parse().ok());
    origin.is_some() && origin == host
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(on_loopback: bool, method: Method, headers: &[(&str, &str)]) -> Option<Problem> {
        let mut request = Request::builder().method(method).uri("/api/v1/server");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(()).unwrap(), on_loopback).err()
    }

    #[test]
    fn a_loopback_listener_knows_its_names() {
        for host in ["localhost:9090", "LOCALHOST", "127.0.0.1:9090", "[::1]:9090", "10.0.0.1"] {
            assert_eq!(verdict(true, Method::GET, &[("host", host)]), None, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a b"]
        {
            let refused = verdict(true, Method::GET, &[("host", host)]);
            assert_eq!(refused, Some(Problem::ForbiddenHost), "{host}");
            if host == "evil.example" {
                assert_eq!(verdict(false, Method::GET, &[("host", host)]), None);
            }
        }
        assert_eq!(verdict(true, Method::GET, &[]), Some(Problem::ForbiddenHost));
    }

    #[test]
    fn another_site_can_change_nothing() {
        let host = ("host", "localhost:9090");
        for (origin, allowed) in [
            ("http://localhost:9090", true),
            ("http://localhost:8080", false),
            ("http://localhost", false),
            ("https://evil.example", false),
            ("null", false),
            ("", false),
        ] {
            let delete = verdict(true, Method::DELETE, &[host, ("origin", origin)]);
            assert_eq!(delete.is_none(), allowed, "{origin}");
            assert_eq!(verdict(true, Method::GET, &[host, ("origin", origin)]), None);
        }
        assert_eq!(verdict(true, Method::DELETE, &[host]), None);
    }
}
