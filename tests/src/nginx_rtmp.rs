//! Debian's nginx with its RTMP module: a server that other people wrote.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use crate::{Process, Reserved, Scratch, wait_until};

/// A running nginx that takes any stream of the application `live`, and gives it to players.
pub struct NginxRtmp {
    process: Process,
    pub address: SocketAddr,
    _reserved: Reserved,
    _scratch: Scratch,
}

impl NginxRtmp {
    /// # Panics
    /// When nginx or its module is missing, or does not start.
    #[must_use]
    pub fn start() -> Self {
        let scratch = Scratch::new();
        let reserved = Reserved::take();
        let address = reserved.address;
        let configuration = scratch.file("nginx.conf");
        fs::write(&configuration, text(address)).expect("a file");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(scratch.path()).args(["-e", "stderr", "-c"]).arg(&configuration);
        let process = Process::start("nginx-rtmp", &mut command, scratch.path());
        let mut nginx = Self { process, address, _reserved: reserved, _scratch: scratch };
        wait_until("nginx (run `make setup` if it is missing)", Duration::from_secs(10), || {
            nginx.process.assert_running();
            TcpStream::connect(nginx.address).ok()
        });
        nginx
    }
}

fn text(address: SocketAddr) -> String {
    format!(
        "load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
        daemon off; worker_processes 1; pid nginx.pid; error_log stderr info; user root;
        events {{ worker_connections 64; }}
        rtmp {{ server {{ listen {address}; application live {{ live on; }} }} }}"
    )
}
