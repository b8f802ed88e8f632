use super::*;
use crate::limits;

const A: &str = "0123456789abcdef-a";
const B: &str = "0123456789abcdef-b";

fn door() -> Door {
    let key = |key: &str, stream: &str| PublishKey {
        key: Secret::parse(key).unwrap(),
        stream: Pattern::parse(stream).unwrap(),
    };
    Door::new(vec![key(A, "live/show"), key(B, "live/cam-*"), key(B, "studio/main")])
}

/// What a publisher with this address becomes; `None` where it is refused.
async fn published(door: &Door, app: &str, tc_url: &str, key: &str) -> Option<String> {
    let (name, query) = StreamName::from_rtmp(app, tc_url, key).unwrap();
    let address = [192, 0, 2, 1].into();
    let visit = Visit { address, name: &name, query: &query };
    // Each case is an address of its own, so to say.
    *door.guesses.lock().unwrap() = Guesses::default();
    match door.publish(&visit, Instant::now()).await {
        Ok(name) => Some(name.to_string()),
        Err(refusal) => {
            assert_eq!(refusal, Refusal::WrongKey);
            None
        }
    }
}

#[tokio::test]
async fn a_key_lets_in_by_every_way_that_encoders_have() {
    let door = door();
    for (app, url, key, public) in [
        ("live", "", &*format!("show?key={A}"), Some("live/show")),
        ("live", "", &format!("show?token={A}"), Some("live/show")),
        ("live", "", &format!("show?x=1&key={A}"), Some("live/show")),
        (&format!("live?key={A}"), "", "show", Some("live/show")),
        ("live", &format!("rtmp://h/live?token={A}"), "show", Some("live/show")),
        // Two of which one is right: a proxy may add its own.
        ("live", "", &format!("show?key=x&token={A}"), Some("live/show")),
        ("live", "", A, Some("live/show")),
        ("studio", "", B, Some("studio/main")),
        ("live", "", &format!("cam-7?key={B}"), Some("live/cam-7")),
        // A pattern is no name that a key could stand for.
        ("live", "", B, None),
        ("vod", "", A, None),
        ("live", "", "show", None),
        ("live", "", "show?key=", None),
        ("live", "", &format!("show?key={B}"), None),
        ("live", "", &format!("cam-7?key={A}"), None),
        ("live", "", &format!("show?key={}", &A[1..]), None),
        ("live", "", &format!("show?key={A}x"), None),
        ("live", "", &format!("show?KEY={A}"), None),
        ("live", "", &format!("other?key={A}"), None),
    ] {
        assert_eq!(published(&door, app, url, key).await.as_deref(), public, "{app} {url} {key}");
    }
}

#[tokio::test]
async fn without_keys_everybody_is_let_in() {
    let door = Door::new(Vec::new());
    assert!(door.is_open());
    assert_eq!(published(&door, "a", "", "b?key=c").await.as_deref(), Some("a/b"));
}

#[test]
fn a_name_that_holds_a_key_is_known() {
    let name = |text: String| StreamName::from_path(&text).unwrap();
    for text in [format!("live/{A}"), format!("{B}/a"), format!("a/{A}/b")] {
        assert!(door().holds_key(&name(text)));
    }
    for text in ["live/show".to_owned(), format!("live/{A}x"), "a/b/c".to_owned()] {
        assert!(!door().holds_key(&name(text)));
    }
}

/// The right key from a throttled address is refused like any other, and let in when the time is
/// over; other addresses go on as ever.
#[tokio::test]
async fn whoever_guesses_is_not_answered_for_a_while() {
    let (door, mut now) = (door(), Instant::now());
    let attempt = async |last: u8, key: &str, now| {
        let (name, query) = StreamName::from_rtmp("live", "", key).unwrap();
        let address = [192, 0, 2, last].into();
        door.publish(&Visit { address, name: &name, query: &query }, now).await
    };
    let right = format!("show?key={A}");
    for guess in 0..limits::GUESSES {
        // By parameter and by name alike.
        let key =
            if guess % 2 == 0 { format!("guess{guess}") } else { format!("show?key={guess}") };
        assert_eq!(attempt(1, &key, now).await, Err(Refusal::WrongKey));
    }
    let throttled = Refusal::Throttled(limits::GUESS_WAIT_FIRST);
    assert_eq!(attempt(1, &right, now).await, Err(throttled));
    assert_eq!(attempt(1, "guess", now).await, Err(throttled), "and it takes no longer for it");
    assert!(attempt(2, &right, now).await.is_ok());
    now += limits::GUESS_WAIT_FIRST;
    assert!(attempt(1, &right, now).await.is_ok());
    assert_eq!(attempt(1, "guess", now).await, Err(Refusal::WrongKey));
}
