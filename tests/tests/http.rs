//! HTTP as caches, browsers and odd clients speak it.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, SystemTime};

use weir_e2e::http::Answer;
use weir_e2e::http_connection::HttpConnection;
use weir_e2e::media::{GOP, frames, marks};
use weir_e2e::playlist::Playlist;
use weir_e2e::rtmp_client::RtmpClient;
use weir_e2e::script::{FlvPlayer, QUICK, SOON, playlist, publish, target};
use weir_e2e::{Backend, Gateway, tools, wait_until};
use weir_protocol::flv::TagKind;

const INDEX: &str = "/live/a/index.m3u8";
const MEDIA: &str = "/live/a/media.m3u8";
const TS: &str = "/live/a.m3u8";

/// Four whole segments and a half: enough for every playlist to begin.
const SENT: u32 = 4 * GOP + 5;

fn on_air(backend: Backend) -> (Gateway, RtmpClient) {
    on_air_with(backend, &[&QUICK[..], &["--cores", "2"]].concat())
}

fn on_air_with(backend: Backend, arguments: &[&str]) -> (Gateway, RtmpClient) {
    let gateway = Gateway::start(backend, arguments);
    let mut publisher = gateway.rtmp_client();
    publish(&mut publisher, "a");
    publisher.send(&frames(1, 0, SENT));
    FlvPlayer::start(gateway.http_connection(), "/live/a.flv").marks_to(1, SENT - 1);
    (gateway, publisher)
}

/// What ffmpeg finds in a stream that it joins late: metadata with a time would be a track of subtitles.
#[test]
fn late_players_find_the_tracks_and_nothing_else() {
    for backend in Backend::ALL {
        let (gateway, mut publisher) = on_air(backend);
        let mut player = FlvPlayer::start(gateway.http_connection(), "/live/a.flv");
        let first = player.next_tag().expect("metadata");
        assert_eq!((first.kind, first.timestamp_ms), (TagKind::Script, 0));
        let headers = player.next_tag().expect("a sequence header");
        assert!(headers.timestamp_ms > 0, "it joined at the start");
        publisher.send(&frames(1, SENT, SENT + GOP));
        let url = gateway.http("live/a.flv");
        let entries = ["-v", "error", "-show_entries", "stream=codec_type", "-of", "csv=p=0"];
        // Less than this has come than ffprobe would like to see.
        let little = ["-analyzeduration", "0", "-probesize", "4096"];
        let mut ffprobe = Command::new("ffprobe");
        let found = tools::run("ffprobe", ffprobe.args(entries).args(little).arg(&url));
        let mut found: Vec<&str> = found.split_whitespace().collect();
        found.sort_unstable();
        assert_eq!(found, ["audio", "video"]);
    }
}

/// Request targets of everything that does not change while nothing is published.
fn targets(http: &mut HttpConnection) -> Vec<String> {
    let fmp4 = playlist(http, MEDIA);
    let segment = &fmp4.segments[0];
    let init = segment.map.as_ref().expect("an init segment");
    let part = &fmp4.open_parts.first().expect("an open part").uri;
    let ts = playlist(http, TS).segments[0].uri.clone();
    let own = [&segment.uri, init, part].map(|uri| target(MEDIA, uri));
    let fixed = [INDEX, MEDIA, TS, "/", "/live/a", "/assets/player.js"].map(str::to_owned);
    [&own[..], &[target(TS, &ts)], &fixed].concat()
}

fn headers(answer: &Answer) -> BTreeMap<String, String> {
    let stable = answer.headers.iter().filter(|(name, _)| name != "date");
    stable.cloned().collect()
}

#[test]
fn head_is_get_without_its_body_on_one_kept_connection() {
    for backend in Backend::ALL {
        let (gateway, _publisher) = on_air(backend);
        let mut http = gateway.http_connection();
        let mut all = targets(&mut http);
        all.extend(["/live/none.m3u8", "/live/none.flv", "/nothing"].map(str::to_owned));
        all.push(format!("{MEDIA}?_HLS_part=1"));
        for target in all {
            let get = http.get(&target);
            let head = http.exchange("HEAD", &target, "");
            assert_eq!((head.status, headers(&head)), (get.status, headers(&get)), "{target}");
            let length = get.header("content-length").map(str::to_owned);
            assert_eq!(length, Some(get.body.len().to_string()), "{target}");
        }
        let head = http.exchange("HEAD", "/live/a.flv", "");
        assert_eq!((head.status, head.header("content-type")), (200, Some("video/x-flv")));
        assert_eq!(http.get(MEDIA).status, 200, "the connection goes on after HEAD of a live body");
    }
}

#[test]
fn every_answer_carries_the_rules_of_its_kind() {
    for backend in Backend::ALL {
        let (gateway, _publisher) = on_air(backend);
        let mut http = gateway.http_connection();
        let mut all: Vec<(String, u16)> =
            targets(&mut http).into_iter().map(|target| (target, 200)).collect();
        all.push(("/live/none.flv".into(), 404));
        all.push((format!("{MEDIA}?_HLS_msn=x"), 400));
        for (target, status) in &all {
            let answer = http.exchange("GET", target, "Origin: https://example.org\r\n");
            assert_eq!(answer.status, *status, "{target}");
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{target}");
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{target}");
            let cache = answer.header("cache-control").expect("a cache rule");
            let immutable = target.contains("/~");
            assert_eq!(cache.contains("immutable"), immutable, "{target}: {cache}");
            let asked = "Origin: https://example.org\r\nAccess-Control-Request-Method: GET\r\n\
                         Access-Control-Request-Headers: range\r\n";
            let options = http.exchange("OPTIONS", target, asked);
            assert_eq!(options.status, 204, "{target}");
            assert_eq!(options.header("access-control-allow-origin"), Some("*"), "{target}");
            let allowed = options.header("access-control-allow-headers").expect("headers");
            assert!(allowed.contains("range"), "{allowed}");
        }
        let post = http.exchange("POST", MEDIA, "Content-Length: 0\r\n");
        assert_eq!((post.status, post.header("allow")), (405, Some("GET, HEAD, OPTIONS")));
        assert_eq!(post.header("access-control-allow-origin"), Some("*"));
    }
}

#[test]
fn ranges_are_exact_slices() {
    for backend in Backend::ALL {
        let (gateway, _publisher) = on_air(backend);
        let mut http = gateway.http_connection();
        // Segment, init segment, open part, TS segment, and a playlist.
        for target in targets(&mut http).iter().take(4).chain([&MEDIA.to_owned()]) {
            let whole = http.get(target).body;
            let len = whole.len();
            for (range, slice) in [
                ("0-0", Some(0..1)),
                ("0-", Some(0..len)),
                ("-100", Some(len - 100..len)),
                ("7-99", Some(7..100)),
                ("100-999999999", Some(100..len)),
                ("5-3", None),
                ("0-1,4-5", None),
            ] {
                let answer = http.exchange("GET", target, &format!("Range: bytes={range}\r\n"));
                let told = answer.header("content-range").map(str::to_owned);
                match slice {
                    Some(slice) => {
                        assert_eq!(answer.status, 206, "{target} {range}");
                        let expected = format!("bytes {}-{}/{len}", slice.start, slice.end - 1);
                        assert_eq!(told, Some(expected), "{target} {range}");
                        assert_eq!(answer.body, whole[slice], "{target} {range}");
                    }
                    None => {
                        assert_eq!((answer.status, told), (200, None), "{target} {range}");
                        assert_eq!(answer.body, whole, "{target} {range}");
                    }
                }
            }
            let answer = http.exchange("GET", target, "Range: bytes=999999999-\r\n");
            assert_eq!(answer.status, 416, "{target}");
            assert_eq!(answer.header("content-range"), Some(format!("bytes */{len}").as_str()));
        }
        let mut live = gateway.http_connection();
        live.ask("GET", "/live/a.flv", "Range: bytes=0-10\r\n");
        let head = live.head();
        assert_eq!((head.status, head.header("content-range")), (200, None));
    }
}

#[test]
fn odd_targets_are_refused_in_fixed_words() {
    for backend in Backend::ALL {
        let (gateway, mut publisher) = on_air(backend);
        let long = format!("/live/{}", "k".repeat(64 * 1024));
        let odd = [
            "//",
            "/live",
            "/live/",
            "/live/k.m3u8/x",
            "/live/%zz",
            "/live/%00",
            "/live/../../etc/passwd",
            "/live/%2e%2e/%2e%2e/etc/passwd",
            "//evil.example/",
            "/%5cevil.example/",
            "/live/<script>",
            "/live/a%0d%0aSet-Cookie:x/index.m3u8",
            "/live/a?%0d%0aSet-Cookie:x",
            "*",
            "/\u{7f}",
            "/live/a\0b",
            "http://evil.example/live/a.m3u8x",
            "/assets/../player.js",
            "/assets/",
            &long,
        ];
        for target in odd {
            let mut http = gateway.http_connection();
            http.ask("GET", target, "");
            let shown: String = target.chars().take(40).collect();
            let Some(mut answer) = http.try_head() else { panic!("{shown}: no answer") };
            let known = [200, 400, 404, 414, 431];
            assert!(known.contains(&answer.status), "{shown}: {}", answer.status);
            assert_eq!(answer.header("location"), None, "{shown}");
            assert_eq!(answer.header("set-cookie"), None, "{shown}");
            if answer.status != 200 && answer.header("content-length").is_some_and(|len| len != "0")
            {
                while let weir_e2e::http_connection::Piece::Bytes(bytes) = http.piece(&answer) {
                    answer.body.extend(bytes);
                    if answer.header("content-length") == Some(&answer.body.len().to_string()) {
                        break;
                    }
                }
                let text = answer.text();
                assert!(!text.contains(['<', '%']) && !text.contains("evil"), "{shown}: {text}");
            }
        }
        publisher.send(&frames(1, SENT, 5 * GOP));
        assert!(!gateway.api("streams").to_string().contains("evil"));
    }
}

#[test]
fn names_with_dots_and_dashes_are_names() {
    for backend in Backend::ALL {
        let gateway = Gateway::start(backend, &QUICK);
        for (number, name) in
            ["a.b-c-1", "a-1", "index", "init.mp4", "k.m3u8", "media.m3u8", "x.flv"]
                .iter()
                .enumerate()
        {
            let number = u8::try_from(number).expect("few");
            let mut publisher = gateway.rtmp_client();
            publish(&mut publisher, name);
            publisher.send(&frames(number, 0, SENT));
            FlvPlayer::start(gateway.http_connection(), &format!("/live/{name}.flv"))
                .marks_to(number, SENT - 1);
            let mut http = gateway.http_connection();
            for path in [format!("/live/{name}/media.m3u8"), format!("/live/{name}.m3u8")] {
                let uri = playlist(&mut http, &path).segments[0].uri.clone();
                let bytes = weir_e2e::script::fetch(&mut http, &path, &uri);
                assert!(marks(&bytes).iter().any(|mark| mark.publisher == number), "{path}");
            }
            let index = playlist(&mut http, &format!("/live/{name}/index.m3u8"));
            assert_eq!(index.variants, ["media.m3u8"], "{name}");
        }
    }
}

/// RFC 8216bis §6.2.5.2.
#[test]
fn delivery_directives_are_obeyed_or_refused() {
    for backend in Backend::ALL {
        let (gateway, mut publisher) = on_air(backend);
        let mut http = gateway.http_connection();
        let live = playlist(&mut http, MEDIA);
        let (next, part) = live.next_part();
        assert!(part > 0, "a segment is half done");
        let at_once = [
            (format!("_HLS_msn={}", next - 1), 200),
            (format!("_HLS_msn={}&_HLS_part=0", next - 1), 200),
            // Beyond the parts of a whole segment the next segment's first part is meant.
            (format!("_HLS_msn={}&_HLS_part=99", next - 1), 200),
            (format!("_HLS_msn={next}&_HLS_part={}", part - 1), 200),
            ("_HLS_msn=0".to_owned(), 200),
            ("_HLS_msn=0&_HLS_part=0".to_owned(), 200),
            ("_HLS_skip=YES".to_owned(), 200),
            ("token=x".to_owned(), 200),
            ("_HLS_part=1".to_owned(), 400),
            ("_HLS_msn=abc".to_owned(), 400),
            ("_HLS_msn=-1".to_owned(), 400),
            ("_HLS_msn=18446744073709551616".to_owned(), 400),
            (format!("_HLS_msn={}", next + 3), 400),
            (format!("_HLS_msn={}&_HLS_part=0", next + 3), 400),
            (format!("_HLS_msn={next}&_HLS_part={}", part + 1000), 400),
        ];
        for (query, status) in at_once {
            assert_eq!(http.get(&format!("{MEDIA}?{query}")).status, status, "{query}");
        }

        // Held ones, each on a connection of its own, and what must be there when they are answered.
        let held = [
            (format!("_HLS_msn={next}"), (next + 1, 0)),
            (format!("_HLS_msn={next}&_HLS_part={part}"), (next, part + 1)),
            (format!("_HLS_msn={}", next + 1), (next + 2, 0)),
        ];
        let mut waiting: Vec<(HttpConnection, (u64, u64))> = Vec::new();
        for (query, least) in held {
            let mut connection = gateway.http_connection();
            connection.ask("GET", &format!("{MEDIA}?{query}"), "");
            waiting.push((connection, least));
        }
        publisher.send(&frames(1, SENT, 7 * GOP));
        for (connection, least) in &mut waiting {
            let answer = connection.answer("GET");
            assert_eq!(answer.status, 200);
            let got = Playlist::parse(&answer.text()).next_part();
            assert!(got >= *least, "{got:?}, not {least:?}");
        }
        // A hinted part is held until it is there.
        let hint = playlist(&mut http, MEDIA).preload_hint.expect("a preload hint");
        let mut early = gateway.http_connection();
        early.ask("GET", &target(MEDIA, &hint), "");
        publisher.send(&frames(1, 7 * GOP, 9 * GOP));
        let answer = early.answer("GET");
        assert!(answer.status == 200 && !marks(&answer.body).is_empty(), "{}", answer.status);
    }
}

#[test]
fn a_held_request_is_freed_when_its_client_leaves() {
    for backend in Backend::ALL {
        // Held for up to three target durations of 8 s, far longer than this test waits.
        let (gateway, _publisher) = on_air_with(backend, &["--hls-segment", "4s"]);
        drop(gateway.http_connection());
        let held: Vec<HttpConnection> = (0..30)
            .map(|_| {
                let mut connection = gateway.http_connection();
                connection.ask("GET", &format!("{MEDIA}?_HLS_msn=0"), "");
                connection
            })
            .collect();
        let number = || gateway.api("clients")["clients"].as_array().map_or(0, Vec::len);
        wait_until("all held requests", SOON, || (number() >= 31).then_some(()));
        drop(held);
        wait_until("their end", std::time::Duration::from_secs(5), || {
            (number() <= 1).then_some(())
        });
    }
}

#[test]
fn lookups_of_absent_streams_leave_nothing() {
    for backend in Backend::ALL {
        let (gateway, _publisher) = on_air(backend);
        let mut http = gateway.http_connection();
        let mut ask = |range: std::ops::Range<u32>| {
            for number in range {
                let name = format!("/live/absent-{number}");
                let target = match number % 5 {
                    0 => format!("{name}/index.m3u8"),
                    1 => format!("{name}/media.m3u8?_HLS_msn=5"),
                    2 => format!("{name}.m3u8"),
                    3 => format!("{name}.flv"),
                    _ => format!("{name}/~0123456789abcdef/7.m4s"),
                };
                assert_eq!(http.get(&target).status, 404, "{target}");
            }
        };
        let rss = || gateway.api("server")["memory"]["rss"].as_u64().expect("a number");
        ask(0..500);
        let before = rss();
        ask(500..5500);
        let grown = rss().saturating_sub(before);
        assert!(grown < 4 << 20, "{grown} bytes more");
        assert_eq!(gateway.api("streams")["streams"].as_array().map(Vec::len), Some(1));
        let mut player = gateway.rtmp_client();
        assert_eq!(player.ask_to_play("absent"), "NetStream.Play.StreamNotFound");
    }
}

#[test]
fn segments_are_dated_by_the_clock_on_the_wall() {
    for backend in Backend::ALL {
        let before = SystemTime::now();
        let (gateway, _publisher) = on_air(backend);
        let text = gateway.http_connection().get(MEDIA).text();
        let date = text.lines().find_map(|line| line.strip_prefix("#EXT-X-PROGRAM-DATE-TIME:"));
        let date = humantime::parse_rfc3339(date.expect("a date")).expect("a valid date");
        // To the millisecond, so it may round down below the test's own begin.
        assert!(date + Duration::from_millis(1) >= before && date <= SystemTime::now(), "{text}");
    }
}
