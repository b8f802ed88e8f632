//! RTMP over TLS, and certificates that change while the gateway runs.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use weir_e2e::publisher::Publisher;
use weir_e2e::tls::{self, Pair};
use weir_e2e::{Backend, Gateway, Scratch, tools, wait_until};

const WITHIN: Duration = Duration::from_secs(30);

/// A gateway that shows `pair`, read from files in `scratch`.
fn start(backend: Backend, pair: &Pair, scratch: &Scratch) -> Gateway {
    let [certificate, key] = pair.put(scratch.path());
    let [certificate, key] = [&certificate, &key].map(|path| path.to_str().expect("a path"));
    let tls = ["--tls-certificate", certificate, "--tls-key", key, "--rtmps", "127.0.0.1:0"];
    Gateway::start(backend, &[&["--cores", "2"], &tls[..]].concat())
}

fn address(url: &str) -> SocketAddr {
    let address = url.split('/').nth(2).expect("an authority");
    address.parse().expect("an address and a port")
}

fn server(gateway: &Gateway) -> serde_json::Value {
    gateway.client().get(&gateway.admin("api/v1/server")).json()
}

/// Waits until connections have been closed for this reason so often.
fn wait_for_closed(gateway: &Gateway, reason: &str, count: u64) {
    let line = format!("weir_closed_total{{reason=\"{reason}\"}} {count}\n");
    wait_until(&line, WITHIN, || {
        let text = gateway.client().get(&gateway.admin("metrics")).text();
        text.contains(&line).then_some(())
    });
}

/// Plays two seconds, and gives the number of pictures.
fn play(url: &str) -> usize {
    let mut command = Command::new("ffprobe");
    command.args(["-v", "error", "-tls_verify", "0", "-read_intervals", "%+2"]);
    command.args(["-select_streams", "v", "-show_entries", "packet=pts", "-of", "csv", url]);
    tools::run("ffprobe", &mut command).lines().count()
}

#[test]
fn encoders_push_and_players_play_over_tls() {
    for (backend, publisher) in [
        (Backend::Uring, Publisher::Ffmpeg5),
        (Backend::Epoll, Publisher::Ffmpeg9),
        (Backend::Uring, Publisher::GstRtmp2),
    ] {
        let scratch = Scratch::new();
        let mut gateway = start(backend, &Pair::new(), &scratch);
        let _publishing = publisher.publish(&gateway.rtmps("live"), "a", &scratch);
        gateway.wait_for("live/a/index.m3u8");
        assert!(play(&gateway.rtmps("live/a")) > 20);
        // Media is one, whatever it came by.
        assert!(play(&gateway.rtmp("live/a")) > 20);
        let clients = gateway.client().get(&gateway.admin("api/v1/clients")).json();
        let mut clients = clients["clients"].as_array().expect("a list").iter();
        let publisher = clients.find(|client| client["kind"] == "publisher").expect("a publisher");
        assert_eq!(publisher["protocol"], "rtmps");
    }
}

/// `weir publish` with these arguments after the clip and the address: its exit code and what it says.
fn weir_publish(url: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new("timeout");
    command.args(["-s", "INT", "4"]).arg(tools::gateway_binary()).arg("publish");
    command.arg(tools::demo_clip()).arg(url).args(arguments);
    let output = tools::output("weir publish", &mut command);
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn weir_publishes_over_tls_to_servers_that_it_trusts() {
    for backend in Backend::ALL {
        let (scratch, pair) = (Scratch::new(), Pair::new());
        let gateway = start(backend, &pair, &scratch);
        let [certificate, _] = pair.put(scratch.path());
        let stranger = Pair::new().put(&scratch.directory("other"))[0].clone();
        let trusting = |file: &std::path::Path| ["--ca".to_owned(), file.display().to_string()];
        for (name, arguments) in
            [("a", trusting(&certificate).to_vec()), ("b", vec!["--insecure".to_owned()])]
        {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let (_, said) = weir_publish(&gateway.rtmps(&format!("live/{name}")), &arguments);
            let stream = gateway.stream(&format!("live/{name}")).expect(&said);
            assert!(stream["bytes_in"].as_u64() > Some(10_000), "{stream}");
        }
        let arguments = trusting(&stranger);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (code, said) = weir_publish(&gateway.rtmps("live/c"), &arguments);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("certificate") && said.contains("--insecure"), "{said}");
    }
}

#[test]
fn who_is_at_the_wrong_port_is_sent_away_at_once_and_counted() {
    for backend in Backend::ALL {
        let (scratch, pair) = (Scratch::new(), Pair::new());
        let gateway = start(backend, &pair, &scratch);
        // C0 and C1 of RTMP.
        let mut plain = TcpStream::connect(address(&gateway.rtmps(""))).expect("a listener");
        plain.write_all(&[&[3][..], &[0; 1536]].concat()).expect("sent");
        plain.set_read_timeout(Some(WITHIN)).expect("a time");
        let said = plain.read(&mut [0; 16]);
        assert!(matches!(said, Ok(0) | Err(_)), "{said:?}");
        wait_for_closed(&gateway, "plain_on_tls", 1);
        tls::connect(address(&gateway.rtmp("")), &[&pair]).expect_err("no TLS there");
        wait_for_closed(&gateway, "tls_on_plain", 1);
        // A client that does not trust the certificate says so by an alert.
        tls::connect(address(&gateway.rtmps("")), &[]).expect_err("a stranger");
        wait_for_closed(&gateway, "tls_failed", 1);
        tls::connect(address(&gateway.rtmps("")), &[&pair]).expect("others are served");
    }
}

#[test]
fn a_handshake_that_does_not_end_is_ended() {
    for backend in Backend::ALL {
        let (scratch, pair) = (Scratch::new(), Pair::new());
        let [certificate, key] = pair.put(scratch.path());
        let [certificate, key] = [&certificate, &key].map(|path| path.to_str().expect("a path"));
        let tls = ["--tls-certificate", certificate, "--tls-key", key, "--rtmps", "127.0.0.1:0"];
        let gateway =
            Gateway::start(backend, &[&["--timeouts-handshake", "1s"], &tls[..]].concat());
        let at = address(&gateway.rtmps(""));
        let mut silent = TcpStream::connect(at).expect("a listener");
        let mut slow = TcpStream::connect(at).expect("a listener");
        slow.write_all(&[22, 3, 1, 2, 0, 1]).expect("sent");
        // TLS, and then no RTMP: both have one limit together.
        let mut mute = tls::connect(at, &[&pair]).expect("a session");
        silent.set_read_timeout(Some(WITHIN)).expect("a time");
        slow.set_read_timeout(Some(WITHIN)).expect("a time");
        assert!(matches!(silent.read(&mut [0; 16]), Ok(0) | Err(_)));
        assert!(matches!(slow.read(&mut [0; 16]), Ok(0) | Err(_)));
        assert_eq!(mute.read(&mut [0; 16]).expect("a clean end"), 0);
        wait_for_closed(&gateway, "handshake_timeout", 3);
    }
}

#[test]
fn a_new_certificate_is_for_new_sessions_and_a_broken_one_for_none() {
    for backend in Backend::ALL {
        let (scratch, old, new) = (Scratch::new(), Pair::new(), Pair::new());
        let mut gateway = start(backend, &old, &scratch);
        let at = address(&gateway.rtmps(""));
        let mut publishing = Publisher::Ffmpeg5.publish(&gateway.rtmps("live"), "a", &scratch);
        gateway.wait_for("live/a/index.m3u8");
        let before = gateway.stream("live/a").expect("the stream");
        assert_eq!(server(&gateway)["certificate"]["names"][0], "localhost");

        let _ = new.put(scratch.path());
        gateway.process().signal("HUP");
        wait_until("the new certificate", WITHIN, || tls::connect(at, &[&new]).ok());
        tls::connect(at, &[&old]).expect_err("the old one is not shown any more");

        std::fs::write(scratch.file("cert.pem"), "no PEM").expect("a file");
        gateway.process().signal("HUP");
        wait_until("the count of failures", WITHIN, || {
            (server(&gateway)["certificate"]["failures"] == 1).then_some(())
        });
        tls::connect(at, &[&new]).expect("it stays");
        let log = gateway.process().log();
        assert!(log.contains("the certificate stays as it was"), "{log}");

        // Found without a signal, too.
        let last = Pair::new();
        let _ = last.put(scratch.path());
        wait_until("the last certificate", WITHIN, || tls::connect(at, &[&last]).ok());

        publishing.assert_running();
        let after = gateway.stream("live/a").expect("the stream");
        assert_eq!(before["publisher"], after["publisher"]);
        assert!(after["bytes_in"].as_u64() > before["bytes_in"].as_u64());
    }
}

#[test]
fn files_that_cannot_be_used_are_a_wrong_configuration() {
    let scratch = Scratch::new();
    let [certificate, key] = Pair::new().put(&scratch.directory("good"));
    let [expired, expired_key] = Pair::expired().put(&scratch.directory("expired"));
    for (certificate, key, words) in [
        (&certificate, &expired_key, ["does not belong to", "good/cert.pem"]),
        (&expired, &expired_key, ["expired on 2002-01-01", "get a new one"]),
        (&key, &key, ["holds no certificate", "good/key.pem"]),
        (&scratch.file("absent"), &key, ["tls.certificate", "No such file"]),
    ] {
        let mut command = Command::new(tools::gateway_binary());
        command.arg("run").arg("--tls-certificate").arg(certificate).arg("--tls-key").arg(key);
        let output = tools::output("weir", &mut command);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stderr).expect("text");
        for word in words {
            assert!(said.contains(word), "{word} in {said}");
        }
    }
    // A push that trusts a file without an end.
    let config = scratch.file("weir.toml");
    let push = "[[push]]\nstream = 'live/a'\nurl = 'rtmps://127.0.0.1/a/b'\ntrust = '/dev/zero'\n";
    std::fs::write(&config, push).expect("a file");
    let mut command = Command::new(tools::gateway_binary());
    let output = tools::output("weir", command.arg("run").arg("--config").arg(&config));
    let said = String::from_utf8(output.stderr).expect("text");
    assert!(said.contains("/dev/zero: it is larger than"), "{said}");
}
