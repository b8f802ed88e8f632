//! Files that outputs are compared with; `UPDATE_GOLDENS=1` writes them anew.

use std::path::Path;

use weir_hls::{Config, Format};
use weir_protocol::media::Ticks;

use crate::feed::Feed;

pub fn check(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{name} differs; UPDATE_GOLDENS=1 accepts it");
}

#[test]
fn playlists() {
    let config = Config {
        prefix: "r4nd0m".into(),
        ts_base: "name/".into(),
        first_msn: 50,
        window: 15,
        ..Config::default()
    };
    let first = Feed { seconds: 20, reorder: true, ..Feed::default() };
    let mut packager = first.packaged(config);
    packager.discontinuity();
    let second = Feed { seconds: 20, gop: 75, ..first };
    let until = Ticks::from_ms(16_500);
    second.units().iter().filter(|unit| unit.dts < until).for_each(|unit| packager.push(unit));

    let live = packager.window();
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    check("live.m3u8", &text(live.media_playlist(Format::Fmp4)));
    check("delta.m3u8", &text(live.delta_playlist()));
    check("ts.m3u8", &text(live.media_playlist(Format::Ts)));
    check("multivariant.m3u8", &text(live.multivariant("media.m3u8").unwrap()));
    packager.end();
    check("ended.m3u8", &text(packager.window().media_playlist(Format::Fmp4)));
}
