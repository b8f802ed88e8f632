//! The one clock of everything that serves peers: tokio's, which its timers run by.
//!
//! A test can so put the whole gateway on a clock that jumps from one timer to the next.

use std::time::{Instant, SystemTime};

#[must_use]
pub fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// What the clock on the wall shows; where a test has moved [`now`], as far ahead or behind.
#[must_use]
pub fn wall() -> SystemTime {
    let (wall, now, real) = (SystemTime::now(), now(), Instant::now());
    match now.checked_duration_since(real) {
        Some(ahead) => wall + ahead,
        None => wall - real.duration_since(now),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_clocks_jump_together() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (began, wall_began) = (now(), wall());
            let day = Duration::from_secs(24 * 3600);
            tokio::time::sleep(day).await;
            assert!(now() - began >= day);
            assert!(wall().duration_since(wall_began).unwrap() >= day);
            assert!(wall().duration_since(SystemTime::now()).unwrap() > day / 2);
        });
    }
}
