//! As much of an HLS playlist as a client needs to follow it. Not a validator: see `validate`.

/// A media playlist, or a multivariant one (which has variants and no segments).
#[derive(Clone, Debug, Default)]
pub struct Playlist {
    pub variants: Vec<String>,
    /// URIs of `EXT-X-MEDIA` renditions.
    pub renditions: Vec<String>,
    pub target_duration: f64,
    pub part_target: Option<f64>,
    pub part_hold_back: Option<f64>,
    pub can_block_reload: bool,
    pub media_sequence: u64,
    pub discontinuity_sequence: u64,
    pub segments: Vec<Segment>,
    /// Parts after the last whole segment.
    pub open_parts: Vec<Part>,
    pub preload_hint: Option<String>,
    pub ended: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Segment {
    pub uri: String,
    pub duration: f64,
    pub map: Option<String>,
    pub discontinuity: bool,
    pub parts: Vec<Part>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    pub uri: String,
    pub duration: f64,
    pub independent: bool,
}

impl Playlist {
    /// Reads a playlist; what it does not know, it skips.
    ///
    /// # Panics
    /// When the text is no playlist at all.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        assert!(text.starts_with("#EXTM3U"), "not a playlist:\n{text}");
        let mut playlist = Self::default();
        let mut next = Segment::default();
        let mut variant = false;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let Some(tag) = line.strip_prefix('#') else {
                if std::mem::take(&mut variant) {
                    playlist.variants.push(line.to_owned());
                    continue;
                }
                let following = Segment { map: next.map.clone(), ..Segment::default() };
                let segment = std::mem::replace(&mut next, following);
                playlist.segments.push(Segment { uri: line.to_owned(), ..segment });
                continue;
            };
            let (tag, value) = tag.split_once(':').unwrap_or((tag, ""));
            match tag {
                "EXT-X-STREAM-INF" => variant = true,
                "EXTINF" => next.duration = number(value.split(',').next()),
                "EXT-X-DISCONTINUITY" => next.discontinuity = true,
                "EXT-X-MAP" => next.map = attribute(value, "URI"),
                "EXT-X-PART" => next.parts.push(Part {
                    uri: attribute(value, "URI").unwrap_or_default(),
                    duration: number(attribute(value, "DURATION").as_deref()),
                    independent: attribute(value, "INDEPENDENT").as_deref() == Some("YES"),
                }),
                _ => playlist.header(tag, value),
            }
        }
        playlist.open_parts = next.parts;
        playlist
    }

    fn header(&mut self, tag: &str, value: &str) {
        match tag {
            "EXT-X-TARGETDURATION" => self.target_duration = number(Some(value)),
            "EXT-X-MEDIA-SEQUENCE" => self.media_sequence = value.parse().unwrap_or(0),
            "EXT-X-DISCONTINUITY-SEQUENCE" => {
                self.discontinuity_sequence = value.parse().unwrap_or(0);
            }
            "EXT-X-ENDLIST" => self.ended = true,
            "EXT-X-MEDIA" => self.renditions.extend(attribute(value, "URI")),
            "EXT-X-PRELOAD-HINT" => self.preload_hint = attribute(value, "URI"),
            "EXT-X-PART-INF" => {
                self.part_target = attribute(value, "PART-TARGET").and_then(|t| t.parse().ok());
            }
            "EXT-X-SERVER-CONTROL" => {
                let can = attribute(value, "CAN-BLOCK-RELOAD");
                self.can_block_reload = can.as_deref() == Some("YES");
                let hold = attribute(value, "PART-HOLD-BACK");
                self.part_hold_back = hold.and_then(|seconds| seconds.parse().ok());
            }
            _ => {}
        }
    }

    /// How many listed segments begin with a discontinuity.
    #[must_use]
    pub fn discontinuities(&self) -> usize {
        self.segments.iter().filter(|segment| segment.discontinuity).count()
    }

    /// The media sequence number and the part that this playlist does not have yet.
    #[must_use]
    pub fn next_part(&self) -> (u64, u64) {
        (self.media_sequence + self.segments.len() as u64, self.open_parts.len() as u64)
    }
}

/// The value of an attribute, without its quotes.
#[must_use]
pub fn attribute(list: &str, name: &str) -> Option<String> {
    let mut rest = list;
    loop {
        let (key, after) = rest.split_once('=')?;
        let (value, following) = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, after) = quoted.split_once('"')?;
                (value, after.strip_prefix(',').unwrap_or(after))
            }
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if key.trim() == name {
            return Some(value.to_owned());
        }
        rest = following;
    }
}

fn number(text: Option<&str>) -> f64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

/// The absolute URL of `reference` as it stands in the document at `base` (RFC 3986 §5.2, as far as
/// playlists need it: absolute URLs, absolute paths and relative paths without dot segments).
#[must_use]
pub fn resolve(base: &str, reference: &str) -> String {
    if reference.contains("://") {
        return reference.to_owned();
    }
    let base = base.split(['?', '#']).next().unwrap_or(base);
    let authority = base.find("://").map_or(0, |at| at + 3);
    let root = base[authority..].find('/').map_or(base.len(), |at| authority + at);
    if reference.starts_with('/') {
        return format!("{}{reference}", &base[..root]);
    }
    let directory = base.rfind('/').filter(|at| *at >= root).map_or(base.len(), |at| at);
    format!("{}/{reference}", &base[..directory])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: &str = "#EXTM3U\n#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2\n\
        #EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.6\n\
        #EXT-X-PART-INF:PART-TARGET=0.2\n#EXT-X-MEDIA-SEQUENCE:7\n#EXT-X-MAP:URI=\"a/init.mp4\"\n\
        #EXT-X-PART:DURATION=0.2,URI=\"a/7.0.m4s\",INDEPENDENT=YES\n#EXTINF:2.00000,\na/7.m4s\n\
        #EXT-X-PART:DURATION=0.2,URI=\"a/8.0.m4s\"\n\
        #EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"a/8.1.m4s\"\n";

    #[test]
    fn a_live_playlist_is_read() {
        let playlist = Playlist::parse(LIVE);
        assert_eq!(playlist.next_part(), (8, 1));
        assert_eq!(playlist.part_target, Some(0.2));
        assert_eq!(playlist.part_hold_back, Some(0.6));
        assert!(playlist.can_block_reload && !playlist.ended);
        let segment = &playlist.segments[0];
        assert_eq!((segment.uri.as_str(), segment.duration), ("a/7.m4s", 2.0));
        assert_eq!(segment.map.as_deref(), Some("a/init.mp4"));
        assert!(segment.parts[0].independent && !playlist.open_parts[0].independent);
        assert_eq!(playlist.preload_hint.as_deref(), Some("a/8.1.m4s"));
    }

    #[test]
    fn references_resolve_against_the_playlist() {
        let base = "http://h:1/live/name/index.m3u8?token=a/b";
        assert_eq!(resolve(base, "v/1.ts"), "http://h:1/live/name/v/1.ts");
        assert_eq!(resolve(base, "/x.ts?a=b"), "http://h:1/x.ts?a=b");
        assert_eq!(resolve(base, "http://o/x.ts"), "http://o/x.ts");
        assert_eq!(resolve("http://h:1", "x.ts"), "http://h:1/x.ts");
    }
}
