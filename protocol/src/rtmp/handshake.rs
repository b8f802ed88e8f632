//! The handshake (RTMP 1.0 §5.2), plain and with digests.
//!
//! Adobe never specified the digest form. As server, a digest in C1 is answered in its own scheme;
//! without a valid one the plain form follows, whatever the version bytes say. As client, the
//! plain form is used, which every server takes. The Diffie-Hellman part is only for encrypted
//! RTMP and is left out, so nothing in it can fail.

use crate::rtmp::Error;

mod digest;
#[cfg(test)]
mod tests;

use digest::Signer;

/// C1, S1, C2 and S2.
const BLOCK_BYTES: usize = 1536;

/// C0 and S0: RTMP without encryption.
const VERSION: u8 = 3;

type Block = [u8; BLOCK_BYTES];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Server,
    Client,
}

/// One side of the handshake. Bytes may come in any portions.
#[derive(Debug)]
pub struct Handshake {
    role: Role,
    seed: u64,
    version_read: bool,
    /// C1 or S1 as far as it has arrived.
    block: Vec<u8>,
    /// Bytes of C2 or S2 to come. What they hold is not checked: real clients send anything.
    block2_left: usize,
}

impl Handshake {
    /// `seed` fills the random fields, which hold no secret.
    #[must_use]
    pub fn server(seed: u64) -> Self {
        let block2_left = BLOCK_BYTES;
        Self { role: Role::Server, seed, version_read: false, block: Vec::new(), block2_left }
    }

    /// Appends C0 and C1 to `out`. `seed` fills the random fields.
    #[must_use]
    pub fn client(seed: u64, out: &mut Vec<u8>) -> Self {
        out.push(VERSION);
        out.extend(random_block(seed, 0));
        Self { role: Role::Client, ..Self::server(seed) }
    }

    /// Takes bytes from the front of `input`, appends what is to be sent to `out`, and tells
    /// whether the handshake is complete. What then remains of `input` are chunks.
    ///
    /// # Errors
    /// `NotRtmp` as soon as the first byte says so.
    pub fn advance(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Result<bool, Error> {
        if !self.version_read {
            let Some((&version, rest)) = input.split_first() else { return Ok(false) };
            if version != VERSION {
                return Err(Error::NotRtmp(version));
            }
            *input = rest;
            self.version_read = true;
        }
        if self.block.len() < BLOCK_BYTES {
            let missing = BLOCK_BYTES.saturating_sub(self.block.len());
            self.block.extend_from_slice(take_up_to(input, missing));
            let Some(block) = self.block.first_chunk() else { return Ok(false) };
            match self.role {
                Role::Server => answer(block, self.seed, out),
                Role::Client => out.extend_from_slice(block),
            }
        }
        let taken = take_up_to(input, self.block2_left).len();
        self.block2_left = self.block2_left.saturating_sub(taken);
        Ok(self.block2_left == 0)
    }
}

/// S0, S1 and S2 for a C1.
fn answer(c1: &Block, seed: u64, out: &mut Vec<u8>) {
    let plain = version_field(c1) == [0; 4];
    let signed = if plain { None } else { Signer::PLAYER.find(c1) };
    out.push(VERSION);
    match signed {
        None => {
            out.extend(random_block(seed, 0));
            // Strict clients compare S2 with their C1.
            out.extend_from_slice(c1);
        }
        Some((scheme, digest)) => {
            let mut s1 = random_block(seed, digest::SERVER_VERSION);
            Signer::SERVER.sign(&mut s1, scheme);
            out.extend(s1);
            let mut s2 = random_block(!seed, 0);
            Signer::SERVER.sign_answer(&mut s2, &digest);
            out.extend(s2);
        }
    }
}

/// Time 0, the version field, and random bytes.
fn random_block(seed: u64, version: u32) -> Block {
    let mut block = [0; BLOCK_BYTES];
    let mut state = seed;
    for word in block.chunks_exact_mut(8) {
        word.copy_from_slice(&split_mix(&mut state).to_le_bytes());
    }
    if let Some(head) = block.first_chunk_mut::<8>() {
        *head = u64::from(version).to_be_bytes();
    }
    block
}

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Zero where the peer uses the plain form, though some fill it and do so all the same.
fn version_field(block: &Block) -> [u8; 4] {
    let [_, _, _, _, version @ ..] = block.first_chunk::<8>().copied().unwrap_or_default();
    version
}

fn take_up_to<'a>(input: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at_checked(count).unwrap_or((*input, &[]));
    *input = rest;
    taken
}
