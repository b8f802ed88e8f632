//! Addresses that are known before anybody listens on them, and stay the same over restarts.

use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A port of this machine that the kernel gives to nobody who asks for any, neither to listen nor to
/// connect from, while this lives. Programs that set `SO_REUSEADDR`, as servers do, may listen on it;
/// until one does, connections are refused.
#[derive(Debug)]
pub struct Reserved {
    pub address: SocketAddr,
    /// Bound, and never listens.
    _socket: Socket,
}

impl Reserved {
    /// # Panics
    /// When there is no free port.
    #[must_use]
    pub fn take() -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.set_reuse_address(true).expect("an option");
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a free port");
        let address = socket.local_addr().expect("a bound socket").as_socket().expect("IPv4");
        Self { address, _socket: socket }
    }
}

/// An address for each listener of a gateway that starts more than once.
pub struct ReservedListeners([(&'static str, Reserved); 3]);

impl ReservedListeners {
    /// # Panics
    /// When there are no free ports.
    #[must_use]
    pub fn take() -> Self {
        Self(["--rtmp", "--http", "--admin"].map(|flag| (flag, Reserved::take())))
    }

    /// The gateway's arguments that name them.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let words = |(flag, at): &(&str, Reserved)| [(*flag).to_owned(), at.address.to_string()];
        self.0.iter().flat_map(words).collect()
    }
}
