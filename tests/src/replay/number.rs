//! Numbers of a script: `12`, `0x1f`, and sums, products and remainders with `$n` and `$c`.

/// What the names in a script stand for at this moment.
#[derive(Clone, Debug, Default)]
pub struct Env {
    pub app: String,
    pub key: String,
    /// `rtmp://HOST:PORT/APP`.
    pub url: String,
    /// The turn of the innermost `repeat`, from 0.
    pub turn: u64,
    /// The connection, from 0.
    pub connection: u64,
}

/// Terms to be added, each of factors; almost always one of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(Vec<Term>);

type Term = Vec<(Operator, Factor)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Times,
    Modulo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Factor {
    Value(u64),
    Turn,
    Connection,
}

impl Number {
    #[must_use]
    pub fn of(value: u64) -> Self {
        Self(vec![vec![(Operator::Times, Factor::Value(value))]])
    }

    /// # Errors
    /// When `text` is no number.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.split('+').map(term).collect::<Result<_, _>>().map(Self)
    }

    /// The value, modulo 2^64.
    #[must_use]
    pub fn value(&self, env: &Env) -> u64 {
        let term = |term: &Term| {
            term.iter().fold(1_u64, |product, (operator, factor)| {
                let factor = match factor {
                    Factor::Value(value) => *value,
                    Factor::Turn => env.turn,
                    Factor::Connection => env.connection,
                };
                match operator {
                    Operator::Times => product.wrapping_mul(factor),
                    Operator::Modulo => product.checked_rem(factor).unwrap_or_default(),
                }
            })
        };
        self.0.iter().map(term).fold(0, u64::wrapping_add)
    }

    /// The value, modulo 2^32.
    #[must_use]
    pub fn u32(&self, env: &Env) -> u32 {
        self.value(env) as u32
    }
}

fn term(text: &str) -> Result<Term, String> {
    let mut term = Vec::new();
    let mut operator = Operator::Times;
    let mut rest = text;
    loop {
        let end = rest.find(['*', '%']).unwrap_or(rest.len());
        term.push((operator, factor(&rest[..end])?));
        operator = match rest[end..].chars().next() {
            None => return Ok(term),
            Some('%') => Operator::Modulo,
            Some(_) => Operator::Times,
        };
        rest = &rest[end + 1..];
    }
}

fn factor(text: &str) -> Result<Factor, String> {
    let value = match text {
        "$n" => return Ok(Factor::Turn),
        "$c" => return Ok(Factor::Connection),
        _ => match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        },
    };
    value.map(Factor::Value).map_err(|_| format!("\"{text}\" is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_with_their_turn() {
        let env = Env { turn: 7, connection: 2, ..Env::default() };
        let value = |text: &str| Number::parse(text).map(|number| number.value(&env));
        assert_eq!(value("12"), Ok(12));
        assert_eq!(value("0xffffff+1"), Ok(1 << 24));
        assert_eq!(value("3+$n%4*10+$c"), Ok(35));
        assert!(value("x").is_err() && value("1+").is_err() && value("").is_err());
    }
}
