//! A small byte fuzzer for everything that reads bytes from peers.
//!
//! It mutates a committed corpus (what real encoders sent) with a seeded generator, so every run
//! can be repeated. A target fails by panicking, or by giving another result when the same bytes
//! come in other portions.

mod client;
mod mutate;
mod sequence;
mod stream;
mod targets;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

pub use mutate::Random;
pub use targets::{Target, all};

/// A failure, with what is needed to see it again.
#[derive(Clone, Debug)]
pub struct Failure {
    pub target: &'static str,
    pub input: Vec<u8>,
}

/// How many inputs each target was given.
pub type Counts = Vec<(&'static str, u64)>;

/// Fuzzes all targets in turn for `time`.
///
/// # Errors
/// The first failure.
pub fn run(seed: u64, time: Duration) -> Result<Counts, Failure> {
    let mut random = Random::new(seed);
    let targets = all();
    let mut counts: Counts = targets.iter().map(|target| (target.name, 0)).collect();
    let began = Instant::now();
    while began.elapsed() < time {
        for (target, count) in targets.iter().zip(&mut counts) {
            for _ in 0..target.turns {
                let input = random.mutated(&target.corpus);
                try_input(target, &input)?;
                count.1 += 1;
            }
        }
    }
    Ok(counts)
}

/// Gives one input to a target.
///
/// # Errors
/// When the target panics.
pub fn try_input(target: &Target, input: &[u8]) -> Result<(), Failure> {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    outcome.map_err(|_| Failure { target: target.name, input: input.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_accept_what_real_encoders_sent() {
        for target in all() {
            assert!(!target.corpus.is_empty(), "{} has no corpus", target.name);
            for input in &target.corpus {
                (target.run)(input);
            }
        }
    }

    #[test]
    fn a_seed_repeats_its_inputs() {
        let corpus = [b"weir".repeat(20), b"overflow".to_vec()];
        let inputs = |seed| {
            let mut random = Random::new(seed);
            (0..50).map(|_| random.mutated(&corpus)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(7), inputs(7));
        assert_ne!(inputs(7), inputs(8));
    }
}
