//! What the peer asks for (RTMP 1.0 §7.2, and the commands of Adobe's encoders).

use super::{Activity, Connect, Event, MessageStream, PublishMode, ServerSession};
use crate::amf0::Value;
use crate::flv::TagKind;
use crate::limits::OUT_WINDOW;
use crate::pool::Pool;
use crate::rtmp::Error;
use crate::rtmp::command::{Command, information, object};
use crate::rtmp::enhanced;
use crate::rtmp::message::{Message, MessageHeader, kind};
use crate::rtmp::via;
use crate::stream_name::{NameError, Query, StreamName};

/// A flag of what a client says.
const CAN_RECONNECT: u32 = 1;

/// An object encoding (RTMP 1.0 §7.2.1.1).
const AMF3: f64 = 3.0;

const CALL_FAILED: &str = "NetConnection.Call.Failed";
const CONNECT_REJECTED: &str = "NetConnection.Connect.Rejected";
const BAD_NAME: &str = "NetStream.Publish.BadName";

impl<P: Pool> ServerSession<P> {
    pub(super) fn command(&mut self, message: &Message) -> Result<(), Error> {
        if !self.commands.allows(self.now, self.limits.commands) {
            return Err(Error::TooManyCommands);
        }
        let id = message.header.message_stream;
        let Some(command) = Command::parse(message.header.kind, &message.body)? else {
            self.link.ignore();
            return Ok(());
        };
        if self.connect.is_none() && command.name != "connect" {
            self.fail(&command, CALL_FAILED, "connect first");
            return Ok(());
        }
        match command.name.as_str() {
            "connect" => self.connect_command(&command),
            "createStream" => self.create_stream(&command),
            "publish" => self.publish(id, &command),
            "play" | "play2" => self.play(id, &command),
            "deleteStream" => self.delete_stream(id, &command),
            "closeStream" => self.close_stream(id, &command),
            "FCPublish" => self.answer_with_event(&command, "onFCPublish", BEGINS),
            "FCUnpublish" => self.fc_unpublish(&command),
            "FCSubscribe" => self.answer_with_event(&command, "onFCSubscribe", PLAYS),
            "pause" | "pauseRaw" => self.pause(id, &command),
            "seek" => self.seek(id),
            "receiveAudio" => self.receive(id, TagKind::Audio, &command),
            "receiveVideo" => self.receive(id, TagKind::Video, &command),
            "getStreamLength" => self.succeed(&command, 0.0.into()),
            "releaseStream" | "_checkbw" | "checkBandwidth" | "set_playlist" => {
                self.succeed(&command, Value::Undefined);
            }
            "_result" | "_error" | "onStatus" | "onBWDone" => self.link.ignore(),
            _ => {
                self.link.ignore();
                self.fail(&command, CALL_FAILED, "Weir does not know this command");
            }
        }
        Ok(())
    }

    /// A transaction of 0 wants no answer (RTMP 1.0 §7.2.1.2).
    fn answer(&mut self, answer: &Command) {
        if answer.transaction != 0.0 {
            self.link.send_command(0, answer);
        }
    }

    fn succeed(&mut self, command: &Command, value: Value) {
        self.answer(&Command::result(command.transaction, Value::Null, value));
    }

    fn fail(&mut self, command: &Command, code: &str, description: &str) {
        self.answer(&Command::error(command.transaction, code, description));
    }

    /// Answers and sends the event that Adobe's encoder waits for.
    fn answer_with_event(&mut self, command: &Command, event: &str, (code, text): (&str, &str)) {
        self.succeed(command, Value::Undefined);
        let event = Command::new(event, vec![information("status", code, text)]);
        self.link.send_command(0, &event);
    }

    fn connect_command(&mut self, command: &Command) {
        if self.connect.is_some() {
            return self.fail(command, CONNECT_REJECTED, "already connected");
        }
        let said = &command.object;
        if said.properties().is_none() {
            return self.fail(command, CONNECT_REJECTED, "connect without its object");
        }
        let text = |key| said.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let enhanced = enhanced::is_spoken_in(said);
        let capabilities = said.get("capsEx").and_then(Value::as_number).unwrap_or_default();
        self.connect = Some(Connect {
            app: text("app"),
            tc_url: text("tcUrl"),
            flash_version: text("flashVer"),
            page_url: text("pageUrl"),
            swf_url: text("swfUrl"),
            enhanced,
            reconnects: capabilities as u32 & CAN_RECONNECT != 0,
            via: via::read(said),
        });
        self.link.send_chunk_size();
        // Limit type 2 is "dynamic" (RTMP 1.0 §5.4.5).
        let bandwidth = [&OUT_WINDOW.to_be_bytes()[..], &[2]].concat();
        self.link.send(MessageHeader::control(kind::PEER_BANDWIDTH), &bandwidth);
        // Always 1 (RTMP 1.0 §7.2.1.1), and answered even if not: the client waits for it.
        let encoding = said.get("objectEncoding").and_then(Value::as_number);
        let encoding = encoding.filter(|encoding| *encoding == AMF3).unwrap_or_default();
        self.link.send_command(0, &connect_result(command.transaction, enhanced, encoding));
    }

    fn create_stream(&mut self, command: &Command) {
        if !self.has_room() {
            return self.fail(command, CALL_FAILED, "too many message streams");
        }
        let id = self.next_stream;
        self.next_stream = id.saturating_add(1);
        self.streams.push(MessageStream::new(id, true));
        self.succeed(command, f64::from(id).into());
    }

    fn publish(&mut self, id: u32, command: &Command) {
        let key = match command.arguments.first() {
            Some(Value::String(key)) => key.as_str(),
            // `publish(false)` is how Flash says stop.
            Some(Value::Boolean(false)) => return self.stop_with_status(self.meant(id)),
            _ => "",
        };
        let current = match self.activity(id) {
            Some(Activity::Publishing(name) | Activity::PublishAsked(name)) => Some(name),
            _ => None,
        };
        if current.is_some() && key.is_empty() {
            return self.stop_with_status(id);
        }
        let (name, query) = match self.address(key) {
            Ok(address) => address,
            Err(error) => return self.bad_name(id, BAD_NAME, error),
        };
        if current.as_ref() == Some(&name) {
            return self.status(id, "status", "NetStream.Publish.Start", "Publishing already");
        }
        if self.is_publishing() {
            return self.status(id, "error", BAD_NAME, "this connection publishes already");
        }
        if !self.ready_stream(id) {
            return self.status(id, "error", BAD_NAME, "no such message stream");
        }
        let mode = match command.text(1).map(str::to_ascii_lowercase).as_deref() {
            Some("record") => PublishMode::Record,
            Some("append") => PublishMode::Append,
            _ => PublishMode::Live,
        };
        self.set_activity(id, Activity::PublishAsked(name.clone()));
        self.emit(Event::Publish { message_stream: id, name, query, mode });
    }

    fn play(&mut self, id: u32, command: &Command) {
        let key = match command.arguments.first() {
            Some(Value::String(key)) => key.as_str(),
            Some(Value::Boolean(false)) => return self.stop_with_status(id),
            // `play2` names the stream in an object of options.
            Some(options) => options.get("streamName").and_then(Value::as_str).unwrap_or_default(),
            None => "",
        };
        let (name, query) = match self.address(key) {
            Ok(address) => address,
            Err(error) => return self.bad_name(id, "NetStream.Play.StreamNotFound", error),
        };
        if !self.ready_stream(id) {
            return self.status(id, "error", "NetStream.Play.Failed", "no such message stream");
        }
        self.set_activity(id, Activity::PlayAsked);
        self.emit(Event::Play { message_stream: id, name, query });
    }

    fn address(&self, key: &str) -> Result<(StreamName, Query), NameError> {
        let connect = self.connect.as_ref();
        let (app, tc_url) = connect.map_or(("", ""), |connect| (&connect.app, &connect.tc_url));
        StreamName::from_rtmp(app, tc_url, key)
    }

    fn bad_name(&mut self, id: u32, code: &str, error: NameError) {
        self.status(id, "error", code, &error.to_string());
        self.emit(Event::BadName(error));
    }

    /// Ends what the message stream does, so that it can begin something. A stream that was never
    /// created is made up, for encoders that do not wait or count from elsewhere.
    fn ready_stream(&mut self, id: u32) -> bool {
        if self.stream(id).is_some() {
            self.stop(id);
            return true;
        }
        let room = self.has_room();
        if room {
            self.streams.push(MessageStream::new(id, false));
            self.next_stream = self.next_stream.max(id.saturating_add(1));
        }
        room
    }

    /// Where there is none, the oldest stream that has stopped is forgotten: encoders that begin again
    /// and again on one connection create one each time.
    fn has_room(&mut self) -> bool {
        if self.streams.len() >= self.limits.message_streams {
            let over = |one: &MessageStream| one.used && one.activity == Activity::Idle;
            self.streams.iter().position(over).map(|place| self.streams.remove(place));
        }
        self.streams.len() < self.limits.message_streams
    }

    /// The message stream that is to stop. An encoder that publishes on one and stops another, of which
    /// it has created but one, means its publish.
    fn meant(&self, id: u32) -> u32 {
        let created = |id| self.stream(id).is_some_and(|stream| stream.created);
        let does_nothing = matches!(self.activity(id), None | Some(Activity::Idle));
        let publishing = self.streams.iter().find(|stream| stream.activity.is_publish());
        match publishing.map(|stream| stream.id) {
            Some(publish) if does_nothing && !(created(id) && created(publish)) => publish,
            _ => id,
        }
    }

    fn delete_stream(&mut self, id: u32, command: &Command) {
        // Without a number, the command's own message stream is meant.
        let id = match command.arguments.first().and_then(Value::as_number) {
            Some(number) => number as u32,
            None => id,
        };
        let id = self.meant(id);
        self.stop(id);
        self.streams.retain(|stream| stream.id != id);
        self.succeed(command, Value::Undefined);
    }

    fn close_stream(&mut self, id: u32, command: &Command) {
        self.stop_with_status(self.meant(id));
        self.succeed(command, Value::Undefined);
    }

    /// Names the stream by its key and comes on the connection; there is but one publish.
    fn fc_unpublish(&mut self, command: &Command) {
        let publishing = self.streams.iter().find(|stream| stream.activity.is_publish());
        if let Some(id) = publishing.map(|stream| stream.id) {
            self.stop_with_status(id);
        }
        self.answer_with_event(command, "onFCUnpublish", ENDS);
    }

    fn stop_with_status(&mut self, id: u32) {
        match self.activity(id) {
            Some(activity) if activity.is_publish() => {
                self.stop(id);
                self.status(id, "status", ENDS.0, ENDS.1);
            }
            Some(Activity::Playing | Activity::PlayAsked) => {
                self.stop(id);
                self.status(id, "status", "NetStream.Play.Stop", "Stopped");
            }
            _ => {}
        }
    }

    /// Ends whatever the message stream does; nothing if it does nothing.
    fn stop(&mut self, id: u32) {
        let event = match self.activity(id) {
            None | Some(Activity::Idle) => return,
            Some(Activity::PlayAsked | Activity::Playing) => Event::StopPlay { message_stream: id },
            Some(Activity::PublishAsked(_) | Activity::Publishing(_)) => {
                Event::Unpublish { message_stream: id }
            }
        };
        self.set_activity(id, Activity::Idle);
        self.emit(event);
    }

    fn pause(&mut self, id: u32, command: &Command) {
        if self.activity(id) != Some(Activity::Playing) {
            return self.link.ignore();
        }
        let paused = command.arguments.first().and_then(Value::as_bool).unwrap_or(true);
        self.emit(Event::Pause { message_stream: id, paused });
        let code = if paused { "NetStream.Pause.Notify" } else { "NetStream.Unpause.Notify" };
        self.status(id, "status", code, "");
    }

    /// Wherever a player wants to be, live media has but one place (RTMP 1.0 §7.2.2.7).
    fn seek(&mut self, id: u32) {
        if self.activity(id) != Some(Activity::Playing) {
            return self.status(id, "error", "NetStream.Seek.Failed", "nothing is played");
        }
        self.emit(Event::Seek { message_stream: id });
        self.status(id, "status", "NetStream.Seek.Notify", "Live: going on at the newest keyframe");
    }

    fn receive(&mut self, id: u32, kind: TagKind, command: &Command) {
        let wanted = command.arguments.first().and_then(Value::as_bool).unwrap_or(true);
        self.emit(Event::Receive { message_stream: id, kind, wanted });
    }
}

const BEGINS: (&str, &str) = ("NetStream.Publish.Start", "FCPublish");
const ENDS: (&str, &str) = ("NetStream.Unpublish.Success", "Unpublished");
const PLAYS: (&str, &str) = ("NetStream.Play.Start", "FCSubscribe");

impl MessageStream {
    fn new(id: u32, created: bool) -> Self {
        Self { id, created, used: false, activity: Activity::Idle }
    }
}

impl Activity {
    fn is_publish(&self) -> bool {
        matches!(self, Self::PublishAsked(_) | Self::Publishing(_))
    }
}

fn connect_result(transaction: f64, client_is_enhanced: bool, encoding: f64) -> Command {
    // The version that clients know as one that understands H.264 and AAC.
    let mut properties = vec![
        ("fmsVer".to_owned(), "FMS/3,5,7,7009".into()),
        ("capabilities".to_owned(), 31.0.into()),
        ("mode".to_owned(), 1.0.into()),
    ];
    if client_is_enhanced {
        properties.extend(enhanced::properties());
    }
    let information = object([
        ("level", "status".into()),
        ("code", "NetConnection.Connect.Success".into()),
        ("description", "Connected".into()),
        // What the client asked for. Weir reads both, and writes AMF0, which AMF3 messages hold as well.
        ("objectEncoding", encoding.into()),
    ]);
    Command::result(transaction, Value::Object(properties), information)
}
