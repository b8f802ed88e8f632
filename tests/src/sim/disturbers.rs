//! Those who do not play along: peers that are up to no good, and the operator who kicks.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{sleep, timeout};
use weir::admin::Control;
use weir::core::serve::Protocol;

use super::crowd::Crowd;
use super::wire::{Wire, ticks};
use crate::fuzz::Random;

/// Connects, says nonsense, half of something or nothing, and waits to be thrown out, or not.
pub async fn wander(crowd: Rc<Crowd>, mut random: Random) {
    while !crowd.is_over() {
        sleep(ticks(random.below(800))).await;
        let protocol = if random.below(2) == 0 { Protocol::Rtmp } else { Protocol::Http };
        let mut wire = crowd.connect(&mut random, protocol.clone());
        let _ = wire.send(&words(&mut random, protocol)).await;
        if random.below(4) == 0 {
            wire.finish().await;
        }
        if random.below(3) > 0 {
            thrown_out(&mut wire).await;
        }
    }
}

fn words(random: &mut Random, protocol: Protocol) -> Vec<u8> {
    let mut words = match (protocol, random.below(4)) {
        (_, 0) => (0..random.below(5000)).map(|_| random.bits() as u8).collect(),
        (Protocol::Rtmp | Protocol::Rtmps(_), _) => [&[3][..], &[0; 1536 * 2]].concat(),
        (Protocol::Http, _) => b"GET /live/0/media.m3u8 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3),
    };
    words.truncate(random.below(words.len() + 1));
    words
}

/// No connection stays for nothing.
async fn thrown_out(wire: &mut Wire) {
    let over =
        timeout(Duration::from_secs(120), async { while !wire.receive().await.is_empty() {} });
    over.await.expect("the gateway ends a connection that goes nowhere");
}

/// The operator kicks clients and streams, but for those that are to be left in peace.
pub async fn kick(crowd: Rc<Crowd>, mut random: Random) {
    while !crowd.is_over() {
        sleep(ticks(20 + random.below(400))).await;
        let control = &crowd.world.control;
        if random.below(3) == 0 {
            let name = crowd.names[random.below(crowd.contested)].clone();
            let kicked = control.kick_stream(name).await.expect("every core answers");
            crowd.note("kicks stream", u64::from(kicked));
            crowd.kicks.set(crowd.kicks.get() + u64::from(kicked));
            continue;
        }
        let reports = control.reports().await.expect("every core answers");
        let clients = reports.into_iter().flat_map(|report| report.clients);
        let contested = &crowd.names[..crowd.contested];
        let mut clients: Vec<_> = clients
            .filter(|client| client.stream.as_ref().is_some_and(|name| contested.contains(name)))
            .collect();
        if clients.is_empty() {
            continue;
        }
        let client = clients.swap_remove(random.below(clients.len()));
        let kicked = control.kick_client(client.id).await.expect("every core answers");
        crowd.note("kicks client", client.id);
        crowd.kicks.set(crowd.kicks.get() + u64::from(kicked));
    }
}
