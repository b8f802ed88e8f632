use super::*;

fn read_all(body: &[u8]) -> Result<Vec<Value>, Error> {
    let mut reader = Reader::new(body);
    let mut values = Vec::new();
    while let Some(value) = reader.next()? {
        values.push(value);
    }
    Ok(values)
}

fn text(text: &str) -> Value {
    Value::from(text)
}

fn object(properties: &[(&str, Value)]) -> Properties {
    properties.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}

#[test]
fn every_value_comes_back_as_it_was_written() {
    let inner = object(&[("a", Value::Null), ("", Value::Undefined), ("ü", text("ß"))]);
    let values = [
        Value::Number(-1.5),
        Value::Boolean(true),
        text(""),
        text(&"x".repeat(65_536)),
        Value::Object(inner.clone()),
        Value::EcmaArray(inner.clone()),
        Value::TypedObject { class: "C".into(), properties: inner },
        Value::StrictArray(vec![Value::Reference(7), Value::Unsupported, Value::Null]),
        Value::Date(1.0e12),
        Value::Xml("<a/>".into()),
    ];
    assert_eq!(read_all(&encode_all(&values)), Ok(values.to_vec()));
}

#[test]
fn odd_but_harmless_bodies_are_read() {
    let one = object(&[("w", Value::Number(0.0))]);
    let table: &[(&[u8], Value)] = &[
        (b"\x08\0\0\0\0\0\x01w\0\0\0\0\0\0\0\0\0\0\0\x09", Value::EcmaArray(one.clone())),
        (b"\x08\xff\xff\xff\xff\0\x01w\0\0\0\0\0\0\0\0\0\0\0\x09", Value::EcmaArray(one.clone())),
        (b"\x08\0\0\0\x01\0\x01w\0\0\0\0\0\0\0\0\0", Value::EcmaArray(one.clone())),
        (b"\x03\0\x01w\0\0\0\0\0\0\0\0\0", Value::Object(one)),
        (b"\x0a\xff\xff\xff\xff", Value::StrictArray(vec![])),
        (b"\x0a\xff\xff\xff\xff\x05", Value::StrictArray(vec![Value::Null])),
        (b"\x01\x07", Value::Boolean(true)),
        (b"\x02\0\x02\xc3\x28", text("\u{fffd}(")),
        (b"\x04", Value::Unsupported),
        (b"\x0e", Value::Unsupported),
        (b"\x0b\0\0\0\0\0\0\0\0\x01\x02", Value::Date(0.0)),
    ];
    for (body, value) in table {
        assert_eq!(read_all(body), Ok(vec![value.clone()]), "{body:02x?}");
    }
}

#[test]
fn bad_bodies_end_with_the_right_error() {
    let deep_arrays = b"\x0a\0\0\0\x01".repeat(70_000);
    let deep_objects = b"\x03\0\x01a".repeat(70_000);
    let many = [&b"\x0a\xff\xff\xff\xff"[..], &[5; MAX_ELEMENTS]].concat();
    let table: &[(&[u8], Error)] = &[
        (&deep_arrays, Error::TooDeep),
        (&deep_objects, Error::TooDeep),
        (&many, Error::TooManyElements),
        (b"\0\0\0", Error::Truncated),
        (b"\x01", Error::Truncated),
        (b"\x02\0\x05abc", Error::Truncated),
        (b"\x0c\xff\xff\xff\xffabc", Error::Truncated),
        (b"\x08\0\0", Error::Truncated),
        (b"\x03\0", Error::Truncated),
        (b"\x03\0\x01a", Error::Truncated),
        (b"\x0b\0\0\0\0\0\0\0\0", Error::Truncated),
        (b"\x09", Error::UnknownMarker(9)),
        (b"\x11", Error::Truncated),
        (b"\x12", Error::UnknownMarker(0x12)),
    ];
    for (body, error) in table {
        assert_eq!(read_all(body), Err(*error), "{:02x?}", &body[..body.len().min(16)]);
    }
}

#[test]
fn nesting_up_to_the_bound_is_read() {
    let nested = |depth: usize| b"\x0a\0\0\0\x01".repeat(depth);
    assert!(read_all(&nested(MAX_DEPTH)).is_ok());
    assert_eq!(read_all(&nested(MAX_DEPTH + 1)), Err(Error::TooDeep));
}

#[test]
fn a_lenient_reader_keeps_what_stands_before_the_damage() {
    let mut body = encode_all(&[Value::EcmaArray(object(&[("width", Value::Number(1280.0))]))]);
    body.truncate(body.len() - 3);
    body.extend(b"\0\x01k\x03\0\x01x\x12\0\x01h\x05");
    let mut reader = Reader::lenient(&body);
    let value = reader.next().unwrap().unwrap();
    assert_eq!(value.get("width"), Some(&Value::Number(1280.0)));
    assert_eq!(value.get("k"), Some(&Value::Object(vec![])));
    assert_eq!(reader.next(), Ok(None));
}

#[test]
fn the_last_of_doubled_names_counts() {
    let value = Value::Object(object(&[("a", Value::Number(1.0)), ("a", text("b"))]));
    assert_eq!(value.get("a").and_then(Value::as_str), Some("b"));
    assert_eq!(value.get("b"), None);
    assert_eq!(Value::Null.get("a"), None);
}

#[test]
fn names_that_do_not_fit_are_left_out() {
    let value = Value::Object(object(&[(&"n".repeat(65_536), Value::Null), ("a", Value::Null)]));
    let expected = Value::Object(object(&[("a", Value::Null)]));
    assert_eq!(read_all(&encode_all(&[value])), Ok(vec![expected]));
}
