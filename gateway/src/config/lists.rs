use super::list::{Field, List, ListOf};
use super::value::{Kind, Text};
use crate::auth::{PublishKey, Secret};
use crate::limits;
use crate::stream::Pattern;

/// Every list there is, in the order of the reference. A new one is a [`ListOf`] its type, here.
pub(super) static LISTS: &[&dyn List] = &[&PUBLISH_KEY];

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
            kind: Kind::Text(Text {
                expected: Secret::EXPECTED,
                set: |entry, text| Secret::parse(text).map(|key| entry.key = key).is_some(),
                get: |entry: &PublishKey| entry.key.reveal().to_owned(),
                secret: true,
            }),
            required: true,
            about: "The secret. Several entries may have the same one, for several streams.",
        },
        Field {
            name: "stream",
            kind: Kind::Text(Text {
                expected: Pattern::EXPECTED,
                set: |entry, text| Pattern::parse(text).map(|it| entry.stream = it).is_ok(),
                get: |entry: &PublishKey| entry.stream.to_string(),
                secret: false,
            }),
            required: true,
            about: "The stream that it may publish. A `*` in a part of the name stands for any \
                    characters there.",
        },
    ],
    entries: |config| &mut config.publish_keys,
    check: |_| Ok(()),
};
