//! What a request's path asks for. Names come from the route, never from file-name patterns.

use weir_protocol::stream_name::StreamName;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// `/`
    Home,
    /// `/assets/FILE`
    Asset(String),
    /// `/app/name`: the page that plays the stream.
    Player(StreamName),
    /// `/app/name/index.m3u8`: multivariant playlist.
    Multivariant(StreamName),
    /// `/app/name/media.m3u8`: fMP4 media playlist with parts.
    Media(StreamName),
    /// `/app/name.m3u8`: TS media playlist.
    TsMedia(StreamName),
    /// `/app/name/PREFIX/FILE`: segment, part or init segment.
    Resource {
        name: StreamName,
        uri: String,
    },
    /// `/app/name.flv`: live HTTP-FLV.
    Flv(StreamName),
    NotFound,
}

impl Route {
    /// `path` is the request target's path, as it came: escapes are decoded by the name's parser.
    pub fn parse(path: &str) -> Self {
        let Some(path) = path.strip_prefix('/') else { return Self::NotFound };
        if path.is_empty() {
            return Self::Home;
        }
        if let Some(file) = path.strip_prefix("assets/") {
            return Self::Asset(file.to_owned());
        }
        Self::of_stream(path).unwrap_or(Self::NotFound)
    }

    fn of_stream(path: &str) -> Option<Self> {
        let (parent, file) = path.rsplit_once('/')?;
        let parent_name = || StreamName::from_path(parent).ok();
        let stem = |ending| {
            let stem = path.strip_suffix(ending)?;
            // `/live/.m3u8` names nothing.
            (!stem.ends_with('/')).then(|| StreamName::from_path(stem).ok()).flatten()
        };
        if let Some(resource) = Self::resource(parent, file) {
            return Some(resource);
        }
        match file {
            "index.m3u8" if parent_name().is_some() => parent_name().map(Self::Multivariant),
            "media.m3u8" if parent_name().is_some() => parent_name().map(Self::Media),
            _ if file.ends_with(".m3u8") => stem(".m3u8").map(Self::TsMedia),
            _ if file.ends_with(".flv") => stem(".flv").map(Self::Flv),
            _ => StreamName::from_path(path).ok().map(Self::Player),
        }
    }

    fn resource(parent: &str, file: &str) -> Option<Self> {
        let (name, prefix) = parent.rsplit_once('/')?;
        let is_prefix = prefix.len() == crate::core::PREFIX_LEN && prefix.starts_with('~');
        if !is_prefix || file.is_empty() {
            return None;
        }
        let name = StreamName::from_path(name).ok()?;
        Some(Self::Resource { name, uri: format!("{prefix}/{file}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let name = |text: &str| StreamName::from_path(text).unwrap();
        let prefix = "~0123456789abcdef";
        let cases = [
            ("/", Route::Home),
            ("", Route::NotFound),
            ("//", Route::NotFound),
            ("/live", Route::NotFound),
            ("/live/", Route::NotFound),
            ("/live/.m3u8", Route::NotFound),
            ("/live/../../etc/passwd", Route::NotFound),
            ("/live/%2e%2e/passwd", Route::NotFound),
            ("/live/%zz", Route::NotFound),
            ("/live/a\0b", Route::NotFound),
            ("/assets/player.js", Route::Asset("player.js".to_owned())),
            ("/live/k", Route::Player(name("live/k"))),
            ("/live/k/", Route::Player(name("live/k"))),
            ("/live//k", Route::Player(name("live/k"))),
            ("/live/k.flv", Route::Flv(name("live/k"))),
            ("/live/k.m3u8", Route::TsMedia(name("live/k"))),
            ("/live/k/index.m3u8", Route::Multivariant(name("live/k"))),
            ("/live/a.b-c-1/index.m3u8", Route::Multivariant(name("live/a.b-c-1"))),
            ("/live/k.m3u8/index.m3u8", Route::Multivariant(name("live/k.m3u8"))),
            ("/live/index.m3u8", Route::TsMedia(name("live/index"))),
            ("/live/index/index.m3u8", Route::Multivariant(name("live/index"))),
            ("/a/b/c/media.m3u8", Route::Media(name("a/b/c"))),
            ("/live/k-1-2/seg-3.ts", Route::Player(name("live/k-1-2/seg-3.ts"))),
        ];
        for (path, route) in cases {
            assert_eq!(Route::parse(path), route, "{path}");
        }
        let route = Route::parse(&format!("/live/k/{prefix}/7.2.m4s"));
        let uri = format!("{prefix}/7.2.m4s");
        assert_eq!(route, Route::Resource { name: name("live/k"), uri });
    }
}
