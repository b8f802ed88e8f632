//! TLS over a connection: rustls makes and reads the records, [`Conn`] moves them.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, Read as _, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use tokio::sync::Mutex;
use tokio::task::spawn_local;
use tokio::time::{Instant, timeout};

use super::{Batch, Conn};

/// A [`Conn`] with TLS; clones are the same connection.
///
/// One task reads and one task sends, as with [`Conn`]. What the reading side has to answer (an alert,
/// the receipt of new keys) goes out ahead of the next bytes that are sent, or by a task of its own when
/// nobody sends: whoever sends holds the turn, so records never mix.
///
/// An idle connection holds the session, about 2 KiB, and rustls's buffer of 4 KiB, or of up to 20 KiB
/// after large records. During the handshake the peer can make it hold 64 KiB.
#[derive(Clone)]
pub struct TlsConn(Rc<Inner>);

struct Inner {
    conn: Conn,
    session: RefCell<Connection>,
    turn: Mutex<()>,
    /// What came along with the end of the handshake.
    unread: RefCell<Vec<u8>>,
    /// The peer has said that nothing more comes.
    ended: Cell<bool>,
    /// A task is about to send what the session has to say.
    answering: Cell<bool>,
}

/// Why there is no TLS connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("it speaks RTMP without TLS, and this port is for rtmps:// alone")]
    Plain,
    #[error("it left during the TLS handshake")]
    Left,
    #[error("TLS: {0}")]
    Protocol(#[from] rustls::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Slices that one call of rustls is given, which takes 64 KiB of them at most.
const SLICES: usize = 64;

/// How long the peer may take for an alert or an answer of the session: none is above a kilobyte.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The first byte of an RTMP connection: its version (RTMP 1.0 §5.2.2). TLS begins with 22.
const RTMP_VERSION: u8 = 3;

thread_local! {
    /// A core decrypts all its connections into one buffer; taken while it is in use.
    static PLAIN: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl TlsConn {
    pub(super) fn server(conn: Conn, config: Arc<ServerConfig>) -> Result<TlsConn, TlsError> {
        Ok(TlsConn::new(conn, ServerConnection::new(config)?.into()))
    }

    pub(super) fn client(
        conn: Conn,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<TlsConn, TlsError> {
        Ok(TlsConn::new(conn, ClientConnection::new(config, name)?.into()))
    }

    fn new(conn: Conn, session: Connection) -> TlsConn {
        TlsConn(Rc::new(Inner {
            conn,
            session: RefCell::new(session),
            turn: Mutex::new(()),
            unread: RefCell::default(),
            ended: Cell::new(false),
            answering: Cell::new(false),
        }))
    }

    pub(super) fn conn(&self) -> &Conn {
        &self.0.conn
    }

    /// Await this before anything else. The peer has `limit` to take each flight; how long it may take
    /// in all is the caller's affair.
    pub(super) async fn handshake(&self, limit: Duration) -> Result<(), TlsError> {
        let mut first = matches!(*self.0.session.borrow(), Connection::Server(_));
        loop {
            self.flush(limit).await?;
            if !self.0.session.borrow().is_handshaking() {
                return Ok(());
            }
            let take = |bytes: &[u8]| {
                if std::mem::take(&mut first) && bytes.first() == Some(&RTMP_VERSION) {
                    return Err(TlsError::Plain);
                }
                Ok(self.feed(bytes, &mut self.0.unread.borrow_mut())?)
            };
            match self.0.conn.read_with(take).await? {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    // The alert, should the peer still listen.
                    let _ = self.flush(limit).await;
                    return Err(error);
                }
                None => return Err(TlsError::Left),
            }
        }
    }

    /// As [`Conn::read_with`]. A peer that leaves without saying so in TLS has left all the same: RTMP
    /// tells by itself whether a message is whole.
    pub(super) async fn read_with<T>(
        &self,
        take: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<Option<T>> {
        let early = self.0.unread.take();
        if !early.is_empty() {
            return Ok(Some(take(&early)));
        }
        while !self.0.ended.get() {
            let decrypt = |bytes: &[u8]| {
                let mut plain = PLAIN.take();
                plain.clear();
                let result = self.feed(bytes, &mut plain);
                (plain, result)
            };
            let Some((plain, result)) = self.0.conn.read_with(decrypt).await? else { break };
            if self.0.session.borrow().wants_write() {
                self.answer();
            }
            result.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if plain.is_empty() {
                PLAIN.set(plain);
                continue;
            }
            let taken = take(&plain);
            PLAIN.set(plain);
            return Ok(Some(taken));
        }
        Ok(None)
    }

    /// Decrypts what was received, and appends what it says to `plain`.
    fn feed(&self, mut bytes: &[u8], plain: &mut Vec<u8>) -> Result<(), rustls::Error> {
        let session = &mut *self.0.session.borrow_mut();
        let general = |error: io::Error| rustls::Error::General(error.to_string());
        while !bytes.is_empty() && !self.0.ended.get() {
            session.read_tls(&mut bytes).map_err(general)?;
            let state = session.process_new_packets()?;
            let start = plain.len();
            plain.resize(start + state.plaintext_bytes_to_read(), 0);
            session.reader().read_exact(&mut plain[start..]).map_err(general)?;
            self.0.ended.set(state.peer_has_closed());
        }
        Ok(())
    }

    /// As [`Conn::send_within`]: encrypts 64 KiB at a time, and the next when the peer has taken them.
    pub(super) async fn send_within(
        &self,
        mut batch: Batch,
        limit: Duration,
    ) -> (Batch, io::Result<()>) {
        let _turn = self.0.turn.lock().await;
        let result = self.send_sealed(&mut batch, limit).await;
        batch.clear();
        (batch, result)
    }

    /// Sends what the session itself has to say.
    async fn flush(&self, limit: Duration) -> io::Result<()> {
        let _turn = self.0.turn.lock().await;
        self.send_sealed(&mut Batch::new(), limit).await
    }

    /// As [`TlsConn::flush`], by a task of its own: a wait to read may be dropped, a send may not.
    fn answer(&self) {
        // One at a time: a peer that reads nothing must not make a task of every record that it sends.
        if self.0.answering.replace(true) {
            return;
        }
        let this = self.clone();
        spawn_local(async move {
            // Whoever sends next notices what is wrong.
            let _ = this.flush(ANSWER_LIMIT).await;
            this.0.answering.set(false);
        });
    }

    /// Says that nothing more will come, so that the peer can tell the end from a cut.
    pub(super) async fn finish(&self, limit: Duration) {
        self.0.session.borrow_mut().send_close_notify();
        let _ = timeout(limit, self.flush(limit)).await;
    }

    /// The caller holds the turn.
    async fn send_sealed(&self, batch: &mut Batch, limit: Duration) -> io::Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            let sealed = self.seal(batch)?;
            if sealed.is_empty() {
                sealed.recycle();
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let (sealed, result) = self.0.conn.send_within(sealed, left).await;
            sealed.recycle();
            result?;
        }
    }

    /// The records of what the session has to say and of the next bytes of the batch. Nothing stays in
    /// the session, so rustls's own bound of 64 KiB is the bound of what is encrypted ahead.
    fn seal(&self, batch: &mut Batch) -> io::Result<Batch> {
        let session = &mut *self.0.session.borrow_mut();
        if !batch.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let mut count = 0;
            for (slice, bytes) in slices.iter_mut().zip(batch.unsent()) {
                *slice = IoSlice::new(bytes);
                count += 1;
            }
            let taken = session.writer().write_vectored(&slices[..count])?;
            if taken == 0 && !session.wants_write() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            batch.advance(taken);
        }
        let mut sealed = Batch::pooled();
        while session.wants_write() {
            session.write_tls(&mut Records(&mut sealed))?;
        }
        Ok(sealed)
    }
}

/// Takes whole records into a batch.
struct Records<'a>(&'a mut Batch);

impl Write for Records<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice]) -> io::Result<usize> {
        let len = slices.iter().map(|slice| slice.len()).sum();
        self.0.reserve(len);
        slices.iter().for_each(|slice| self.0.small(slice));
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
