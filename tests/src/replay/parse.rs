//! From the text of a script to its steps.

use std::time::Duration;

use super::amf::{self, Literal};
use super::handshake::{Form, Scheme};
use super::number::Number;
use super::payload;
use super::scan::{Scan, Text};
use super::step::{
    Case, Chunk, CommandStep, Expectation, Frames, HandshakeStep, MessageStep, Pictures, Second,
    Step, Times, Verb, Wanted,
};

/// The cases of a script, in order.
///
/// # Errors
/// With the number of the line that cannot be read, and why.
pub fn parse(script: &str) -> Result<Vec<Case>, (usize, String)> {
    let mut cases = Vec::new();
    let mut name = String::new();
    let mut blocks: Blocks = vec![(None, Vec::new())];
    let mut last = 0;
    for (index, text) in script.lines().enumerate() {
        let line = index + 1;
        last = line;
        let mut scan = Scan::new(text);
        if scan.is_empty() {
            continue;
        }
        let at = |error| (line, error);
        match scan.next_word() {
            "case" => {
                scan.word();
                cases.extend(finish(&mut name, &mut blocks).map_err(at)?);
                name = scan.token().to_owned();
                scan.end().map_err(at)?;
            }
            "repeat" => {
                scan.word();
                let count = scan.number().map_err(at)?;
                scan.end().map_err(at)?;
                blocks.push((Some((line, count)), Vec::new()));
            }
            "end" => {
                let open = if blocks.len() > 1 { blocks.pop() } else { None };
                let Some((Some((line, count)), body)) = open else {
                    return Err((line, "no repeat is open".into()));
                };
                let text = "repeat".to_owned();
                push(&mut blocks, Step { line, text, verb: Verb::Repeat(count, body) });
            }
            _ => {
                let verb =
                    verb(&mut scan).and_then(|verb| scan.end().map(|()| verb)).map_err(at)?;
                push(&mut blocks, Step { line, text: text.trim().to_owned(), verb });
            }
        }
    }
    cases.extend(finish(&mut name, &mut blocks).map_err(|error| (last, error))?);
    Ok(cases)
}

/// Steps of the blocks that are open, each with the line and the count of its `repeat`.
type Blocks = Vec<(Option<(usize, Number)>, Vec<Step>)>;

fn push(blocks: &mut Blocks, step: Step) {
    if let Some((_, steps)) = blocks.last_mut() {
        steps.push(step);
    }
}

/// The case that ends here; none before the first step.
fn finish(name: &mut String, blocks: &mut Blocks) -> Result<Option<Case>, String> {
    if blocks.len() > 1 {
        return Err("a repeat has no end".into());
    }
    let steps = blocks.first_mut().map(|(_, steps)| std::mem::take(steps)).unwrap_or_default();
    let case = Case { name: std::mem::take(name), steps };
    Ok((!case.steps.is_empty()).then_some(case))
}

fn verb(scan: &mut Scan) -> Result<Verb, String> {
    Ok(match scan.word() {
        "handshake" => Verb::Handshake(handshake(scan)?),
        "bytes" => Verb::Bytes(payload::items(scan)?),
        "chunk" => Verb::Chunk(chunk(scan)?),
        "message" => Verb::Message(message(scan)?),
        "chunk-size" => Verb::ChunkSize(scan.number()?),
        "command" => command(scan)?,
        "connect" => Verb::Connect(address(scan)),
        "open" => Verb::Open(address(scan)),
        "publish" => Verb::Publish(address(scan)),
        "play" => Verb::Play(address(scan)),
        "headers" => Verb::Headers,
        "frames" => Verb::Frames(frames(scan)?),
        "watch" => Verb::Watch(address(scan)),
        "on" if scan.eat("all") => Verb::On(None),
        "on" => Verb::On(Some(scan.number()?)),
        "connections" => Verb::Connections(scan.number()?),
        "pause" => Verb::Pause(duration(scan.word())?),
        "sync" => Verb::Sync,
        "cork" => Verb::Cork,
        "uncork" => Verb::Uncork(split(scan)?),
        "finish" => Verb::Finish,
        "close" => Verb::Close,
        "reset" => Verb::Reset,
        "expect" => expectation(scan)?,
        other => return Err(format!("there is no statement \"{other}\"")),
    })
}

fn address(scan: &mut Scan) -> Option<Text> {
    if scan.is_empty() { None } else { Some(Text(scan.token().to_owned())) }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("\"{text}\": {error}"))
}

fn split(scan: &mut Scan) -> Result<Option<Number>, String> {
    match scan.option() {
        None => Ok(None),
        Some("split") => scan.number().map(Some),
        Some(other) => Err(format!("there is no option {other}=")),
    }
}

fn handshake(scan: &mut Scan) -> Result<HandshakeStep, String> {
    let mut step = HandshakeStep::default();
    while !scan.is_empty() {
        match scan.option() {
            Some("version") => step.version = Some(scan.number()?),
            Some("time") => step.time = scan.number()?,
            Some("split") => step.split = Some(scan.number()?),
            Some("c2") => {
                step.second = match scan.word() {
                    "echo" => Second::Echo,
                    "zero" => Second::Zero,
                    "early" => Second::Early,
                    other => return Err(format!("c2={other}? echo, zero or early")),
                }
            }
            Some(other) => return Err(format!("there is no option {other}=")),
            None => {
                step.form = match scan.word() {
                    "plain" => Form::Plain,
                    "digest0" => Form::Digest(Scheme::KeyFirst),
                    "digest1" => Form::Digest(Scheme::DigestFirst),
                    "broken0" => Form::Broken(Scheme::KeyFirst),
                    "broken1" => Form::Broken(Scheme::DigestFirst),
                    other => return Err(format!("there is no handshake \"{other}\"")),
                }
            }
        }
    }
    Ok(step)
}

fn chunk(scan: &mut Scan) -> Result<Chunk, String> {
    let mut chunk = Chunk::default();
    while let Some(name) = scan.option() {
        chunk_option(&mut chunk, name, scan)?;
    }
    chunk.payload = payload::items(scan)?;
    Ok(chunk)
}

fn chunk_option(chunk: &mut Chunk, name: &str, scan: &mut Scan) -> Result<(), String> {
    match name {
        "fmt" => chunk.format = Some(scan.number()?),
        "csid" => chunk.chunk_stream = Some(scan.number()?),
        "form" => chunk.form = Some(scan.number()?),
        "ts" => chunk.timestamp = Some(scan.number()?),
        "len" => chunk.length = Some(scan.number()?),
        "type" => chunk.kind = Some(kind(scan.word())?),
        "stream" => chunk.message_stream = Some(scan.number()?),
        "again" => chunk.repeats_extended = yes_or_no(scan)?,
        other => return Err(format!("there is no option {other}=")),
    }
    Ok(())
}

fn yes_or_no(scan: &mut Scan) -> Result<bool, String> {
    match scan.word() {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => Err(format!("{other}? yes or no")),
    }
}

fn list(scan: &mut Scan) -> Result<Vec<Number>, String> {
    let mut all = vec![scan.number()?];
    while scan.eat(",") {
        all.push(scan.number()?);
    }
    Ok(all)
}

/// A message type by its number or its name.
fn kind(text: &str) -> Result<Number, String> {
    let number = match text {
        "set-chunk-size" => 1,
        "abort" => 2,
        "ack" => 3,
        "control" => 4,
        "window" => 5,
        "bandwidth" => 6,
        "audio" => 8,
        "video" => 9,
        "data" => 18,
        "command" => 20,
        "aggregate" => 22,
        other => return Number::parse(other),
    };
    Ok(Number::of(number))
}

fn message(scan: &mut Scan) -> Result<MessageStep, String> {
    let (mut sizes, mut every) = (Vec::new(), Number::of(1));
    let mut chunk = Chunk::default();
    while let Some(name) = scan.option() {
        match name {
            "size" => sizes = list(scan)?,
            "every" => every = scan.number()?,
            _ => chunk_option(&mut chunk, name, scan)?,
        }
    }
    if chunk.kind.is_none() {
        return Err("a message needs its type=".into());
    }
    chunk.payload = payload::items(scan)?;
    Ok(MessageStep { chunk, sizes, every })
}

fn command(scan: &mut Scan) -> Result<Verb, String> {
    let mut name = Text(scan.word().to_owned());
    let (mut transaction, mut stream) = (None, None);
    if name.0.is_empty() {
        name = scan.quoted()?;
    }
    while let Some(option) = scan.option() {
        match option {
            "tx" => transaction = Some(amf::literal(scan)?),
            "stream" => stream = Some(scan.number()?),
            other => return Err(format!("there is no option {other}=")),
        }
    }
    let values: Vec<Literal> = amf::literals(scan, None)?;
    Ok(Verb::Command(CommandStep { name, transaction, stream, values }))
}

fn frames(scan: &mut Scan) -> Result<Frames, String> {
    let (from, to) = range(scan)?;
    let mut frames = Frames {
        from,
        to,
        shift: Number::of(0),
        size: None,
        video: None,
        audio: None,
        repeats_extended: true,
    };
    while let Some(name) = scan.option() {
        match name {
            "shift" => frames.shift = scan.number()?,
            "size" => frames.size = Some(scan.number()?),
            "video-csid" => frames.video = Some(scan.number()?),
            "audio-csid" => frames.audio = Some(scan.number()?),
            "again" => frames.repeats_extended = yes_or_no(scan)?,
            other => return Err(format!("there is no option {other}=")),
        }
    }
    Ok(frames)
}

fn range(scan: &mut Scan) -> Result<(Number, Number), String> {
    let text = scan.word();
    let (from, to) = text.split_once("..").ok_or_else(|| format!("{text}? FROM..TO"))?;
    Ok((Number::parse(from)?, Number::parse(to)?))
}

fn expectation(scan: &mut Scan) -> Result<Verb, String> {
    let what = match scan.word() {
        "status" => Expectation::Status(scan.word().to_owned()),
        "result" => Expectation::Answer("_result", transaction(scan)?),
        "error" => Expectation::Answer("_error", transaction(scan)?),
        "command" => Expectation::Command(scan.word().to_owned()),
        "message" => Expectation::Message(wanted(scan)?),
        "pong" => Expectation::Pong(scan.number()?),
        "pongs" => {
            scan.expect("<=")?;
            Expectation::Pongs(scan.number()?)
        }
        "acks" => {
            scan.expect("<=")?;
            let percent = scan.word();
            let number = percent.strip_suffix('%').and_then(|number| number.parse().ok());
            Expectation::Acknowledgements(
                number.ok_or_else(|| format!("{percent}? a percentage such as 1%"))?,
            )
        }
        "closed" => Expectation::Closed,
        "open" => Expectation::Open,
        "nothing" => Expectation::Nothing,
        "video" => Expectation::Video(pictures(scan)?),
        "audio" => Expectation::Audio(pictures(scan)?),
        "ended" => Expectation::Ended,
        other => return Err(format!("what is to be expected with \"{other}\"?")),
    };
    let within = if scan.eat("within") { Some(duration(scan.word())?) } else { None };
    Ok(Verb::Expect(what, within))
}

fn transaction(scan: &mut Scan) -> Result<Option<Literal>, String> {
    let none = scan.is_empty() || scan.next_word() == "within";
    if none { Ok(None) } else { amf::literal(scan).map(Some) }
}

fn wanted(scan: &mut Scan) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    while let Some(name) = scan.option() {
        match name {
            "type" => wanted.kind = Some(kind(scan.word())?),
            "csid" => wanted.chunk_stream = Some(scan.number()?),
            "stream" => wanted.message_stream = Some(scan.number()?),
            other => return Err(format!("there is no option {other}=")),
        }
    }
    if !scan.is_empty() && scan.next_word() != "within" {
        wanted.payload = Some(payload::items(scan)?);
    }
    Ok(wanted)
}

fn pictures(scan: &mut Scan) -> Result<Pictures, String> {
    let (from, to) = range(scan)?;
    let (mut size, mut times) = (None, Times::Own);
    while let Some(name) = scan.option() {
        match name {
            "size" => size = Some(scan.number()?),
            "times" if scan.eat("any") => times = Times::Any,
            "times" => times = Times::Listed(list(scan)?),
            other => return Err(format!("there is no option {other}=")),
        }
    }
    Ok(Pictures { from, to, size, times })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_told_with_its_line() {
        let wrong = [
            ("publish\nfoo", 2, "foo"),
            ("bytes 0", 1, "hexadecimal"),
            ("repeat 3\nsync", 2, "no end"),
            ("end", 1, "repeat"),
            ("message ts=1 00", 1, "type="),
            ("chunk colour=1", 1, "colour"),
            ("expect status A within x", 1, "x"),
            ("command a {b: }", 1, "number"),
            ("sync now", 1, "now"),
            ("frames 3", 1, "FROM..TO"),
        ];
        for (script, line, reason) in wrong {
            let (at, error) = parse(script).unwrap_err();
            assert_eq!(at, line, "{script}: {error}");
            assert!(error.contains(reason), "{script}: {error}");
        }
    }

    #[test]
    fn cases_divide_a_script() {
        let cases = parse("# none\ncase one\nsync\ncase two\nrepeat 2\nsync # x\nend\n").unwrap();
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names, ["one", "two"]);
        assert_eq!(parse("sync").unwrap()[0].name, "");
    }
}
