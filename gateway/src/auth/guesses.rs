use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::core::admission::payer;
use crate::limits;

/// Wrong keys by the address that they came from, and who is throttled for them.
///
/// The table has a fixed capacity: when it is full, the address that was wrong longest ago is
/// forgotten, so whoever has many addresses gets a few guesses with each and costs no memory.
#[derive(Default)]
pub struct Guesses {
    by_address: HashMap<IpAddr, Guesser>,
    /// Nobody can make up two guesses that count as one.
    hasher: RandomState,
}

struct Guesser {
    /// Different wrong keys.
    count: u32,
    /// Hashes of the newest of them.
    newest: [u64; limits::GUESSES_TOLD_APART],
    last: Instant,
    throttled_until: Instant,
}

impl Guesses {
    /// How long this address has to wait before it may try again.
    pub fn throttled(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let until = self.by_address.get(&payer(address))?.throttled_until;
        until.checked_duration_since(now).filter(|left| !left.is_zero())
    }

    pub fn right(&mut self, address: IpAddr) {
        self.by_address.remove(&payer(address));
    }

    /// Notes a wrong key. The same one again is an encoder that does not know better rather than a
    /// guess: it must not lock out the others behind its address.
    pub fn wrong(&mut self, address: IpAddr, guess: impl Hash, now: Instant) {
        let hash = self.hasher.hash_one(guess);
        let address = payer(address);
        self.make_room(address);
        let fresh = Guesser {
            count: 0,
            newest: [hash; limits::GUESSES_TOLD_APART],
            last: now,
            throttled_until: now,
        };
        let forgotten = |guesser: &Guesser| {
            now.saturating_duration_since(guesser.throttled_until.max(guesser.last))
                > limits::GUESS_MEMORY
        };
        let guesser = self.by_address.entry(address).or_insert(fresh);
        if forgotten(guesser) {
            guesser.count = 0;
        }
        let known = guesser.count > 0 && guesser.newest.contains(&hash);
        guesser.last = now;
        if known {
            return;
        }
        guesser.newest.rotate_right(1);
        guesser.newest[0] = hash;
        guesser.count = guesser.count.saturating_add(1);
        if let Some(over) = guesser.count.checked_sub(limits::GUESSES) {
            // Twelve doublings are more than the longest wait.
            let wait = limits::GUESS_WAIT_FIRST * (1 << over.min(12));
            guesser.throttled_until = now + wait.min(limits::GUESS_WAIT_MOST);
        }
    }

    fn make_room(&mut self, address: IpAddr) {
        if self.by_address.len() < limits::GUESSERS || self.by_address.contains_key(&address) {
            return;
        }
        let oldest = self.by_address.iter().min_by_key(|(_, guesser)| guesser.last);
        if let Some(oldest) = oldest.map(|(address, _)| *address) {
            self.by_address.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0x0a00_0000 + last).into()
    }

    #[test]
    fn the_wait_grows_with_each_guess_and_ends() {
        let (mut guesses, start) = (Guesses::default(), Instant::now());
        for guess in 0..limits::GUESSES - 1 {
            guesses.wrong(address(1), guess, start);
        }
        assert_eq!(guesses.throttled(address(1), start), None);
        let mut now = start;
        let mut waits = Vec::new();
        for guess in 100..116 {
            guesses.wrong(address(1), guess, now);
            let wait = guesses.throttled(address(1), now).unwrap();
            waits.push(wait.as_secs());
            assert_eq!(guesses.throttled(address(2), now), None, "others are not affected");
            now += wait;
            assert_eq!(guesses.throttled(address(1), now), None);
        }
        assert_eq!(&waits[..5], [1, 2, 4, 8, 16]);
        assert_eq!(waits.last(), Some(&limits::GUESS_WAIT_MOST.as_secs()));
        guesses.right(address(1));
        guesses.wrong(address(1), 200, now);
        assert_eq!(guesses.throttled(address(1), now), None, "a right key makes good");
    }

    #[test]
    fn an_encoder_with_an_old_key_is_no_guesser() {
        let (mut guesses, now) = (Guesses::default(), Instant::now());
        for attempt in 0..1000 {
            guesses.wrong(address(1), attempt % 4, now);
        }
        assert_eq!(guesses.throttled(address(1), now), None);
    }

    #[test]
    fn guesses_are_forgotten_in_time() {
        let (mut guesses, mut now) = (Guesses::default(), Instant::now());
        for guess in 0..1000 {
            guesses.wrong(address(1), guess, now);
            assert_eq!(guesses.throttled(address(1), now), None);
            now += limits::GUESS_MEMORY + Duration::from_millis(1);
        }
    }

    #[test]
    fn a_network_is_one_address_and_the_table_does_not_grow() {
        let (mut guesses, now) = (Guesses::default(), Instant::now());
        for guess in 0..u128::from(limits::GUESSES) {
            let address = IpAddr::from(std::net::Ipv6Addr::from_bits((0x2001 << 112) + guess));
            guesses.wrong(address, guess, now);
        }
        let neighbour = "2001::ffff:1".parse().unwrap();
        assert!(guesses.throttled(neighbour, now).is_some());
        for number in 0..2 * limits::GUESSERS as u32 {
            guesses.wrong(address(number), number, now + Duration::from_millis(number.into()));
        }
        assert_eq!(guesses.by_address.len(), limits::GUESSERS);
        assert_eq!(guesses.throttled(neighbour, now), None, "the oldest is out");
    }
}
