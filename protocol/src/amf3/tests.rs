use super::*;
use crate::amf0;

fn read_all(body: &[u8]) -> Result<Vec<Value>, Error> {
    let mut reader = Reader::new(body);
    let mut values = Vec::new();
    while let Some(value) = reader.next()? {
        values.push(value);
    }
    Ok(values)
}

fn named(properties: &[(&str, Value)]) -> Properties {
    properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

/// AM-02: every marker is read or skipped.
#[test]
fn am_02_every_marker() {
    let one = || Value::Number(1.0);
    let table: &[(&[u8], Value)] = &[
        (b"\x00", Value::Undefined),
        (b"\x01", Value::Null),
        (b"\x02", Value::Boolean(false)),
        (b"\x03", Value::Boolean(true)),
        (b"\x04\x7f", Value::Number(127.0)),
        (b"\x04\x81\x00", Value::Number(128.0)),
        (b"\x04\xbf\xff\xff\xff", Value::Number(268_435_455.0)),
        (b"\x04\xff\xff\xff\xff", Value::Number(-1.0)),
        (b"\x04\xc0\x80\x80\x00", Value::Number(-268_435_456.0)),
        (b"\x05\x3f\xf0\0\0\0\0\0\0", one()),
        (b"\x06\x07abc", "abc".into()),
        (b"\x06\x01", "".into()),
        (b"\x06\x05\xc3\x28", "\u{fffd}(".into()),
        (b"\x07\x09<a/>", Value::Xml("<a/>".into())),
        (b"\x0b\x09<a/>", Value::Xml("<a/>".into())),
        (b"\x08\x01\x3f\xf0\0\0\0\0\0\0", Value::Date(1.0)),
        (b"\x08\x02", Value::Reference(1)),
        (b"\x09\x05\x01\x04\x01\x01", Value::StrictArray(vec![one(), Value::Null])),
        (
            b"\x09\x03\x03a\x03\x01\x04\x01",
            Value::EcmaArray(named(&[("a", true.into()), ("0", one())])),
        ),
        (b"\x09\x00", Value::Reference(0)),
        (b"\x0a\x0b\x01\x03a\x04\x01\x01", Value::Object(named(&[("a", one())]))),
        (b"\x0a\x13\x01\x03a\x04\x01", Value::Object(named(&[("a", one())]))),
        (
            b"\x0a\x1b\x03C\x03a\x04\x01\x03b\x01\x01",
            Value::TypedObject {
                class: "C".into(),
                properties: named(&[("a", one()), ("b", Value::Null)]),
            },
        ),
        (b"\x0a\x04", Value::Reference(2)),
        (b"\x0c\x07abc", Value::Unsupported),
        (b"\x0d\x05\x00\0\0\0\x01\0\0\0\x02", Value::Unsupported),
        (b"\x0e\x03\x01\0\0\0\x01", Value::Unsupported),
        (b"\x0f\x03\x00\0\0\0\0\0\0\0\0", Value::Unsupported),
        (b"\x10\x05\x00\x03C\x04\x01\x01", Value::StrictArray(vec![one(), Value::Null])),
        (b"\x11\x03\x00\x04\x01\x06\x03a", Value::Unsupported),
    ];
    for (body, value) in table {
        assert_eq!(read_all(body), Ok(vec![value.clone()]), "{body:02x?}");
        for cut in 1..body.len() {
            assert_eq!(read_all(&body[..cut]), Err(Error::Truncated), "{:02x?}", &body[..cut]);
        }
    }
}

#[test]
fn strings_and_traits_are_referred_to() {
    let body = b"\x06\x03a\x06\x00\x0a\x13\x03C\x00\x04\x01\x0a\x01\x04\x02\x06\x02";
    let object = |number: f64| Value::TypedObject {
        class: "C".into(),
        properties: named(&[("a", number.into())]),
    };
    let expected = ["a".into(), "a".into(), object(1.0), object(2.0), "C".into()];
    assert_eq!(read_all(body), Ok(expected.to_vec()));
    assert_eq!(read_all(b"\x06\x00"), Err(Error::BadReference));
    assert_eq!(read_all(b"\x0a\x01"), Err(Error::BadReference));
}

/// AM-01: depth, counts and what references multiply are bounded.
#[test]
fn am_01_hostile_bodies() {
    let nested_arrays = b"\x09\x03\x01".repeat(70_000);
    let nested_objects = b"\x0a\x0b\x01\x03a".repeat(70_000);
    let nested_vectors = b"\x10\x03\x00\x01".repeat(70_000);
    let nested_dictionaries = b"\x11\x03\x00".repeat(70_000);
    let many = [&b"\x09\xff\xff\xff\xff\x01"[..], &[1; MAX_ELEMENTS]].concat();
    let many_names = [&b"\x0a\xff\xff\xff\xf3\x01"[..], &[1; MAX_ELEMENTS]].concat();
    let long = [&b"\x06\x83\xff\x7f"[..], &[b'x'; 0x7fff]].concat();
    let multiplied = [&long[..], &b"\x06\x00".repeat(1000)].concat();
    let table: &[(&[u8], Error)] = &[
        (&nested_arrays, Error::TooDeep),
        (&nested_objects, Error::TooDeep),
        (&nested_vectors, Error::TooDeep),
        (&nested_dictionaries, Error::TooDeep),
        (&many, Error::TooManyElements),
        (&many_names, Error::TooManyElements),
        (&multiplied, Error::TooManyElements),
        (b"\x09\xff\xff\xff\xff\x01", Error::Truncated),
        (b"\x0c\xff\xff\xff\xff", Error::Truncated),
        (b"\x0f\xff\xff\xff\xff\x00", Error::Truncated),
        (b"\x10\xff\xff\xff\xff\x00\x01", Error::Truncated),
        (b"\x11\xff\xff\xff\xff\x00", Error::Truncated),
        (b"\x0a\x07\x03C\x01", Error::Externalizable),
        (b"\x12", Error::UnknownMarker(0x12)),
        (b"\xff", Error::UnknownMarker(0xff)),
    ];
    for (body, error) in table {
        assert_eq!(read_all(body), Err(*error), "{:02x?}", &body[..body.len().min(16)]);
    }
}

/// A value of AMF0 may be one of AMF3; depth and elements count on.
#[test]
fn amf0_switches_to_amf3() {
    let body = b"\x02\0\x01a\x11\x0a\x0b\x01\x03b\x04\x05\x01\x11\x06\x00\x05";
    let mut reader = amf0::Reader::new(body);
    let mut values = Vec::new();
    while let Some(value) = reader.next().unwrap() {
        values.push(value);
    }
    let object = Value::Object(named(&[("b", Value::Number(5.0))]));
    assert_eq!(values, ["a".into(), object, "b".into(), Value::Null]);

    let nested = |depth: usize| {
        [&b"\x0a\0\0\0\x01".repeat(depth)[..], b"\x11", &b"\x09\x03\x01".repeat(8), b"\x01"]
            .concat()
    };
    assert!(amf0::Reader::new(&nested(MAX_DEPTH - 8)).next().is_ok());
    assert_eq!(amf0::Reader::new(&nested(MAX_DEPTH - 7)).next(), Err(Error::TooDeep));
}
