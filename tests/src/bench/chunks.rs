//! What small chunks cost: a header and a turn of the parser for every so many bytes.

use bytes::Bytes;
use std::io::Write as _;
use weir_protocol::flv::Tag;
use weir_protocol::limits::DEFAULT_CHUNK_SIZE;
use weir_protocol::rtmp::chunk::Writer;
use weir_protocol::rtmp::message::{MessageHeader, kind};

use super::media::Media;
use super::{Plan, Server, Table};
use crate::process::wait_until;
use crate::rtmp_client::RtmpClient;
use crate::script::SOON;

const HOW: &str = "one publisher pushes as fast as it is taken, nobody watches: user and system \
    time of the gateway by MiB of payload";
const SIZES: [u32; 3] = [1, 128, 4096];
const MIB: f64 = (1 << 20) as f64;

pub fn measure(server: &mut Server, plan: &Plan, table: &mut Table) {
    let media = Media::new();
    for size in SIZES {
        let mut publisher = RtmpClient::connect(server.gateway.socket_addr("rtmp"));
        publisher.open("live", "rtmp://127.0.0.1/live");
        let name = format!("chunks{size}");
        assert_eq!(publisher.ask_to_publish(&name), "NetStream.Publish.Start");
        let (bytes, payload) = encoded(&media, size, publisher.message_stream, plan.chunked_bytes);
        let address = publisher.local_addr();
        let received = || {
            let client = server.gateway.client_at("rtmp", address).expect("the publisher");
            client["bytes_in"].as_u64().expect("a count of bytes")
        };
        let all = received() + bytes.len() as u64;
        let (seconds, ()) = server.cost(|| {
            publisher.socket().write_all(&bytes).expect("media is taken");
            wait_until("the end of it in the API", SOON, || (received() >= all).then_some(()));
        });
        let figure = format!("in, chunks of {size} bytes");
        table.add(&figure, "CPU-s/MiB", HOW, seconds * MIB / payload as f64);
    }
}

/// At least `limit` bytes of media in chunks of `size`, and how many of them are payload.
fn encoded(media: &Media, size: u32, message_stream: u32, limit: usize) -> (Vec<u8>, usize) {
    let mut out = Vec::new();
    let announcement = MessageHeader::control(kind::SET_CHUNK_SIZE);
    // Four bytes fit into one chunk of any size that was told before.
    Writer::new(DEFAULT_CHUNK_SIZE).write(
        announcement,
        &size.to_be_bytes(),
        &Bytes::new(),
        &mut out,
    );
    let writer = Writer::new(size);
    let mut payload = 0;
    let mut write = |tag: &Tag| {
        let header = MessageHeader::media(message_stream, tag.kind, tag.timestamp_ms);
        writer.write(header, &[], &tag.body, &mut out);
        payload += tag.body.len();
        payload
    };
    media.headers().iter().for_each(|tag| _ = write(tag));
    let mut units = media.units();
    while write(&units.next()) < limit {}
    (out, payload)
}
