use super::*;

fn rtmp(app: &str, tc_url: &str, key: &str) -> Result<String, NameError> {
    StreamName::from_rtmp(app, tc_url, key).map(|(name, _)| name.to_string())
}

fn token(app: &str, tc_url: &str, key: &str) -> Option<String> {
    let (_, query) = StreamName::from_rtmp(app, tc_url, key).unwrap();
    query.get("token").map(str::to_owned)
}

/// CM-04: slashes too many or in odd places make no other stream.
#[test]
fn cm_04_slashes() {
    for (app, key) in [
        ("live", "k"),
        ("live/", "k"),
        ("live//", "k"),
        ("/live", "k"),
        ("live", "/k"),
        ("live", "k/"),
        ("//live//", "//k//"),
        ("", "live/k"),
        ("live/k", ""),
    ] {
        assert_eq!(rtmp(app, "", key), Ok("live/k".into()), "{app:?} {key:?}");
    }
    assert_eq!(rtmp("", "rtmp://h:1935/live/", "k"), Ok("live/k".into()));
    assert_eq!(StreamName::from_path("/live//k/").unwrap().as_str(), "live/k");
}

/// CM-05: however an address is split, it is one stream.
#[test]
fn cm_05_splits() {
    for (app, key) in [("a/b/c", "k"), ("a/b", "c/k"), ("a", "b/c/k"), ("a/b/c/k", "")] {
        let (name, _) = StreamName::from_rtmp(app, "", key).unwrap();
        assert_eq!(name, StreamName::from_path("/a/b/c/k").unwrap());
        assert_eq!((name.app(), name.name()), ("a/b/c", "k"));
    }
    assert_eq!(rtmp("1/2/3/4/5/6/7", "", "8"), Ok("1/2/3/4/5/6/7/8".into()));
    assert_eq!(rtmp("1/2/3/4/5/6/7/8", "", "9"), Err(NameError::TooDeep));
}

/// ffmpeg and librtmp put formats before names with some endings, which the user has not typed.
#[test]
fn formats_before_the_key_are_no_part_of_the_name() {
    for (key, name) in [
        ("mp4:init.mp4", "live/init.mp4"),
        ("mp4:eu/show.f4v?k=1", "live/eu/show.f4v"),
        ("flv:show", "live/show"),
        ("MP3:show", "live/show"),
    ] {
        assert_eq!(rtmp("live", "", key), Ok(name.into()), "{key}");
    }
    assert_eq!(rtmp("live", "", "mp4:"), Err(NameError::Incomplete));
    for key in ["mp4:mp4:x", "ogg:x", "x/mp4:y", "é:x"] {
        assert_eq!(rtmp("live", "", key), Err(NameError::BadCharacter(':')), "{key}");
    }
}

/// SX-01: nothing that a file system, a shell or a page could take for more than a name.
#[test]
fn sx_01_unsafe_names() {
    use NameError::{BadCharacter, BadEscape, Dots, Incomplete, TooLong};
    for (key, error) in [
        ("../../../../out/pwn", Dots),
        ("..", Dots),
        ("a/./b", Dots),
        (".hidden", Dots),
        ("a..b", Dots),
        ("..%2f..%2fx", Dots),
        ("%2e%2e/x", Dots),
        ("%252e%252e/x", BadCharacter('%')),
        ("C:\\x", BadCharacter(':')),
        ("a\\..\\b", BadCharacter('\\')),
        ("a\0b", BadCharacter('\0')),
        ("a%00b", BadCharacter('\0')),
        ("a\nb", BadCharacter('\n')),
        ("<script>", BadCharacter('<')),
        ("a b", BadCharacter(' ')),
        ("a'b", BadCharacter('\'')),
        ("\u{202e}x", BadCharacter('\u{202e}')),
        ("%zz", BadEscape),
        ("%2", BadEscape),
        ("%ff", BadEscape),
        ("", Incomplete),
        ("///", Incomplete),
    ] {
        assert_eq!(rtmp("live", "rtmp://h/live", key), Err(error), "{key:?}");
    }
    assert_eq!(rtmp("../..", "", "k"), Err(Dots));
    assert_eq!(rtmp("live", "", &"x".repeat(300)), Err(TooLong));
    assert_eq!(rtmp("live", "", &"x".repeat(1 << 20)), Err(TooLong));
    // A leading slash is only a slash.
    assert_eq!(rtmp("live", "", "/etc/x"), Ok("live/etc/x".into()));
}

#[test]
fn queries_are_found_wherever_they_stand_and_the_keys_one_wins() {
    let cut = "rtmp://h/live?token=cu";
    assert_eq!(token("live", cut, "k?token=full"), Some("full".into()));
    assert_eq!(token("live?token=app", cut, "k"), Some("app".into()));
    assert_eq!(token("live", "rtmp://h/live?a=b&token=url", "k"), Some("url".into()));
    assert_eq!(token("live/k?token=one", "", ""), Some("one".into()));
    assert_eq!(token("live", "", "k?x&token=a%2Fb+c%"), Some("a%2Fb+c%".into()));
    assert_eq!(token("live", "", "k?token=a%2Fb+c"), Some("a/b+c".into()));
    assert_eq!(token("live", "", "k?token="), Some(String::new()));
    assert_eq!(token("live", "", "k?other=1"), None);
}

#[test]
fn queries_are_bounded_and_their_values_are_not_shown() {
    let (_, query) = StreamName::from_address("/live/k?token=secret&b=%C3%A9 1&b=2").unwrap();
    assert_eq!(format!("{query:?}"), r#"{"token", "b", "b"}"#);
    assert_eq!(query.get("b"), Some("é 1"));
    assert_eq!(query.to_query_string(), "token=secret&b=%C3%A9%201&b=2");
    let many: String = (0..100).map(|i| format!("a{i}=1&")).collect();
    assert_eq!(Query::parse(&many), Err(NameError::QueryTooLong));
    assert_eq!(Query::parse(&"a".repeat(20_000)), Err(NameError::QueryTooLong));
}

#[test]
fn a_name_survives_the_way_through_a_url() {
    for text in ["live/k", "live/café", "live/東京_1", "a/b/c~d+e@f=,.g"] {
        let name = StreamName::from_path(text).unwrap();
        let url = name.url_path().to_string();
        assert!(url.is_ascii());
        assert_eq!(StreamName::from_path(&url).unwrap(), name);
        assert_eq!(format!("{name}"), text);
    }
}
