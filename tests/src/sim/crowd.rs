//! Two hundred peers at once, and what must hold among them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_local};
use tokio::time::{Instant, sleep, timeout};
use weir::config::Config;
use weir::core::serve::Protocol;
use weir_protocol::flv::Tag;
use weir_protocol::stream_name::StreamName;

use super::players::Kind;
use super::watch::Shelf;
use super::wire::{Net, Wire, ticks};
use super::world::{World, arena};
use super::{clockwork, disturbers, fingerprint, players, publishers};
use crate::fuzz::Random;
use crate::media;

/// Who comes, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub cores: usize,
    /// Names that publishers and players choose from.
    pub names: usize,
    pub publishers: usize,
    pub players: usize,
    /// Connections that are up to no good.
    pub disturbers: usize,
    pub time: Duration,
    /// Stop the gateway while all are there, instead of letting them go home.
    pub stop_early: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// Of all that peers saw and when: equal for equal lives.
    pub print: u64,
    pub events: u64,
    pub takeovers: u64,
    pub kicks: u64,
    pub jumps: u64,
}

/// What all peers of a simulation share.
pub struct Crowd {
    pub world: Rc<World>,
    /// Those from `contested` on have one publisher each, whom nobody disturbs.
    pub names: Vec<StreamName>,
    pub contested: usize,
    pub headers: Vec<Tag>,
    pub until: Instant,
    pub shelf: Shelf,
    pub kicks: Cell<u64>,
    began: Instant,
    sessions: RefCell<Vec<u32>>,
    print: Cell<(u64, u64)>,
    serial: Cell<u64>,
}

/// Names with an undisturbed publisher.
const CALM: usize = 3;

/// When everybody has gone: the resume window, the linger of ended streams, that of replicas.
const AFTERMATH: Duration = Duration::from_secs(120);

/// Plays one life of the gateway.
///
/// # Panics
/// When something does not hold.
#[must_use]
pub fn tell(seed: u64, plan: Plan) -> Story {
    let told = Rc::new(RefCell::new(Story::default()));
    let world: Rc<RefCell<Option<Rc<World>>>> = Rc::default();
    let (story, place) = (told.clone(), world.clone());
    let life = async move {
        let world = World::new(config(), plan.cores);
        *place.borrow_mut() = Some(world.clone());
        *story.borrow_mut() = live(world, seed, plan).await;
        place.borrow_mut().take();
    };
    let look = || {
        if let Some(world) = &*world.borrow() {
            world.check();
        }
    };
    clockwork::run(plan.time + AFTERMATH * 2, life, look);
    assert_eq!(arena().usage().in_use_bytes, 0, "media is left");
    told.take()
}

fn config() -> Config {
    let mut config = Config { resume_window: Duration::from_secs(5), ..Config::default() };
    config.timeouts.idle = Duration::from_secs(15);
    config
}

async fn live(world: Rc<World>, seed: u64, plan: Plan) -> Story {
    let crowd = Rc::new(Crowd::new(world.clone(), plan));
    let mut random = Random::new(seed);
    let calm = spawn_calm(&crowd);
    let mut peers = Vec::new();
    for index in 0..plan.publishers + plan.players + plan.disturbers {
        let (crowd, random) = (crowd.clone(), Random::new(random.bits()));
        peers.push(match index {
            _ if index < plan.publishers => spawn_local(publishers::wander(crowd, random)),
            _ if index < plan.publishers + plan.players => {
                spawn_local(players::wander(crowd, random))
            }
            _ => spawn_local(disturbers::wander(crowd, random)),
        });
    }
    peers.push(spawn_local(disturbers::kick(crowd.clone(), Random::new(random.bits()))));
    if plan.stop_early {
        sleep(plan.time / 2).await;
        world.stop();
        peers.iter().chain(&calm).for_each(JoinHandle::abort);
        sleep(AFTERMATH).await;
        return crowd.story();
    }
    for peer in calm.into_iter().chain(peers) {
        peer.await.expect("a peer that sees what it must");
    }
    let rest = async {
        while !world.is_at_rest(&crowd.names) {
            sleep(ticks(20)).await;
        }
    };
    let rest = timeout(AFTERMATH, rest).await;
    rest.unwrap_or_else(|_| panic!("left behind: {}", world.remains(&crowd.names)));
    let story = crowd.story();
    world.stop();
    story
}

/// Publishers that nobody disturbs, with players on other cores that must get every frame.
fn spawn_calm(crowd: &Rc<Crowd>) -> Vec<JoinHandle<()>> {
    let streams = crowd.contested..crowd.names.len();
    streams
        .map(|stream| {
            let crowd = crowd.clone();
            spawn_local(async move {
                let rtmp = spawn_local(players::play_calmly(crowd.clone(), stream, Kind::Rtmp));
                let flv = spawn_local(players::play_calmly(crowd.clone(), stream, Kind::Flv));
                let last = publishers::publish_calmly(crowd, stream).await;
                for player in [rtmp, flv] {
                    let seen = player.await.expect("a player that sees what it must");
                    assert_eq!(seen, Some(last), "the last picture");
                }
            })
        })
        .collect()
}

impl Crowd {
    /// # Panics
    /// When the demo clip is broken.
    #[must_use]
    pub fn new(world: Rc<World>, plan: Plan) -> Self {
        let names = (0..plan.names + CALM).map(|name| format!("live/{name}"));
        let names: Vec<_> =
            names.map(|name| StreamName::from_path(&name).expect("a name")).collect();
        let began = Instant::now();
        Self {
            world,
            contested: plan.names,
            headers: media::headers(),
            until: began + plan.time,
            shelf: Shelf::default(),
            kicks: Cell::new(0),
            began,
            sessions: RefCell::new(vec![0; names.len()]),
            names,
            print: Cell::default(),
            serial: Cell::default(),
        }
    }

    #[must_use]
    pub fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    /// A connection with any core, over any net.
    pub fn connect(&self, random: &mut Random, protocol: Protocol) -> Wire {
        let net = match random.below(8) {
            0 => Net::Narrow,
            1..3 => Net::Calm,
            _ => Net::Rough,
        };
        self.wire(random.below(64), protocol, net)
    }

    pub fn wire(&self, core: usize, protocol: Protocol, net: Net) -> Wire {
        self.serial.set(self.serial.get() + 1);
        Wire::new(self.world.connect(core, protocol), net, Random::new(self.serial.get()))
    }

    pub fn next_session(&self, stream: usize) -> u32 {
        let mut sessions = self.sessions.borrow_mut();
        sessions[stream] += 1;
        sessions[stream]
    }

    /// Something that a peer did or saw.
    pub fn note(&self, what: &str, value: u64) {
        let (print, events) = self.print.get();
        let at = self.began.elapsed().as_millis() as u64;
        let words = [print, fingerprint(what.as_bytes()), at, value];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.print.set((fingerprint(&bytes), events + 1));
    }

    fn story(&self) -> Story {
        let (print, events) = self.print.get();
        let sum = |count: &dyn Fn(&weir::metrics::Counters) -> u64| {
            self.world.cores.iter().map(|core| count(&core.counters)).sum()
        };
        Story {
            print,
            events,
            takeovers: sum(&|counters| counters.closed.of(weir::metrics::Closed::TakenOver).get()),
            kicks: self.kicks.get(),
            jumps: sum(&|counters| counters.player_jumps.get()),
        }
    }
}
