//! What the owner of a session says to the peer.

use super::{Activity, ServerSession};
use crate::amf0::{self, Value};
use crate::flv::TagKind;
use crate::pool::Pool;
use crate::rtmp::Error;
use crate::rtmp::command::{Command, object};
use crate::rtmp::message::{MessageHeader, UserControl};

impl<P: Pool> ServerSession<P> {
    /// Lets the publish begin. What was held back until now follows as events.
    ///
    /// # Errors
    /// Those of [`ServerSession::handle_input`], for what was held back.
    pub fn accept_publish(&mut self, message_stream: u32) -> Result<(), Error> {
        let Some(Activity::PublishAsked(name)) = self.activity(message_stream) else {
            return Ok(());
        };
        self.link.reader.set_max_unfinished(self.limits.unfinished_bytes_publishing);
        self.set_activity(message_stream, Activity::Publishing(name));
        self.status(message_stream, "status", "NetStream.Publish.Start", "Publishing");
        self.process_held()
    }

    /// Refuses the publish; what was held back is thrown away as far as it is media.
    /// `code` is for example `NetStream.Publish.BadName`.
    ///
    /// # Errors
    /// Those of [`ServerSession::handle_input`], for what was held back.
    pub fn reject_publish(
        &mut self,
        message_stream: u32,
        code: &str,
        description: &str,
    ) -> Result<(), Error> {
        if let Some(Activity::PublishAsked(_)) = self.activity(message_stream) {
            self.set_activity(message_stream, Activity::Idle);
            self.status(message_stream, "error", code, description);
        }
        self.process_held()
    }

    /// Lets the play begin. Media may be sent from now on, with [`ServerSession::writer`] and
    /// [`MessageHeader::media`].
    pub fn accept_play(&mut self, message_stream: u32) {
        if self.activity(message_stream) != Some(Activity::PlayAsked) {
            return;
        }
        self.set_activity(message_stream, Activity::Playing);
        self.link.send_user_control(UserControl::StreamBegin(message_stream));
        self.status(message_stream, "status", "NetStream.Play.Reset", "Resetting");
        self.status(message_stream, "status", "NetStream.Play.Start", "Playing");
        self.begin_data(message_stream);
    }

    fn begin_data(&mut self, message_stream: u32) {
        // Flash players refuse to draw without this permission, and wait for the data to start.
        self.data_message(message_stream, &["|RtmpSampleAccess".into(), true.into(), true.into()]);
        let started = object([("code", "NetStream.Data.Start".into())]);
        self.data_message(message_stream, &["onStatus".into(), started]);
    }

    /// Refuses the play. `code` is for example `NetStream.Play.StreamNotFound`.
    pub fn reject_play(&mut self, message_stream: u32, code: &str, description: &str) {
        if self.activity(message_stream) == Some(Activity::PlayAsked) {
            self.set_activity(message_stream, Activity::Idle);
            self.status(message_stream, "error", code, description);
        }
    }

    /// Tells a player that the stream is over. No `StopPlay` follows.
    pub fn end_play(&mut self, message_stream: u32) {
        self.interrupt_play(message_stream);
        if self.activity(message_stream) == Some(Activity::Playing) {
            self.set_activity(message_stream, Activity::Idle);
        }
    }

    /// Tells a player that the stream is over for now: [`ServerSession::resume_play`] or
    /// [`ServerSession::abandon_play`] follows.
    pub fn interrupt_play(&mut self, message_stream: u32) {
        if self.activity(message_stream) == Some(Activity::Playing) {
            self.link.send_user_control(UserControl::StreamEof(message_stream));
            let code = "NetStream.Play.UnpublishNotify";
            self.status(message_stream, "status", code, "The stream has ended");
        }
    }

    /// Goes on with a play that was interrupted.
    pub fn resume_play(&mut self, message_stream: u32) {
        if self.activity(message_stream) == Some(Activity::Playing) {
            self.link.send_user_control(UserControl::StreamBegin(message_stream));
            let code = "NetStream.Play.PublishNotify";
            self.status(message_stream, "status", code, "The stream is back");
            self.begin_data(message_stream);
        }
    }

    /// Ends a play that was interrupted. No `StopPlay` follows.
    pub fn abandon_play(&mut self, message_stream: u32) {
        if self.activity(message_stream) == Some(Activity::Playing) {
            self.set_activity(message_stream, Activity::Idle);
            let code = "NetStream.Play.Stop";
            self.status(message_stream, "status", code, "The stream has not come back");
        }
    }

    /// Asks the peer for a sign of life (RTMP 1.0 §7.1.7). Any clock will do for the timestamp.
    pub fn ping(&mut self, timestamp_ms: u32) {
        self.link.send_user_control(UserControl::Ping(timestamp_ms));
    }

    /// Tells a publisher that it must stop, before the connection is closed. No `Unpublish`
    /// follows.
    pub fn end_publish(&mut self, message_stream: u32, code: &str, description: &str) {
        if let Some(Activity::Publishing(_)) = self.activity(message_stream) {
            self.set_activity(message_stream, Activity::Idle);
            self.status(message_stream, "error", code, description);
        }
    }

    /// Asks the peer to connect anew and go on there, for example before a restart; `false` if it
    /// never said that it would (Enhanced RTMP v2, Reconnect Request).
    pub fn request_reconnect(&mut self, description: &str) -> bool {
        let can = self.connect.as_ref().is_some_and(|connect| connect.reconnects);
        if can {
            self.status(0, "status", "NetConnection.Connect.ReconnectRequest", description);
        }
        can
    }

    pub(super) fn activity(&self, message_stream: u32) -> Option<Activity> {
        self.stream(message_stream).map(|stream| stream.activity.clone())
    }

    pub(super) fn status(
        &mut self,
        message_stream: u32,
        level: &str,
        code: &str,
        description: &str,
    ) {
        let status = Command::on_status(level, code, description);
        self.link.send_command(message_stream, &status);
    }

    fn data_message(&mut self, message_stream: u32, values: &[Value]) {
        let header = MessageHeader::media(message_stream, TagKind::Script, 0);
        self.link.send(header, &amf0::encode_all(values));
    }
}
