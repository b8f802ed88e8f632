//! Relays whose connections are encrypted.

use weir_e2e::media::{GOP, frames, pictures};
use weir_e2e::script::{FlvPlayer, SOON, publish};
use weir_e2e::tls::Pair;
use weir_e2e::{Backend, Gateway, wait_until};

use crate::{BASE, Relays, beside, is_live, relay_when, start, wait_for_publisher};

/// A gateway that speaks RTMPS, and the file of the certificate that it shows.
fn secured(first: &Gateway, backend: Backend, pair: &Pair) -> (Gateway, String) {
    let [certificate, key] = pair.put(first.scratch().path());
    let [certificate, key] = [certificate, key].map(|path| path.to_str().unwrap().to_owned());
    let tls = ["--tls-certificate", &certificate, "--tls-key", &key, "--rtmps", "127.0.0.1:0"];
    (first.beside(backend, &[&BASE[..], &tls].concat()), certificate)
}

#[test]
fn a_stream_is_pushed_and_pulled_over_tls_from_servers_that_are_trusted() {
    for backend in Backend::ALL {
        let first = start(backend);
        let (centre, certificate) = secured(&first, backend, &Pair::new());
        let pushes = Relays::default()
            .push("live/a", &centre.rtmps("hub/{name}"))
            .with("trust", &certificate);
        let origin = beside(&first, backend, &pushes, &[]);
        let pulls = Relays::default()
            .pull("in/a", &centre.rtmps("hub/a"), "always")
            .with("trust", "anyone");
        let edge = beside(&first, backend, &pulls, &[]);
        let mut publisher = origin.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        wait_for_publisher(&centre, "hub/a");
        wait_for_publisher(&edge, "in/a");
        let mut player = FlvPlayer::start(edge.http_connection(), "/in/a.flv");
        publisher.send(&frames(1, GOP, 3 * GOP));
        let seen = pictures(&player.marks_to(1, 3 * GOP - 1), 1);
        assert_eq!(seen, (seen[0]..3 * GOP).collect::<Vec<_>>());
        let push = relay_when(&origin, "a push", centre.socket_addr("rtmps"), is_live);
        assert!(push["url"].as_str().unwrap().starts_with("rtmps://"), "{push}");
    }
}

#[test]
fn nothing_is_pushed_to_a_server_that_is_not_trusted() {
    for backend in Backend::ALL {
        let first = start(backend);
        let (centre, _) = secured(&first, backend, &Pair::new());
        let [other, _] = Pair::new().put(&first.scratch().directory("other"));
        let rules = Relays::default()
            .push("live/a", &centre.rtmps("hub/a"))
            .with("trust", other.to_str().unwrap());
        let origin = beside(&first, backend, &rules, &[]);
        let mut publisher = origin.rtmp_client();
        publish(&mut publisher, "a");
        publisher.send(&frames(1, 0, GOP));
        let refused = |relay: &serde_json::Value| {
            relay["last_error"].as_str().is_some_and(|error| error.contains("certificate"))
        };
        relay_when(&origin, "a refusal", centre.socket_addr("rtmps"), refused);
        wait_until("the count of it", SOON, || {
            let text = centre.client().get(&centre.admin("metrics")).text();
            text.contains("weir_closed_total{reason=\"tls_failed\"}").then_some(())
        });
        assert!(centre.stream("hub/a").is_none());
    }
}
