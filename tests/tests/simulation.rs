//! Lives of the gateway that nobody would wait for: see `weir_e2e::sim`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use weir::process::open_fds;
use weir_e2e::sim::{Plan, Story, clockwork, tell};

const CROWD: Plan = Plan {
    cores: 3,
    names: 20,
    publishers: 40,
    players: 140,
    disturbers: 20,
    time: Duration::from_secs(60),
    stop_early: false,
};

/// Lives one after the other, so that descriptors can be counted.
fn alone(seed: u64, plan: Plan) -> Story {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // What the first runtime of a process opens for good.
    clockwork::run(Duration::from_secs(1), async {}, || ());
    let before = open_fds().unwrap();
    let story = tell(seed, plan);
    assert_eq!(open_fds().unwrap(), before, "descriptors are left");
    story
}

#[test]
fn two_hundred_peers_do_what_they_like() {
    for seed in [1, 2] {
        let story = alone(seed, CROWD);
        assert!(story.takeovers > 20 && story.kicks > 20 && story.jumps > 0, "{story:?}");
    }
}

#[test]
fn a_seed_tells_the_same_story_again() {
    let few = Plan {
        names: 4,
        publishers: 8,
        players: 30,
        disturbers: 4,
        time: Duration::from_secs(20),
        ..CROWD
    };
    let story = alone(7, few);
    assert_eq!(story, alone(7, few));
    assert_ne!(story.print, alone(8, few).print);
}

#[test]
fn a_gateway_that_stops_among_them_leaves_nothing() {
    let story = alone(3, Plan { time: Duration::from_secs(30), stop_early: true, ..CROWD });
    assert!(story.events > 1000, "{story:?}");
}
