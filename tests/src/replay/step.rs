//! What a script is made of once it has been read.

use std::time::Duration;

use super::amf::Literal;
use super::handshake::Form;
use super::number::Number;
use super::payload::Item;
use super::scan::Text;

/// A part of a script that begins with connections of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Empty where the script has but one.
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// From 1.
    pub line: usize,
    /// As it stands in the script.
    pub text: String,
    pub verb: Verb,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verb {
    Handshake(HandshakeStep),
    Bytes(Vec<Item>),
    Chunk(Chunk),
    Message(MessageStep),
    ChunkSize(Number),
    Command(CommandStep),
    Connect(Option<Text>),
    Open(Option<Text>),
    Publish(Option<Text>),
    Play(Option<Text>),
    Headers,
    Frames(Frames),
    Watch(Option<Text>),
    Connections(Number),
    /// All connections again where there is no number.
    On(Option<Number>),
    Pause(Duration),
    Sync,
    Cork,
    Uncork(Option<Number>),
    Finish,
    Close,
    Reset,
    Repeat(Number, Vec<Step>),
    Expect(Expectation, Option<Duration>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct HandshakeStep {
    pub form: Form,
    /// That of the form where none is given.
    pub version: Option<Number>,
    pub time: Number,
    pub second: Second,
    pub split: Option<Number>,
}

impl Default for HandshakeStep {
    fn default() -> Self {
        let time = Number::of(0);
        Self { form: Form::Plain, version: None, time, second: Second::Echo, split: None }
    }
}

/// What C2 is, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Second {
    Echo,
    Zero,
    /// Zeros in one write with C0 and C1.
    Early,
}

/// One chunk, or the headers of a message; what is missing follows from the type.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    pub format: Option<Number>,
    pub chunk_stream: Option<Number>,
    pub form: Option<Number>,
    pub timestamp: Option<Number>,
    pub length: Option<Number>,
    pub kind: Option<Number>,
    pub message_stream: Option<Number>,
    pub repeats_extended: bool,
    pub payload: Vec<Item>,
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            format: None,
            chunk_stream: None,
            form: None,
            timestamp: None,
            length: None,
            kind: None,
            message_stream: None,
            repeats_extended: true,
            payload: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct MessageStep {
    pub chunk: Chunk,
    /// Chunk sizes, one after the other and round again. A single one is not announced.
    pub sizes: Vec<Number>,
    /// The next of `sizes` is announced after so many chunks.
    pub every: Number,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CommandStep {
    pub name: Text,
    pub transaction: Option<Literal>,
    pub stream: Option<Number>,
    /// The command object first.
    pub values: Vec<Literal>,
}

/// Frames of the tests' media, each a picture and its two sounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Frames {
    pub from: Number,
    pub to: Number,
    /// Milliseconds on top of the frames' own time.
    pub shift: Number,
    pub size: Option<Number>,
    pub video: Option<Number>,
    pub audio: Option<Number>,
    pub repeats_extended: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Expectation {
    Status(String),
    Answer(&'static str, Option<Literal>),
    Command(String),
    Message(Wanted),
    Pong(Number),
    Pongs(Number),
    /// Bytes of acknowledgements, in percent of what was sent.
    Acknowledgements(f64),
    Closed,
    Open,
    Nothing,
    Video(Pictures),
    Audio(Pictures),
    Ended,
}

/// The message that must come next; what is missing may be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    pub kind: Option<Number>,
    pub chunk_stream: Option<Number>,
    pub message_stream: Option<Number>,
    pub payload: Option<Vec<Item>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Pictures {
    pub from: Number,
    pub to: Number,
    pub size: Option<Number>,
    pub times: Times,
}

/// When pictures come out, in milliseconds behind the first of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Times {
    /// As far apart as they are made.
    Own,
    Listed(Vec<Number>),
    Any,
}
