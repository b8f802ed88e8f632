//! The digest form, as Adobe's players and every server since know it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::{BLOCK_BYTES, Block};

const DIGEST_BYTES: usize = 32;

pub(super) type Digest = [u8; DIGEST_BYTES];

/// What S1 says in the version field: a server that knows digests.
pub(super) const SERVER_VERSION: u32 = 0x0405_0001;

/// The second half of the keys for C2 and S2.
const KEY_TAIL: [u8; 32] = [
    0xf0, 0xee, 0xc2, 0x4a, 0x80, 0x68, 0xbe, 0xe8, 0x2e, 0x00, 0xd0, 0xd1, 0x02, 0x9e, 0x7e, 0x57,
    0x6e, 0xec, 0x5d, 0x2d, 0x29, 0x80, 0x6f, 0xab, 0x93, 0xb8, 0xe6, 0x36, 0xcf, 0xeb, 0x31, 0xae,
];

/// Which of its two blocks of C1 or S1 holds the digest. Four bytes give the digest's place among
/// the 728 that follow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// The key block comes first.
    Key,
    /// The digest block comes first.
    Digest,
}

impl Scheme {
    /// Both, the more common one first.
    pub(super) const ALL: [Self; 2] = [Self::Digest, Self::Key];

    /// Splits a block into what comes before the digest, the digest, and what follows it.
    fn split(self, block: &mut Block) -> Option<(&mut [u8], &mut Digest, &mut [u8])> {
        let (before, from): (usize, usize) = match self {
            Self::Digest => (8, 12),
            Self::Key => (772, 776),
        };
        let pointer = block.get(before..from)?;
        let sum = pointer.iter().fold(0_usize, |sum, &byte| sum.saturating_add(usize::from(byte)));
        let at = from.checked_add(sum.checked_rem(728)?)?;
        let (head, rest) = block.split_at_mut_checked(at)?;
        let (digest, tail) = rest.split_first_chunk_mut()?;
        Some((head, digest, tail))
    }
}

/// One side's key.
pub(super) struct Signer(&'static [u8]);

impl Signer {
    pub(super) const PLAYER: Self = Self(b"Genuine Adobe Flash Player 001");
    pub(super) const SERVER: Self = Self(b"Genuine Adobe Flash Media Server 001");

    /// The scheme and digest of a signed C1 or S1.
    pub(super) fn find(&self, block: &Block) -> Option<(Scheme, Digest)> {
        Scheme::ALL.into_iter().find_map(|scheme| {
            let mut block = *block;
            let (head, digest, tail) = scheme.split(&mut block)?;
            (hmac(self.0, [head, tail]) == *digest).then_some((scheme, *digest))
        })
    }

    /// Signs C1 or S1.
    pub(super) fn sign(&self, block: &mut Block, scheme: Scheme) {
        if let Some((head, digest, tail)) = scheme.split(block) {
            *digest = hmac(self.0, [head, tail]);
        }
    }

    /// Signs C2 or S2, which answers a block with the given digest.
    pub(super) fn sign_answer(&self, block: &mut Block, answered: &Digest) {
        let key = [self.0, &KEY_TAIL].concat();
        let key = hmac(&key, [answered, &[]]);
        let (head, signature) = block.split_at_mut(BLOCK_BYTES.saturating_sub(DIGEST_BYTES));
        signature.copy_from_slice(&hmac(&key, [head, &[]]));
    }
}

fn hmac(key: &[u8], parts: [&[u8]; 2]) -> Digest {
    // HMAC takes a key of any length; an error cannot occur, and would end as a plain handshake.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Digest::default() };
    parts.into_iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}
