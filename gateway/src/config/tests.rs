use std::path::Path;

use super::text::TextValue as _;
use super::*;
use crate::auth::Secret;
use crate::limits;
use crate::stream::Pattern;

fn layers(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> (tempfile::TempDir, Layers) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("weir.toml");
    std::fs::write(&path, file).unwrap();
    let env = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let flags =
        flags.iter().map(|&(key, text)| (Key::named(key).unwrap(), text.to_owned())).collect();
    (dir, Layers { file: Some(path), env, flags })
}

fn load(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> Config {
    let (_dir, layers) = layers(file, env, flags);
    layers.load().unwrap().config
}

/// The sentence, without the directory of the file.
fn refusal(file: &str, env: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    let (dir, layers) = layers(file, env, flags);
    let sentence = layers.load().unwrap_err().to_string();
    assert!(!sentence.contains('\n'), "{sentence}");
    sentence.replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn nothing_set_gives_the_defaults() {
    assert_eq!(load("", &[("PATH", "/bin")], &[]), Config::default());
    assert_eq!(Layers::default().load().unwrap().config, Config::default());
}

#[test]
fn flag_over_variable_over_file_over_default() {
    let file = "[hls]\nsegment = '4s'\npart = '400ms'\nwindow = 8\n";
    let config = load(
        file,
        &[("WEIR_HLS_SEGMENT", "3s"), ("WEIR_HLS_PART", "300ms")],
        &[("hls.segment", "1s")],
    );
    assert_eq!(config.hls.segment, Duration::from_secs(1));
    assert_eq!(config.hls.part, Duration::from_millis(300));
    assert_eq!(config.hls.window, 8);
    assert_eq!(config.resume_window, Config::default().resume_window);
}

#[test]
fn the_file_can_be_named_by_a_variable() {
    let (_dir, mut layers) = layers("hls.window = 9", &[], &[]);
    let path = layers.file.take().unwrap();
    layers.env.push((CONFIG_VARIABLE.to_owned(), path.to_string_lossy().into_owned()));
    assert_eq!(layers.load().unwrap().config.hls.window, 9);
}

#[test]
fn every_key_takes_its_own_default_back_in_every_layer() {
    let loaded = Layers::default().load().unwrap();
    let whole = reference::toml(&loaded, Secrets::Shown);
    assert_eq!(load(&whole, &[], &[]), Config::default());
    for key in KEYS {
        let text = key.default();
        assert_eq!(load("", &[(&key.variable(), &text)], &[]), Config::default());
        assert_eq!(load("", &[], &[(key.name, &text)]), Config::default());
    }
}

#[test]
fn what_is_printed_reads_back_and_tells_places() {
    let (_dir, layers) =
        layers("cores = '0,2-3'", &[("WEIR_IO", "epoll")], &[("log", "[a{b=\"c\"}]=info")]);
    let loaded = layers.load().unwrap();
    let printed = reference::toml(&loaded, Secrets::Shown);
    assert_eq!(load(&printed, &[], &[]), loaded.config);
    assert!(printed.contains("io = \"epoll\"  # set by WEIR_IO\n"), "{printed}");
    assert!(printed.contains("weir.toml:1\n"), "{printed}");
}

#[test]
fn cores_as_number_or_list() {
    assert_eq!(load("cores = 2", &[], &[]).cores, Cores::Count(2));
    assert_eq!(load("cores = '0,2-3'", &[], &[]).cores, Cores::List([0, 2, 3].into()));
}

#[test]
fn refusals_say_where_what_and_what_else() {
    let all = "`weir config --reference` lists all";
    for (file, expected) in [
        (
            "# a\n[hls]\nsegmnet = '2s'",
            format!(
                "weir.toml:3: unknown key \"hls.segmnet\"; did you mean \"hls.segment\"? ({all})"
            ),
        ),
        ("\nfoo = 1", format!("weir.toml:2: unknown key \"foo\"; {all}")),
        ("[hsl]", format!("weir.toml:1: unknown key \"hsl\"; {all}")),
        (
            "[rtmp]\naddress = ':1'",
            format!("weir.toml:2: unknown key \"rtmp.address\"; did you mean \"rtmp\"? ({all})"),
        ),
        (
            "\n\nhls.window = 2",
            "weir.toml:3: hls.window = \"2\": expected a whole number from 3 to 60".to_owned(),
        ),
        (
            "hls.window = '6'",
            "weir.toml:1: hls.window = \"6\": expected a whole number from 3 to 60, without quotes"
                .to_owned(),
        ),
        (
            "hls.segment = 2",
            "weir.toml:1: hls.segment = 2: expected a duration with its unit, from 500ms to 30s, \
             in quotes"
                .to_owned(),
        ),
        ("io = 'poll'", "weir.toml:1: io = \"poll\": expected auto, uring or epoll".to_owned()),
    ] {
        assert_eq!(refusal(file, &[], &[]), expected, "{file}");
    }
    for file in ["rtmp = \n", "rtmp = ':1'\nrtmp = ':2'", "= 1", "[hls", "hls.window = 1 2"] {
        let sentence = refusal(file, &[], &[]);
        assert!(sentence.starts_with("weir.toml:"), "{sentence}");
        assert!(sentence.contains("not valid TOML"), "{sentence}");
    }
}

const KEY: &str = "0123456789abcdef";

#[test]
fn lists_come_in_the_order_of_the_file_and_are_printed_without_their_secrets() {
    let file = format!(
        "log = 'info'\n[[publish_key]]\nkey = '{KEY}'\nstream = 'live/a'\n\n[hls]\nwindow = 7\n\n\
         [[publish_key]]\nstream = 'live/cam-*'\nkey = '{KEY}'\n"
    );
    let (_dir, layers) = layers(&file, &[], &[]);
    let loaded = layers.load().unwrap();
    let streams: Vec<_> =
        loaded.config.publish_keys.iter().map(|key| key.stream.to_string()).collect();
    assert_eq!(streams, ["live/a", "live/cam-*"]);
    assert!(loaded.config.publish_keys.iter().all(|key| key.key.is(KEY)));
    assert_eq!(loaded.config.hls.window, 7);
    let printed = reference::toml(&loaded, Secrets::Shown);
    assert_eq!(load(&printed, &[], &[]), loaded.config);
    let hidden = reference::toml(&loaded, Secrets::Hidden);
    assert!(hidden.contains("stream = \"live/cam-*\"\n"), "{hidden}");
    assert!(!hidden.contains(KEY) && !format!("{loaded:?}").contains(KEY), "{hidden}");
    let inline = format!("publish_key = [{{ key = '{KEY}', stream = 'live/a' }}]");
    assert_eq!(load(&inline, &[], &[]).publish_keys.len(), 1);
}

#[test]
fn refusals_of_lists_say_where_what_and_what_else() {
    let all = "`weir config --reference` lists all";
    let headed = "expected a table for each entry, each headed [[publish_key]]";
    for (file, expected) in [
        (
            "[[publish_kye]]\nkey = 'x'",
            format!("1: unknown key \"publish_kye\"; did you mean \"publish_key\"? ({all})"),
        ),
        (
            "[[publish_key]]\nkey = '0123456789abcdef'\nstraem = 'live/a'",
            format!(
                "3: unknown key \"publish_key.straem\"; did you mean \"publish_key.stream\"? ({all})"
            ),
        ),
        (
            "\n[[publish_key]]\nkey = 'secret'\nstream = 'live/a'",
            format!("3: publish_key.key = …: expected {}", Secret::EXPECTED),
        ),
        (
            "[[publish_key]]\nkey = 123456789012\nstream = 'live/a'",
            format!("2: publish_key.key = …: expected {}, in quotes", Secret::EXPECTED),
        ),
        (
            "[[publish_key]]\nstream = 'live/../a'",
            format!("2: publish_key.stream = \"live/../a\": expected {}", Pattern::EXPECTED),
        ),
        (
            "\n\n[[publish_key]]\nkey = '0123456789abcdef'",
            format!("3: [[publish_key]] without stream: expected {}", Pattern::EXPECTED),
        ),
        ("[publish_key]\nkey = 'x'", format!("1: publish_key = (table): {headed}")),
        ("publish_key = 'x'", format!("1: publish_key = \"x\": {headed}")),
        ("publish_key = [1]", format!("1: publish_key = (array): {headed}")),
    ] {
        assert_eq!(refusal(file, &[], &[]), format!("weir.toml:{expected}"), "{file}");
    }
    let entry = format!("[[publish_key]]\nkey = '{KEY}'\nstream = 'live/a'\n");
    let sentence = refusal(&entry.repeat(limits::PUBLISH_KEYS + 1), &[], &[]);
    assert_eq!(
        sentence,
        format!(
            "weir.toml:{}: [[publish_key]]: there can be 1000 of them at most",
            limits::PUBLISH_KEYS * 3 + 1
        )
    );
    let sentence = refusal("", &[("WEIR_PUBLISH_KEY", KEY)], &[]);
    assert!(
        sentence.ends_with("[[publish_key]] can only stand in the configuration file"),
        "{sentence}"
    );
}

#[test]
fn refusals_of_variables_and_flags() {
    let sentence = refusal("", &[("WEIR_HLS_SEGMENTS", "1s")], &[]);
    assert!(
        sentence.contains("variable WEIR_HLS_SEGMENTS; did you mean WEIR_HLS_SEGMENT?"),
        "{sentence}"
    );
    let sentence = refusal("", &[("WEIR_MEMORY_MAX", "1")], &[]);
    assert!(
        sentence.starts_with("WEIR_MEMORY_MAX: memory.max = \"1\": expected a size"),
        "{sentence}"
    );
    let sentence = refusal("", &[], &[("rtmp", "nowhere:1935")]);
    assert!(sentence.starts_with("--rtmp: rtmp = \"nowhere:1935\": expected an IP"), "{sentence}");
}

#[test]
fn an_empty_variable_is_not_set() {
    let env = [("WEIR_CONFIG", ""), ("WEIR_HLS_SEGMENT", ""), ("WEIR_IO", "")];
    assert_eq!(load("", &env, &[]), Config::default());
    let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    assert!(Layers { env, ..Layers::default() }.load().is_ok());
}

#[test]
fn rules_between_keys_name_both_places() {
    assert_eq!(
        refusal("hls.part = '2s'", &[], &[]),
        "hls.part = 2s (weir.toml:1) does not go with hls.segment = 2s (default): a part can be at \
         most half a segment"
    );
    let sentence = refusal("hls.segment_max = '1s'", &[], &[]);
    assert!(sentence.contains("cannot be shorter than the usual one"), "{sentence}");
    let sentence = refusal("admin = '0.0.0.0:8080'", &[], &[]);
    assert!(sentence.contains("each listener needs its own port"), "{sentence}");
    load("rtmp = '127.0.0.1:0'\nhttp = '127.0.0.1:0'\nadmin = '127.0.0.1:0'", &[], &[]);
}

#[test]
fn kubernetes_service_links_are_no_typing_errors() {
    let links = [
        ("WEIR_SERVICE_HOST", "10.0.0.1"),
        ("WEIR_SERVICE_PORT_RTMP", "1935"),
        ("WEIR_PORT", "tcp://10.0.0.1:1935"),
        ("WEIR_PORT_1935_TCP_ADDR", "10.0.0.1"),
    ];
    assert_eq!(load("", &links, &[]), Config::default());
    refusal("", &[("WEIR_PORT", "1935")], &[]);
}

#[test]
fn files_that_are_none() {
    let absent = Layers { file: Some("/nonexistent/weir.toml".into()), ..Layers::default() };
    let sentence = absent.load().unwrap_err().to_string();
    assert!(sentence.contains("/nonexistent/weir.toml: No such file"), "{sentence}");
    let endless = Layers { file: Some("/dev/zero".into()), ..Layers::default() };
    assert!(endless.load().unwrap_err().to_string().contains("larger than"));
}

/// `UPDATE_GOLDENS=1 cargo test -p weir-gateway` rewrites the document.
#[test]
fn the_reference_document_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/config.md");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, markdown()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), markdown());
}
