//! Virtual publishers: good ones, and those that break off in every way.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until, timeout};
use weir::core::serve::Protocol;

use super::crowd::Crowd;
use super::rtmp::{Gone, Purpose, RtmpPeer};
use super::watch::{SESSION_FRAMES, time_of};
use super::wire::{Net, Wire, ticks};
use crate::fuzz::Random;
use crate::media;

/// Publishes again and again, under any name, for as long as the crowd is there.
pub async fn wander(crowd: Rc<Crowd>, mut random: Random) {
    while !crowd.is_over() {
        sleep(ticks(random.below(1500))).await;
        let stream = random.below(crowd.contested);
        let wire = crowd.connect(&mut random, Protocol::Rtmp);
        let begun = RtmpPeer::begin(wire, &crowd.names[stream], Purpose::Publish);
        let Ok(Ok(mut peer)) = timeout(Duration::from_secs(10), begun).await else { continue };
        crowd.note("publishes", stream as u64);
        let life = ticks(10 + random.below(4000));
        // Broken off where it is, perhaps within a chunk.
        let end = timeout(life, publish(&crowd, &mut peer, stream, u32::MAX)).await;
        crowd.note("ends", u64::from(end.is_ok()));
        leave(peer, &mut random).await;
    }
}

async fn leave(peer: RtmpPeer, random: &mut Random) {
    let mut wire: Wire = match random.below(5) {
        0 => return peer.close().await,
        1 => return drop(peer),
        _ => peer.into_wire(),
    };
    match random.below(3) {
        // Silent, until the gateway has had enough.
        0 => sleep(ticks(random.below(9000))).await,
        // Something that is no chunk.
        1 => drop(wire.send(&[0xff; 40]).await),
        _ => wire.finish().await,
    }
    let over =
        timeout(Duration::from_secs(60), async { while !wire.receive().await.is_empty() {} });
    over.await.expect("the gateway ends a connection that says nothing");
}

/// Publishes one session with no trouble at all, and says how many frames it had.
pub async fn publish_calmly(crowd: Rc<Crowd>, stream: usize) -> u32 {
    let wire = crowd.wire(stream, Protocol::Rtmp, Net::Calm);
    let begun = RtmpPeer::begin(wire, &crowd.names[stream], Purpose::Publish);
    let mut peer = begun.await.expect("nothing is in the way");
    let span = crowd.until - Instant::now();
    let frames = u32::try_from(span.as_millis()).expect("a short while") / media::FRAME_MS;
    let sent = publish(&crowd, &mut peer, stream, frames).await.expect("nothing is in the way");
    peer.close().await;
    sent
}

/// Publishes a session of at most so many frames, in real time. Gives the last one's number.
async fn publish(
    crowd: &Crowd,
    peer: &mut RtmpPeer,
    stream: usize,
    frames: u32,
) -> Result<u32, Gone> {
    let first = crowd.next_session(stream) * SESSION_FRAMES;
    for header in &crowd.headers {
        let mut header = header.clone();
        header.timestamp_ms = first * media::FRAME_MS;
        peer.publish(&header).await?;
    }
    let began = Instant::now();
    let last = first + frames.min(SESSION_FRAMES) - 1;
    for number in first..=last {
        let size = if number.is_multiple_of(media::GOP) { 4000 } else { 200 };
        for tag in media::frame(stream as u8, number, size) {
            peer.publish(&tag).await?;
        }
        sleep_until(began + time_of(number) + ticks(1)).await;
    }
    Ok(last)
}
