//! Both ends of the rml_rtmp crate, which shares no code with Weir.

use bytes::Bytes;
use rml_rtmp::handshake::{Handshake, HandshakeProcessResult, PeerType};
use rml_rtmp::sessions::{
    ClientSession, ClientSessionConfig, ClientSessionEvent, ClientSessionResult,
    PublishRequestType, ServerSession as RmlServer, ServerSessionConfig, ServerSessionEvent,
    ServerSessionResult, StreamMetadata,
};
use rml_rtmp::time::RtmpTimestamp;
use weir_protocol::flv::TagKind;
use weir_protocol::pool::HeapPool;
use weir_protocol::rtmp::message::MessageHeader;
use weir_protocol::rtmp::{
    ClientEvent, ClientSession as WeirClient, Event, Limits, Output, RtmpUrl, ServerSession,
};

struct Rml {
    client: ClientSession,
    server: ServerSession<HeapPool>,
    now: std::time::Instant,
    to_client: Vec<u8>,
    server_events: Vec<Event>,
    client_events: Vec<ClientSessionEvent>,
}

impl Rml {
    fn connected() -> Self {
        let now = crate::start();
        let mut server = ServerSession::new(Limits::default(), 1, HeapPool::default(), now);
        let mut handshake = Handshake::new(PeerType::Client);
        let c01 = handshake.generate_outbound_p0_and_p1().unwrap();
        server.handle_input(now, &c01).unwrap();
        let Some(Output::Send(answer)) = server.poll_output() else { panic!("no answer") };
        let Ok(HandshakeProcessResult::Completed { response_bytes, .. }) =
            handshake.process_bytes(&answer)
        else {
            panic!("handshake refused");
        };
        server.handle_input(now, &response_bytes).unwrap();
        let mut config = ClientSessionConfig::new();
        config.tc_url = Some("rtmp://h/live".into());
        let (client, results) = ClientSession::new(config).unwrap();
        let mut rml = Self {
            client,
            server,
            now,
            to_client: Vec::new(),
            server_events: Vec::new(),
            client_events: Vec::new(),
        };
        rml.take(results);
        let request = rml.client.request_connection("live".into()).unwrap();
        rml.take(vec![request]);
        assert_eq!(rml.client_events, [ClientSessionEvent::ConnectionRequestAccepted]);
        rml.client_events.clear();
        rml
    }

    /// Delivers what the client wants to send, and the answers to it, until both are silent.
    fn take(&mut self, results: Vec<ClientSessionResult>) {
        let mut results = results;
        loop {
            for result in results.drain(..) {
                match result {
                    ClientSessionResult::OutboundResponse(packet) => {
                        self.server.handle_input(self.now, &packet.bytes).unwrap();
                    }
                    ClientSessionResult::RaisedEvent(event) => self.client_events.push(event),
                    ClientSessionResult::UnhandleableMessageReceived(_) => {}
                }
            }
            while let Some(output) = self.server.poll_output() {
                match output {
                    Output::Send(bytes) => self.to_client.extend(bytes),
                    Output::Event(event) => self.server_events.push(event),
                }
            }
            if self.to_client.is_empty() {
                return;
            }
            results = self.client.handle_input(&std::mem::take(&mut self.to_client)).unwrap();
        }
    }
}

#[test]
fn rml_publishes() {
    let mut rml = Rml::connected();
    let request = rml.client.request_publishing("k?token=t".into(), PublishRequestType::Live);
    rml.take(vec![request.unwrap()]);
    assert!(matches!(&rml.server_events[..], [Event::Publish { message_stream: 1, name, .. }]
        if name.as_str() == "live/k"));
    rml.server.accept_publish(1).unwrap();
    rml.take(vec![]);
    assert!(rml.client_events.contains(&ClientSessionEvent::PublishRequestAccepted));

    rml.server_events.clear();
    let mut metadata = StreamMetadata::new();
    metadata.video_width = Some(1280);
    let sent = rml.client.publish_metadata(&metadata).unwrap();
    rml.take(vec![sent]);
    let mut expected = Vec::new();
    for number in 0..50_u32 {
        let body = Bytes::from(vec![number as u8; 1 + 900 * number as usize]);
        let timestamp_ms = number * 400_000;
        let time = RtmpTimestamp::new(timestamp_ms);
        let kind = if number % 2 == 0 { TagKind::Video } else { TagKind::Audio };
        let sent = match kind {
            TagKind::Video => rml.client.publish_video_data(body.clone(), time, false),
            _ => rml.client.publish_audio_data(body.clone(), time, false),
        };
        rml.take(vec![sent.unwrap()]);
        expected.push(Event::Media { kind, timestamp_ms, body });
    }
    assert!(matches!(&rml.server_events[0], Event::Media { kind: TagKind::Script, body, .. }
        if body.starts_with(b"\x02\x00\x0aonMetaData")));
    assert_eq!(rml.server_events[1..], expected);
    rml.server_events.clear();
    let stopped = rml.client.stop_publishing().unwrap();
    rml.take(stopped);
    assert_eq!(rml.server_events, [Event::Unpublish { message_stream: 1 }]);
}

#[test]
fn rml_plays() {
    let mut rml = Rml::connected();
    let request = rml.client.request_playback("k".into()).unwrap();
    rml.take(vec![request]);
    assert!(matches!(&rml.server_events[..], [Event::Play { message_stream: 1, .. }]));
    rml.server.accept_play(1);
    rml.take(vec![]);
    assert!(rml.client_events.contains(&ClientSessionEvent::PlaybackRequestAccepted));
    for number in 0..20_u32 {
        let body = Bytes::from(vec![number as u8; 1 + 9000 * number as usize]);
        let header = MessageHeader::media(1, TagKind::Video, number * 40);
        let mut bytes = Vec::new();
        rml.server.writer().write(header, &[], &body, &mut bytes);
        rml.client_events.clear();
        rml.to_client.extend(bytes);
        rml.take(vec![]);
        let timestamp = RtmpTimestamp::new(number * 40);
        let expected = ClientSessionEvent::VideoDataReceived { timestamp, data: body };
        assert_eq!(rml.client_events, [expected]);
    }
}

/// Weir's client publishes to the other's server. Chunk streams are not interleaved on the way,
/// which that server could not take.
#[test]
fn weir_publishes_to_rml() {
    let now = crate::start();
    let url = RtmpUrl::parse("rtmp://h/live/k").unwrap();
    let mut client = WeirClient::publish(url, Limits::default(), 1, HeapPool::default(), now);
    let mut handshake = Handshake::new(PeerType::Server);
    let mut bytes = sent(&mut client);
    loop {
        match handshake.process_bytes(&bytes).unwrap() {
            HandshakeProcessResult::InProgress { response_bytes } => {
                client.handle_input(now, &response_bytes).unwrap();
                bytes = sent(&mut client);
            }
            HandshakeProcessResult::Completed { remaining_bytes, .. } => {
                bytes = remaining_bytes;
                break;
            }
        }
    }
    let (mut server, results) = RmlServer::new(ServerSessionConfig::new()).unwrap();
    let mut results = results;
    results.extend(server.handle_input(&bytes).unwrap());
    let mut events = Vec::new();
    let mut published = false;
    let frame = Bytes::from(vec![7; 100_000]);
    while !results.is_empty() {
        for result in std::mem::take(&mut results) {
            match result {
                ServerSessionResult::OutboundResponse(packet) => {
                    client.handle_input(now, &packet.bytes).unwrap();
                }
                ServerSessionResult::RaisedEvent(event) => {
                    use ServerSessionEvent::{
                        ConnectionRequested, PublishStreamRequested, ReleaseStreamRequested,
                    };
                    match event {
                        ConnectionRequested { request_id, .. }
                        | ReleaseStreamRequested { request_id, .. }
                        | PublishStreamRequested { request_id, .. } => {
                            results.extend(server.accept_request(request_id).unwrap());
                        }
                        event => events.push(event),
                    }
                }
                ServerSessionResult::UnhandleableMessageReceived(_) => {}
            }
        }
        while let Some(output) = client.poll_output() {
            match output {
                Output::Send(bytes) => results.extend(server.handle_input(&bytes).unwrap()),
                Output::Event(event) => {
                    assert_eq!(event, ClientEvent::Published);
                    published = true;
                    client.publish_media(TagKind::Video, 0x0100_0000, &frame);
                    client.close();
                }
            }
        }
    }
    assert!(published);
    let stream = ("live".to_owned(), "k".to_owned());
    let video = ServerSessionEvent::VideoDataReceived {
        app_name: stream.0.clone(),
        stream_key: stream.1.clone(),
        data: frame,
        timestamp: RtmpTimestamp::new(0x0100_0000),
    };
    let finished =
        ServerSessionEvent::PublishStreamFinished { app_name: stream.0, stream_key: stream.1 };
    assert!(events.contains(&video));
    assert!(events.contains(&finished));
}

fn sent(client: &mut WeirClient<HeapPool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(output) = client.poll_output() {
        if let Output::Send(more) = output {
            bytes.extend(more);
        }
    }
    bytes
}
