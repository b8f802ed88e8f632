//! Publishers that take a stream over from each other, on one core and across cores.

use weir_e2e::http_connection::HttpConnection;
use weir_e2e::media::{self, GOP, frames, pictures};
use weir_e2e::playlist::Playlist;
use weir_e2e::script::{FlvPlayer, QUICK, playlist, publish};
use weir_e2e::{Backend, Gateway};

fn start(backend: Backend) -> Gateway {
    Gateway::start(backend, &[&QUICK[..], &["--cores", "2"]].concat())
}

/// SE-01: the one that comes again has the name at once, whatever the old connection does.
#[test]
fn a_publisher_that_comes_again_takes_over_and_players_go_on() {
    for backend in Backend::ALL {
        let gateway = start(backend);
        for (name, old_core, new_core) in [("same", 0, 0), ("other", 0, 1), ("back", 1, 0)] {
            take_over(&gateway, name, old_core, new_core);
        }
    }
}

fn take_over(gateway: &Gateway, name: &str, old_core: u64, new_core: u64) {
    let path = format!("/live/{name}/media.m3u8");
    let mut old = gateway.rtmp_on_core(old_core);
    publish(&mut old, name);
    old.send(&frames(1, 0, 3 * GOP + 2));
    let mut players: Vec<FlvPlayer> = [0, 1]
        .map(|core| HttpConnection::over(gateway.connect_on_core("http", core)))
        .map(|connection| FlvPlayer::start(connection, &format!("/live/{name}.flv")))
        .into();
    for player in &mut players {
        player.marks_to(1, 3 * GOP + 1);
    }
    // A reload on each core, held for what only the new publisher can bring.
    let mut held = [0, 1].map(|core| HttpConnection::over(gateway.connect_on_core("http", core)));
    let before = playlist(&mut held[0], &path);
    let (msn, _) = before.next_part();
    for connection in &mut held {
        connection.ask("GET", &format!("{path}?_HLS_msn={}", msn + 1), "");
    }

    let mut new = gateway.rtmp_on_core(new_core);
    publish(&mut new, name);
    assert_eq!(old.codes_to_the_end(), ["NetStream.Publish.BadName"], "{name}");
    new.send(&frames(2, 0, 3 * GOP));
    for player in &mut players {
        let seen = player.marks_to(2, 3 * GOP - 1);
        assert_eq!(pictures(&seen, 2), (0..3 * GOP).collect::<Vec<_>>(), "{name}");
    }
    for connection in &mut held {
        let after = Playlist::parse(&connection.answer("GET").text());
        assert_eq!(after.discontinuities(), 1, "{name}: {after:#?}");
        assert!(after.next_part().0 >= msn + 2, "{name}: MSN {:?}", after.next_part());
        assert!(after.media_sequence >= before.media_sequence, "{name}");
    }
    let stream = gateway.stream(&format!("live/{name}")).expect("the stream");
    assert_eq!(stream["core"], new_core, "{name}: {stream}");
    let local = new.local_addr().to_string();
    assert_eq!(stream["publisher"]["address"], local, "{name}: {stream}");
}

#[test]
fn players_join_and_stay_while_a_name_moves_between_cores() {
    for backend in Backend::ALL {
        let gateway = start(backend);
        let mut first = gateway.rtmp_on_core(0);
        publish(&mut first, "a");
        first.send(&frames(0, 0, GOP));
        let mut players = [0, 1]
            .map(|core| HttpConnection::over(gateway.connect_on_core("http", core)))
            .map(|connection| FlvPlayer::start(connection, "/live/a.flv"));
        players.iter_mut().for_each(|player| drop(player.marks_to(0, GOP - 1)));
        for round in 1..30 {
            let mut all = [0, 1, 0].map(|core| gateway.rtmp_on_core(core));
            let mut new =
                [0, 1].map(|core| HttpConnection::over(gateway.connect_on_core("http", core)));
            for client in &mut all {
                let stream = client.message_stream;
                client.command(stream, "publish", vec!["a".into(), "live".into()]);
                new.iter_mut().for_each(|connection| connection.ask("HEAD", "/live/a.flv", ""));
            }
            for connection in &mut new {
                let statuses = all.each_ref().map(|_| connection.head().status);
                assert_eq!(statuses, [200; 3], "the stream is on air all the time");
            }
            let codes = all.each_mut().map(|client| client.next_status());
            let address = gateway.stream("live/a").expect("it")["publisher"]["address"].clone();
            let winner = all.iter_mut().find(|client| address == client.local_addr().to_string());
            let winner = winner.unwrap_or_else(|| panic!("nobody of {codes:?} is {address}"));
            winner.send(&media::headers());
            winner.send(&frames(round, 0, GOP));
            players.iter_mut().for_each(|player| drop(player.marks_to(round, GOP - 1)));
        }
    }
}
