use std::ops::RangeInclusive;
use std::time::Duration;

use super::list::{Field, List, ListOf};
use super::text::TextIn;
use super::value::{Choice, Kind};
use crate::auth::PublishKey;
use crate::limits;
use crate::relay::rules::{PullRule, PushRule, When};

/// Every list there is, in the order of the reference. A new one is a [`ListOf`] its type, here.
pub(super) static LISTS: &[&dyn List] = &[&PUBLISH_KEY, &PUSH, &PULL];

static PUBLISH_KEY: ListOf<PublishKey> = ListOf {
    name: "publish_key",
    about: "Who may publish. Without any of these everybody may; with one or more, only who sends \
            the key of one that names the stream. Publishers send it behind the stream's name \
            (`live/show?key=…`, also `?token=…`) or in the query of the server's address; where \
            `stream` is one name, they can also send it in place of the last part of the name, so \
            that the stream key in the encoder is nothing but the secret.",
    most: limits::PUBLISH_KEYS,
    fields: &[
        Field {
            name: "key",
            kind: Kind::Text(&TextIn(|entry: &mut PublishKey| &mut entry.key)),
            required: true,
            about: "The secret. Several entries may have the same one, for several streams.",
        },
        Field {
            name: "stream",
            kind: Kind::Text(&TextIn(|entry: &mut PublishKey| &mut entry.stream)),
            required: true,
            about: "The stream that it may publish. A `*` in a part of the name stands for any \
                    characters there.",
        },
    ],
    entries: |config| &mut config.publish_keys,
    check: |_| Ok(()),
};

static PUSH: ListOf<PushRule> = ListOf {
    name: "push",
    about: "Streams that are sent on to another RTMP server, YouTube or Twitch for example, while \
            they are live: one connection for each entry that names the stream. One that breaks is \
            made again, after one second at first and a minute at last. A server that is too slow \
            misses pictures, as a slow player does, and holds up nobody.",
    most: limits::PUSH_RULES,
    fields: &[
        Field {
            name: "stream",
            kind: Kind::Text(&TextIn(|entry: &mut PushRule| &mut entry.stream)),
            required: true,
            about: "What is sent.",
        },
        Field {
            name: "url",
            kind: Kind::Text(&TextIn(|entry: &mut PushRule| &mut entry.url)),
            required: true,
            about: "Where it is published, with the stream key of that server as the last part.",
        },
        Field {
            name: "trust",
            kind: Kind::Text(&TextIn(|entry: &mut PushRule| &mut entry.trust)),
            required: false,
            about: TRUST,
        },
    ],
    entries: |config| &mut config.relays.push,
    check: |_| Ok(()),
};

static PULL: ListOf<PullRule> = ListOf {
    name: "pull",
    about: "Streams that are fetched from another RTMP server and published here under their own \
            names. A publisher that comes here by itself wins over a pull; the pull goes on when it \
            has left. Of several entries that name a stream, the first counts.",
    most: limits::PULL_RULES,
    fields: &[
        Field {
            name: "stream",
            kind: Kind::Text(&TextIn(|entry: &mut PullRule| &mut entry.stream)),
            required: true,
            about: "What it is called here.",
        },
        Field {
            name: "url",
            kind: Kind::Text(&TextIn(|entry: &mut PullRule| &mut entry.url)),
            required: true,
            about: "Where it is played from.",
        },
        Field {
            name: "trust",
            kind: Kind::Text(&TextIn(|entry: &mut PullRule| &mut entry.trust)),
            required: false,
            about: TRUST,
        },
        Field {
            name: "when",
            kind: Kind::Choice(Choice {
                words: &When::NAMES,
                set: |entry, place| entry.when = When::ALL[place],
                get: |entry: &PullRule| entry.when as usize,
            }),
            required: false,
            about: "`demand` fetches a stream when the first player asks for it, who then waits up \
                    to 5 s; `always` fetches one named stream from the start of the gateway.",
        },
        Field {
            name: "linger",
            kind: Kind::Duration(LINGER, |entry| &mut entry.linger),
            required: false,
            about: "How long a stream that was fetched on demand stays without a player. A player \
                    that is not connected counts as gone 10 s after its last request, or two target \
                    durations if that is longer.",
        },
    ],
    entries: |config| &mut config.relays.pull,
    check: |rule| {
        let sound = rule.when == When::Demand || rule.stream.single().is_some();
        let sentence = "when = \"always\" takes one stream, without *: nobody asks for the others";
        if sound { Ok(()) } else { Err(sentence.to_owned()) }
    },
};

const TRUST: &str = "Whose certificate is believed over rtmps://: `machine` for the authorities that \
                     this machine trusts, the path of a PEM file for those in it, or `anyone`.";

const LINGER: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
