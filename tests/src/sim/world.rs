//! The gateway under test: its cores, and the ways into it.

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use tokio::net::UnixStream;
use tokio::task::spawn_local;
use weir::config::Config;
use weir::control::Cores;
use weir::core::admission::Admission;
use weir::core::mailbox::mailbox;
use weir::core::serve::{Protocol, let_in, live};
use weir::core::{Core, CoreId};
use weir::io::{Arena, Conn};
use weir::limits;
use weir::stream::Registry;
use weir_protocol::stream_name::StreamName;

/// What all streams of a simulation may hold: an eighth of what Weir may hold by default.
const MEDIA_BYTES: usize = 128 << 20;

/// Sends wait for a peer that has not taken so much, in bytes: a slow one is to be felt soon.
const SOCKET_BYTES: usize = 32 * 1024;

pub struct World {
    pub cores: Vec<Rc<Core>>,
    /// The operator's side.
    pub control: Cores,
    pub registry: Arc<Registry>,
    pub arena: &'static Arena,
    admission: Arc<Admission>,
    peers: Cell<u32>,
}

impl World {
    /// Brings `cores` cores to life, on the runtime of [`super::clockwork`].
    ///
    /// # Panics
    /// When there is no address space for media.
    #[must_use]
    pub fn new(config: Config, cores: usize) -> Rc<Self> {
        let (config, arena) = (Arc::new(config), arena());
        let registry = Arc::new(Registry::default());
        let admission = Arc::new(Admission::new(config.limits.clone()));
        let (mailboxes, inboxes): (Vec<_>, Vec<_>) =
            (0..cores).map(|_| mailbox(limits::MAILBOX_MESSAGES)).unzip();
        let core = |(index, inbox)| {
            let (config, registry, mailboxes) =
                (config.clone(), registry.clone(), mailboxes.clone());
            let core = Core::new(CoreId(index), config, registry, Arc::default(), arena, mailboxes);
            let core = Rc::new(core);
            spawn_local(live(core.clone(), inbox));
            core
        };
        let cores = inboxes.into_iter().enumerate().map(core).collect();
        let control = Cores { mailboxes, stopping: Arc::default() };
        Rc::new(Self { cores, control, registry, arena, admission, peers: Cell::new(0) })
    }

    /// A new peer's end of its connection with a core.
    ///
    /// # Panics
    /// When the system has no more descriptors.
    #[must_use]
    pub fn connect(&self, core: usize, protocol: Protocol) -> UnixStream {
        let (near, far) = std::os::unix::net::UnixStream::pair().expect("a descriptor");
        far.set_nonblocking(true).expect("a socket option");
        let room = socket2::SockRef::from(&near).set_send_buffer_size(SOCKET_BYTES);
        room.expect("a socket option");
        let number = self.peers.get() + 1;
        self.peers.set(number);
        let peer = SocketAddr::from((Ipv4Addr::from(10 << 24 | number), 40_000));
        let conn = Conn::from_fd(near.into(), peer).expect("a descriptor");
        let core = &self.cores[core % self.cores.len()];
        let_in(core, conn, peer, protocol, &self.admission);
        UnixStream::from_std(far).expect("a descriptor")
    }

    /// Checks what holds whenever all tasks wait.
    ///
    /// # Panics
    /// When a name has two owners, or another than the registry says.
    pub fn check(&self) {
        let mut owners: Vec<(StreamName, usize, u64)> = Vec::new();
        for core in &self.cores {
            for stream in core.streams().iter().filter(|stream| !stream.is_replica()) {
                owners.push((stream.name.clone(), core.id.0, stream.generation.get()));
            }
        }
        owners.sort();
        for pair in owners.windows(2) {
            assert!(pair[0].0 != pair[1].0, "two owners of a name: {pair:?}");
        }
        for (name, core, generation) in owners {
            let entry = self.registry.find(&name);
            let entry =
                entry.unwrap_or_else(|| panic!("nobody should own {name}, core {core} does"));
            assert_eq!((entry.owner.0, entry.generation), (core, generation), "owner of {name}");
        }
    }

    #[must_use]
    pub fn is_at_rest(&self, names: &[StreamName]) -> bool {
        let forgotten = |name: &StreamName| self.registry.find(name).is_none();
        self.cores.iter().all(|core| core.is_at_rest()) && names.iter().all(forgotten)
    }

    /// What keeps the world from rest.
    #[must_use]
    pub fn remains(&self, names: &[StreamName]) -> String {
        let core = |core: &Rc<Core>| {
            let streams: Vec<_> = core.streams().iter().map(|stream| stream.name.clone()).collect();
            let mut connections = Vec::new();
            core.connections.for_each(|connection| {
                connections.push((connection.peer, connection.role()));
            });
            format!("core {}: streams {streams:?}, connections {connections:?}\n", core.id.0)
        };
        let claimed: Vec<_> =
            names.iter().filter(|name| self.registry.find(name).is_some()).collect();
        let cores: String = self.cores.iter().map(core).collect();
        format!("{cores}claimed {claimed:?}")
    }

    /// Stops the cores. Nothing may be left once their tasks have ended.
    pub fn stop(&self) {
        self.control.stop();
    }
}

/// One for all worlds of a thread, since arenas stay for the life of the process.
///
/// # Panics
/// When there is no address space for media.
#[must_use]
pub fn arena() -> &'static Arena {
    thread_local! {
        static ARENA: OnceLock<&'static Arena> = const { OnceLock::new() };
    }
    ARENA.with(|arena| {
        *arena.get_or_init(|| Arena::reserve(MEDIA_BYTES).expect("address space for media"))
    })
}
