//! Commands: a name, a transaction, a command object and arguments in AMF0 (RTMP 1.0 §7.2).

use crate::amf0::{self, Value};
use crate::rtmp::message::kind;

#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub name: String,
    /// 0 asks for no answer. Whatever number it is, the answer repeats it.
    pub transaction: f64,
    /// `Null` except in `connect` and its answer.
    pub object: Value,
    pub arguments: Vec<Value>,
}

impl Command {
    /// A command that asks for no answer.
    #[must_use]
    pub fn new(name: &str, arguments: Vec<Value>) -> Self {
        Self { name: name.to_owned(), transaction: 0.0, object: Value::Null, arguments }
    }

    /// `onStatus` of a message stream (RTMP 1.0 §7.2.2).
    #[must_use]
    pub fn on_status(level: &str, code: &str, description: &str) -> Self {
        Self::new("onStatus", vec![information(level, code, description)])
    }

    /// The answer to `transaction`.
    #[must_use]
    pub fn result(transaction: f64, object: Value, argument: Value) -> Self {
        Self { name: "_result".to_owned(), transaction, object, arguments: vec![argument] }
    }

    /// The answer that `transaction` failed.
    #[must_use]
    pub fn error(transaction: f64, code: &str, description: &str) -> Self {
        let arguments = vec![information("error", code, description)];
        Self { name: "_error".to_owned(), transaction, object: Value::Null, arguments }
    }

    /// Reads the body of a command message; `None` if it does not begin with a name.
    ///
    /// Values that cannot be read, and all behind them, are left out, as if the peer had said less.
    ///
    /// # Errors
    /// When the name cannot be read, or a bound of AMF0 is exceeded.
    pub fn parse(message_kind: u8, body: &[u8]) -> Result<Option<Self>, amf0::Error> {
        let mut reader = amf0::Reader::new(amf0_part(message_kind, kind::COMMAND_AMF3, body));
        let Some(Value::String(name)) = reader.next()? else { return Ok(None) };
        let mut values = Vec::new();
        loop {
            match reader.next() {
                Ok(Some(value)) => values.push(value),
                Ok(None) => break,
                Err(error @ (amf0::Error::TooDeep | amf0::Error::TooManyElements)) => {
                    return Err(error);
                }
                Err(_) => break,
            }
        }
        let mut values = values.into_iter();
        let transaction = values.next().and_then(|value| value.as_number()).unwrap_or_default();
        let object = values.next().unwrap_or(Value::Null);
        Ok(Some(Self { name, transaction, object, arguments: values.collect() }))
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        amf0::encode(&self.name.as_str().into(), &mut body);
        amf0::encode(&self.transaction.into(), &mut body);
        amf0::encode(&self.object, &mut body);
        self.arguments.iter().for_each(|argument| amf0::encode(argument, &mut body));
        body
    }

    /// An argument that is text, else nothing.
    #[must_use]
    pub fn text(&self, index: usize) -> Option<&str> {
        self.arguments.get(index)?.as_str()
    }
}

/// The information object of answers and `onStatus`.
#[must_use]
pub fn information(level: &str, code: &str, description: &str) -> Value {
    object([("level", level.into()), ("code", code.into()), ("description", description.into())])
}

#[must_use]
pub fn object<const N: usize>(properties: [(&str, Value); N]) -> Value {
    Value::Object(properties.map(|(name, value)| (name.to_owned(), value)).into())
}

/// The AMF0 of a body. Messages of the AMF3 types hold a 0 byte and then AMF0 values, each of which may
/// say that it is AMF3 (RTMP 1.0 §7.1.1).
#[must_use]
pub fn amf0_part(message_kind: u8, amf3_kind: u8, body: &[u8]) -> &[u8] {
    match body {
        [0, rest @ ..] if message_kind == amf3_kind => rest,
        _ => body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_survives_the_wire_in_both_message_types() {
        let command = Command {
            name: "connect".to_owned(),
            transaction: 1.5,
            object: object([("app", "live".into())]),
            arguments: vec![Value::Null, "x".into()],
        };
        let body = command.encode();
        assert_eq!(Command::parse(kind::COMMAND, &body), Ok(Some(command.clone())));
        let amf3 = [&[0][..], &body].concat();
        assert_eq!(Command::parse(kind::COMMAND_AMF3, &amf3), Ok(Some(command)));
    }

    /// AM-01: what cannot be a command ends the session, and no count is believed.
    #[test]
    fn am_01_hostile_bodies() {
        let start = {
            let mut body = Vec::new();
            amf0::encode(&"connect".into(), &mut body);
            amf0::encode(&1.0.into(), &mut body);
            body
        };
        let nested_arrays = [0x0a, 0, 0, 0, 1].repeat(70_000);
        let nested_objects = [0x03, 0, 1, b'a'].repeat(70_000);
        let endless = [8, 0xff, 0xff, 0xff, 0xff].repeat(1 << 20);
        for tail in [nested_arrays, nested_objects, endless] {
            let body = [&start[..], &tail].concat();
            Command::parse(kind::COMMAND, &body).unwrap_err();
        }
        let body = [&start[..], &[0x0a, 0xff, 0xff, 0xff, 0xff]].concat();
        let command = Command::parse(kind::COMMAND, &body).unwrap().unwrap();
        assert_eq!(command.object, Value::StrictArray(vec![]));
        assert_eq!(Command::parse(kind::COMMAND, &[]), Ok(None));
        assert_eq!(Command::parse(kind::COMMAND, &[5]), Ok(None));
    }

    /// AM-02: a command that nobody needs does not cost the session.
    #[test]
    fn am_02_unreadable_transactions_and_objects_are_left_out() {
        let name = [2, 0, 4, b'n', b'a', b'm', b'e'];
        let number = [0, 0x3f, 0xf0, 0, 0, 0, 0, 0, 0];
        let tails: [(&[u8], f64); 4] =
            [(&[0x12], 0.0), (&[0, 0x3f], 0.0), (&[], 0.0), (&number, 1.0)];
        for (transaction, expected) in tails {
            for object in [&[][..], &[0x12], &[2, 0, 9, b'c'], &[0x11, 0x0a, 0x07, 3, b'x']] {
                let body = [&name[..], transaction, object].concat();
                let command = Command::parse(kind::COMMAND, &body).unwrap().unwrap();
                assert_eq!((command.transaction, command.object), (expected, Value::Null));
            }
        }
    }

    #[test]
    fn unreadable_arguments_are_left_out() {
        let mut body = Command::new("publish", vec!["k".into()]).encode();
        body.extend([0x11, 0x0a, 0xff]);
        let command = Command::parse(kind::COMMAND, &body).unwrap().unwrap();
        assert_eq!(command.arguments, ["k".into()]);
    }
}
