//! What a script may say, as `replay script --help` shows it.

pub const LANGUAGE: &str = r#"A script is a list of statements, one a line; # begins a comment. What it sends is what it says: no
rule of RTMP is kept for it. An expectation that is not met ends it.

  case NAME                 from here on with new connections: the cases of a script run one by one
  connections N             N connections from here on; each statement acts on all, one after another
  on C, on all              the statements that follow act on connection C only (from 0)
  repeat N … end            the statements between, N times

Sending
  handshake [FORM] [version=V] [time=T] [c2=echo|zero|early] [split=BYTES]
                            FORM plain, digest0 (key block first), digest1 (digest first), broken0 or
                            broken1 (a digest with one wrong bit, so none); the answer is checked.
                            early: C2 together with C0 and C1. split: in writes of so many bytes
  bytes PAYLOAD             as they are
  chunk OPTIONS PAYLOAD     one chunk: its header and whatever payload stands here
  message OPTIONS PAYLOAD   a message in as many chunks as it takes
                            type=T (a number or audio, video, data, command, aggregate, control, abort,
                            ack, window, bandwidth), fmt=0..3, csid=ID, form=1..3 (bytes of the basic
                            header), ts=MS (a difference in fmt 1 and 2), stream=ID, len=BYTES (declared),
                            again=yes|no (fmt 3 repeats an extended timestamp);
                            message only: size=BYTES (chunk size, whatever was announced), or
                            size=A,B,… every=N (Set Chunk Size to the next of them every N chunks)
  chunk-size N              Set Chunk Size, and chunks of that size from here on
  command NAME [tx=VALUE] [stream=ID] [VALUE…]
                            the first VALUE is the command object, null if there is none; transactions
                            count up by themselves
  connect [APP]             handshake and connect, with the answers awaited
  open [APP]                connect and createStream, with the answers awaited
  publish [APP/KEY]         open and publish, until NetStream.Publish.Start; play alike
  headers                   the sequence headers of the test media (H.264 and AAC)
  frames FROM..TO [shift=MS] [size=BYTES] [video-csid=ID] [audio-csid=ID] [again=…]
                            frames of the test media: a picture each 50 ms, every tenth a keyframe, and
                            two sounds with each; each can be told from all others when it comes out
  cork … uncork [split=BYTES]
                            what stands between goes out in one write, or in writes of so many bytes
  pause TIME                such as 200ms or 3s
  sync                      waits until the gateway has read all that was sent
  finish                    ends sending; the gateway may still answer
  close, reset              ends the connection (reset: by RST) and makes a new one
  watch [APP/KEY]           plays /APP/KEY.flv next to the script from its newest keyframe on; needs
                            --http, and that a first picture has been sent

Expecting (… within TIME; 15s if not said)
  expect status CODE        the next onStatus has this code
  expect result|error [TX]  the next answer is _result or _error, of this transaction
  expect command NAME       a command of this name comes
  expect message [type=T] [csid=ID] [stream=ID] [PAYLOAD]
                            the very next message is this, and its body begins with PAYLOAD
  expect pong STAMP         an answer to a ping comes
  expect pongs <= N         no more of them came so far
  expect acks <= P%         acknowledgements take no more than this part of the bytes that were sent
  expect nothing            all was read, and nothing was answered
  expect open               all was read, and the connection is open
  expect closed             the gateway closes the connection
  expect video FROM..TO [size=BYTES] [times=MS,MS,…|any]
                            exactly these pictures come out next, byte by byte, at their distances
  expect audio FROM..TO     exactly these sounds come out next: 2 × N and 2 × N + 1 go with frame N
  expect ended              the stream ends as HTTP ends a body

Payload: any number of
  00ff1e "text" u8(N) u16(N) u24(N) u32(N)
  fill(COUNT[, BYTE]) repeat(COUNT, PAYLOAD) slice(FROM, TO, PAYLOAD)
  amf(VALUE…)               AMF0: 1.5 "text" true null undefined unsupported {name: VALUE, …}
                            ecma{name: VALUE, …} [VALUE, …] date(MILLISECONDS)
  tag(TYPE, MS, PAYLOAD)    an FLV tag with its back pointer
  video(N[, BYTES]) audio(N) video-header audio-header
                            bodies of the test media

Numbers: 12, 0x1f, sums, products and remainders without spaces (64+$n%2*255). $n is the turn of the
innermost repeat and $c the connection, both from 0; $app, $key and $url stand for parts of URL in texts
and addresses.

Example: half a picture, an abort, and the next picture
  publish
  headers
  frames 0..1
  watch
  chunk type=video len=5000 stream=1 csid=6 fill(128)
  message type=abort u32(6)
  frames 1..10
  expect video 0..10
"#;
