//! The front door: publish keys, guesses at them, and what a peer gets that never shows one.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use socket2::{Domain, Socket, Type};
use weir_e2e::http_connection::HttpConnection;
use weir_e2e::media::{self, GOP, frames, pictures};
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, publish};
use weir_e2e::{Backend, Gateway, Scratch, wait_until};
use weir_protocol::rtmp::chunk::Writer;
use weir_protocol::rtmp::command::Command;
use weir_protocol::rtmp::message::MessageHeader;

const KEY: &str = "show-secret-0123456789";
const CAM_KEY: &str = "cam-secret-0123456789";

const REJECTED: &str = "NetStream.Publish.Rejected";

fn start(backend: Backend, arguments: &[&str]) -> Gateway {
    let scratch = Scratch::new();
    let file = scratch.file("weir.toml");
    let keys = [(KEY, "live/show"), (CAM_KEY, "live/cam-*")];
    let keys = keys.map(|(key, stream)| {
        format!("[[publish_key]]\nkey = \"{key}\"\nstream = \"{stream}\"\n\n")
    });
    std::fs::write(&file, keys.concat()).expect("a configuration file");
    let file = file.to_str().expect("a path of letters");
    let ours = ["--cores", "2", "--log", "debug", "--config", file];
    Gateway::start(backend, &[&QUICK[..], &ours, arguments].concat())
}

/// A client whose connection comes from this address.
fn client_from(gateway: &Gateway, address: [u8; 4]) -> RtmpClient {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let own = SocketAddr::from((Ipv4Addr::from(address), 0));
    socket.bind(&own.into()).expect("all of 127.0.0.0/8 is this machine's");
    socket.connect(&gateway.socket_addr("rtmp").into()).expect("it listens");
    let mut client = RtmpClient::over(socket.into());
    client.open("live", &gateway.rtmp("live"));
    client
}

#[test]
fn a_publisher_with_a_key_is_let_in_under_the_public_name() {
    for backend in Backend::ALL {
        let mut gateway = start(backend, &["--rtmp-play-absent", "wait"]);
        for (key, public) in [
            (format!("show?key={KEY}"), "live/show"),
            (format!("show?token={KEY}"), "live/show"),
            (KEY.to_owned(), "live/show"),
            (format!("cam-1?key={CAM_KEY}"), "live/cam-1"),
        ] {
            let mut client = gateway.rtmp_client();
            publish(&mut client, &key);
            client.send(&frames(1, 0, GOP));
            let mut player = FlvPlayer::start(gateway.http_connection(), &format!("/{public}.flv"));
            player.marks_to(1, GOP - 1);
            let stream = gateway.stream(public).expect("the stream");
            assert_eq!(stream["publisher"]["address"], client.local_addr().to_string());
        }
        // The key in the server's address, as the app and as tcUrl have it.
        for (app, url) in [
            (format!("live?key={KEY}"), "live".to_owned()),
            ("live".to_owned(), format!("live?key={KEY}")),
        ] {
            let mut client = RtmpClient::connect(gateway.socket_addr("rtmp"));
            client.open(&app, &gateway.rtmp(&url));
            assert_eq!(client.ask_to_publish("show"), "NetStream.Publish.Start");
        }
        for key in ["show", "show?key=", &format!("show?key={CAM_KEY}"), "other", "show?key=guess"]
        {
            let mut client = gateway.rtmp_client();
            let stream = client.message_stream;
            client.command(stream, "publish", vec![key.into(), "live".into()]);
            let (code, description) = client.next_explained().expect("an answer");
            assert_eq!(code, REJECTED, "{key}");
            assert!(description.contains("check both"), "{description}");
        }
        assert_eq!(gateway.metric("weir_refused_total", "wrong_key"), 5.0);
        // A stream key is no name to watch, and whoever tries it shows it to nobody.
        let mut player = gateway.rtmp_client();
        player.command(player.message_stream, "play", vec![KEY.into()]);
        wait_until("a player that waits", SOON, || {
            (gateway.client_at("rtmp", player.local_addr())?["user_agent"] == "weir-e2e")
                .then_some(())
        });
        let told = [
            gateway.api("streams").to_string(),
            gateway.api("clients").to_string(),
            gateway.client().get(&gateway.admin("metrics")).text(),
            gateway.process().log(),
        ];
        for secret in [KEY, CAM_KEY, "guess"] {
            assert!(told.iter().all(|text| !text.contains(secret)), "{told:#?}");
        }
    }
}

/// CM-08: everything in one write, while nobody has decided yet.
#[test]
fn cm_08_media_before_the_verdict_goes_on_in_order_or_nowhere() {
    for backend in Backend::ALL {
        let gateway = start(backend, &[]);
        let mut wrong = gateway.rtmp_client();
        wrong.socket().write_all(&at_once(&wrong, 2, "show?key=wrong")).expect("it is taken");
        assert_eq!(wrong.next_status().as_deref(), Some(REJECTED));
        assert!(gateway.stream("live/show").is_none(), "nothing of it got anywhere");
        let mut right = gateway.rtmp_client();
        let bytes = at_once(&right, 1, &format!("show?key={KEY}"));
        right.socket().write_all(&bytes).expect("it is taken");
        assert_eq!(right.next_status().as_deref(), Some("NetStream.Publish.Start"));
        let mut player = FlvPlayer::start(gateway.http_connection(), "/live/show.flv");
        let seen = player.marks_to(1, GOP - 1);
        assert_eq!(pictures(&seen, 1), (0..GOP).collect::<Vec<_>>());
        assert!(seen.iter().all(|mark| mark.publisher == 1));
        // Who was refused may go on on the same connection, once it knows better.
        assert_eq!(
            wrong.ask_to_publish(&format!("cam-1?key={CAM_KEY}")),
            "NetStream.Publish.Start"
        );
    }
}

/// The publish command, the sequence headers and a GOP.
fn at_once(client: &RtmpClient, publisher: u8, key: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut write = |header, body: &[u8]| {
        Writer::new(weir_e2e::rtmp_client::CHUNK_SIZE).write(
            header,
            body,
            &Default::default(),
            &mut bytes,
        );
    };
    let stream = client.message_stream;
    let command = Command::new("publish", vec![key.into(), "live".into()]);
    write(MessageHeader::command(stream), &command.encode());
    for tag in media::headers().iter().chain(&frames(publisher, 0, GOP)) {
        write(MessageHeader::media(stream, tag.kind, tag.timestamp_ms), &tag.body);
    }
    bytes
}

/// An address that guesses is not answered for a while, right or wrong; all others are.
#[test]
fn guessing_is_throttled_by_address() {
    for backend in Backend::ALL {
        let gateway = start(backend, &[]);
        let right = format!("show?key={KEY}");
        let mut guesser = client_from(&gateway, [127, 0, 0, 2]);
        let mut answers = Vec::new();
        // Enough that some of them fall into the first wait, however slow this machine is.
        for guess in 0..20 {
            answers.push(guesser.ask_to_publish(&format!("show?key=guess-{guess}")));
        }
        assert!(answers.iter().all(|answer| answer == REJECTED), "{answers:?}");
        let throttled = gateway.metric("weir_refused_total", "throttled");
        let wrong = gateway.metric("weir_refused_total", "wrong_key");
        assert!(throttled > 0.0 && wrong >= 10.0 && throttled + wrong == 20.0);
        let mut other = client_from(&gateway, [127, 0, 0, 3]);
        assert_eq!(other.ask_to_publish(&right), "NetStream.Publish.Start");
        wait_until("the guesser to be let in", SOON, || {
            let mut client = client_from(&gateway, [127, 0, 0, 2]);
            (client.ask_to_publish(&right) == "NetStream.Publish.Start").then_some(())
        });
    }
}

/// Reads until the gateway ends the connection.
fn read_to_the_end(mut socket: &TcpStream) {
    socket.set_read_timeout(Some(SOON)).expect("a socket option");
    let mut buffer = [0; 4096];
    while socket.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

/// Before a publish is let in a peer gets little memory, and little time however busy it is.
#[test]
fn who_is_not_let_in_holds_little_and_not_for_long() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--timeouts-handshake", "2s"]);
        let mut greedy = gateway.rtmp_client();
        assert_eq!(greedy.ask_to_publish("show"), REJECTED);
        // A command of 1 MiB that is never finished.
        let header = [&[3, 0, 0, 0, 0x10, 0, 0, 20][..], &1_u32.to_le_bytes()].concat();
        greedy.socket().write_all(&header).expect("it is taken");
        assert_eq!(greedy.next_message(), None, "closed at once");
        // Media of any size is not stored at all.
        let before = gateway.api("server")["memory"]["rss"].as_u64().expect("a number");
        let mut busy = gateway.rtmp_client();
        let big = media::frame(1, 0, 2_000_000);
        let mut tries = 0_u32;
        while busy.try_send(&big[0]).is_ok() {
            tries += 1;
            let stream = busy.message_stream;
            let ask = vec!["show".into(), "live".into()];
            if tries.is_multiple_of(64) && busy.try_command(stream, "publish", ask).is_err() {
                break;
            }
        }
        let after = gateway.api("server")["memory"]["rss"].as_u64().expect("a number");
        assert!(after.saturating_sub(before) < 32 << 20, "{before} to {after} in {tries} pictures");
        read_to_the_end(busy.socket());
        assert!(gateway.metric("weir_closed_total", "no_request") >= 1.0);
        let connection: HttpConnection = gateway.http_connection();
        assert!(FlvPlayer::try_start(connection, "/live/show.flv").is_err());
    }
}

/// All connections together are bounded, whoever makes them, and a place is given back.
#[test]
fn connections_are_bounded_in_all() {
    for backend in Backend::ALL {
        let gateway = start(backend, &["--limits-connections", "16"]);
        let connect = || TcpStream::connect(gateway.socket_addr("rtmp")).expect("it listens");
        let mut held: Vec<TcpStream> = (0..16).map(|_| connect()).collect();
        for socket in &held {
            let address = socket.local_addr().expect("an address");
            wait_until("its place", SOON, || gateway.client_at("rtmp", address).map(drop));
        }
        read_to_the_end(&connect());
        assert_eq!(gateway.metric("weir_refused_total", "connection_limit"), 1.0);
        let gone = held.pop().map(|socket| socket.local_addr().expect("an address"));
        let gone = gone.expect("sixteen");
        wait_until("its end", SOON, || gateway.client_at("rtmp", gone).is_none().then_some(()));
        let mut client = gateway.rtmp_client();
        assert_eq!(client.ask_to_publish(&format!("show?key={KEY}")), "NetStream.Publish.Start");
    }
}
