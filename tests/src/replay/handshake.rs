//! The client's half of the handshake in all its forms, and what a right answer to it is.
//!
//! Written apart from the gateway's own handshake, from RTMP 1.0 §5.2 and from what Adobe's
//! players do, so that one checks the other.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::fuzz::Random;

/// C1, S1, C2 and S2.
pub const BLOCK_BYTES: usize = 1536;

/// S0, S1 and S2.
pub const SERVER_BYTES: usize = 1 + 2 * BLOCK_BYTES;

const PLAYER_KEY: &[u8] = b"Genuine Adobe Flash Player 001";
const SERVER_KEY: &[u8] = b"Genuine Adobe Flash Media Server 001";
const KEY_TAIL: [u8; 32] = [
    0xf0, 0xee, 0xc2, 0x4a, 0x80, 0x68, 0xbe, 0xe8, 0x2e, 0x00, 0xd0, 0xd1, 0x02, 0x9e, 0x7e, 0x57,
    0x6e, 0xec, 0x5d, 0x2d, 0x29, 0x80, 0x6f, 0xab, 0x93, 0xb8, 0xe6, 0x36, 0xcf, 0xeb, 0x31, 0xae,
];

/// How C1 is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No digest, whatever the version bytes say: S2 must repeat C1.
    Plain,
    /// A digest behind the first four bytes (`digest1`) or behind the key block (`digest0`).
    Digest(Scheme),
    /// A digest with one wrong bit: as good as none.
    Broken(Scheme),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    KeyFirst,
    DigestFirst,
}

/// C1 as it was sent, with what it asks for.
#[derive(Clone, Debug)]
pub struct Hello {
    pub c1: Vec<u8>,
    digest: Option<(Scheme, usize)>,
}

impl Hello {
    /// A C1 whose random bytes follow from `seed`.
    #[must_use]
    pub fn new(form: Form, time: u32, version: u32, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut c1: Vec<u8> = (0..BLOCK_BYTES).map(|_| random.below(256) as u8).collect();
        c1[..4].copy_from_slice(&time.to_be_bytes());
        c1[4..8].copy_from_slice(&version.to_be_bytes());
        let (Form::Digest(scheme) | Form::Broken(scheme)) = form else {
            return Self { c1, digest: None };
        };
        let at = digest_at(&c1, scheme);
        let digest = digest_of(PLAYER_KEY, &c1, at);
        c1[at..at + 32].copy_from_slice(&digest);
        let digest = if matches!(form, Form::Broken(_)) {
            c1[at] ^= 1;
            None
        } else {
            Some((scheme, at))
        };
        Self { c1, digest }
    }

    /// Whether S0, S1 and S2 answer this C1.
    ///
    /// # Errors
    /// Says what is wrong.
    pub fn check(&self, answer: &[u8]) -> Result<(), String> {
        let (version, blocks) = answer.split_at(1);
        let (s1, s2) = blocks.split_at(BLOCK_BYTES);
        if version != [3] {
            return Err(format!("S0 is {}", version[0]));
        }
        match self.digest {
            None if s2 == self.c1 => Ok(()),
            None => Err("S2 is not C1".into()),
            Some((scheme, at)) => {
                let server_at = digest_at(s1, scheme);
                let expected = digest_of(SERVER_KEY, s1, server_at);
                if s1[server_at..server_at + 32] != expected {
                    return Err("S1 has no digest in the scheme of C1".into());
                }
                let key = hmac(&[SERVER_KEY, &KEY_TAIL].concat(), &self.c1[at..at + 32]);
                let (head, signature) = s2.split_at(BLOCK_BYTES - 32);
                let right = signature == hmac(&key, head);
                right.then_some(()).ok_or_else(|| "S2 does not sign the digest of C1".into())
            }
        }
    }
}

fn digest_at(block: &[u8], scheme: Scheme) -> usize {
    let pointer = if scheme == Scheme::DigestFirst { 8 } else { 772 };
    let sum: usize = block[pointer..pointer + 4].iter().map(|byte| usize::from(*byte)).sum();
    pointer + 4 + sum % 728
}

fn digest_of(key: &[u8], block: &[u8], at: usize) -> [u8; 32] {
    hmac(key, &[&block[..at], &block[at + 32..]].concat())
}

fn hmac(key: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_protocol::rtmp::handshake::Handshake;

    #[test]
    fn right_and_wrong_answers_are_told_apart() {
        let forms = [
            Form::Plain,
            Form::Digest(Scheme::KeyFirst),
            Form::Digest(Scheme::DigestFirst),
            Form::Broken(Scheme::DigestFirst),
        ];
        for form in forms {
            let hello = Hello::new(form, 7, 0x8000_0702, 1);
            let mut answer = Vec::new();
            let sent = [&[3][..], &hello.c1].concat();
            Handshake::server(2).advance(&mut &sent[..], &mut answer).expect("a C1");
            assert_eq!(hello.check(&answer), Ok(()), "{form:?}");
            answer[SERVER_BYTES - 1] ^= 1;
            assert!(hello.check(&answer).is_err(), "{form:?}");
        }
    }
}
