//! AMF0 values as a script writes them.

use weir_protocol::amf0::Value;

use super::number::{Env, Number};
use super::scan::{Scan, Text};

/// A value with names in it that are not resolved yet.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Value(Value),
    Number(Number),
    Text(Text),
    Object(Vec<(String, Literal)>),
    Ecma(Vec<(String, Literal)>),
    Array(Vec<Literal>),
}

impl Literal {
    #[must_use]
    pub fn value(&self, env: &Env) -> Value {
        let properties = |all: &[(String, Self)]| {
            all.iter().map(|(name, literal)| (name.clone(), literal.value(env))).collect()
        };
        match self {
            Self::Value(value) => value.clone(),
            Self::Number(number) => Value::Number(number.value(env) as f64),
            Self::Text(text) => Value::String(text.render(env)),
            Self::Object(all) => Value::Object(properties(all)),
            Self::Ecma(all) => Value::EcmaArray(properties(all)),
            Self::Array(all) => {
                Value::StrictArray(all.iter().map(|literal| literal.value(env)).collect())
            }
        }
    }
}

/// Values, with or without commas between them, up to `end` or the line's end.
///
/// # Errors
/// When one of them is none.
pub fn literals(scan: &mut Scan, end: Option<char>) -> Result<Vec<Literal>, String> {
    let mut all = Vec::new();
    while !scan.is_empty() && (end.is_none() || scan.peek() != end) {
        all.push(literal(scan)?);
        scan.eat(",");
    }
    Ok(all)
}

/// # Errors
/// When no value is next.
pub fn literal(scan: &mut Scan) -> Result<Literal, String> {
    if scan.peek() == Some('"') {
        return scan.quoted().map(Literal::Text);
    }
    if scan.eat("[") {
        let all = literals(scan, Some(']'))?;
        scan.expect("]")?;
        return Ok(Literal::Array(all));
    }
    if scan.peek() == Some('{') {
        return properties(scan).map(Literal::Object);
    }
    let value = match scan.word() {
        "true" => Value::Boolean(true),
        "false" => Value::Boolean(false),
        "null" => Value::Null,
        "undefined" => Value::Undefined,
        "unsupported" => Value::Unsupported,
        "ecma" => return properties(scan).map(Literal::Ecma),
        "date" => {
            scan.expect("(")?;
            let ms = scan.word().parse().map_err(|_| "date(MILLISECONDS)".to_owned())?;
            scan.expect(")")?;
            Value::Date(ms)
        }
        word => match word.parse::<f64>() {
            Ok(number) => Value::Number(number),
            Err(_) => return Number::parse(word).map(Literal::Number),
        },
    };
    Ok(Literal::Value(value))
}

fn properties(scan: &mut Scan) -> Result<Vec<(String, Literal)>, String> {
    scan.expect("{")?;
    let mut all = Vec::new();
    while !scan.eat("}") {
        let name = scan.word();
        scan.expect(":")?;
        all.push((name.to_owned(), literal(scan)?));
        scan.eat(",");
    }
    Ok(all)
}
