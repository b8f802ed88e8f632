//! Debian's nginx with one file.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::cpu::SERVER_CPU;
use crate::http::Client;
use crate::{Process, Reserved, Scratch, wait_until};

/// A running nginx with one worker on [`SERVER_CPU`].
pub struct Nginx {
    process: Process,
    reserved: Reserved,
    /// The file's directory, in memory.
    root: PathBuf,
    _scratch: Scratch,
}

impl Nginx {
    /// # Panics
    /// When nginx is missing or does not start.
    #[must_use]
    pub fn serve(bytes: &[u8]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = PathBuf::from(format!("/dev/shm/weir-bench-{}-{number}", std::process::id()));
        fs::create_dir_all(&root).expect("a directory in memory");
        fs::write(root.join("segment"), bytes).expect("room in memory");
        let scratch = Scratch::new();
        let reserved = Reserved::take();
        let configuration = scratch.file("nginx.conf");
        fs::write(&configuration, text(&root, reserved.address.port())).expect("a file");
        let cpu = SERVER_CPU.to_string();
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &cpu, "nginx", "-p"]).arg(scratch.path());
        command.args(["-e", "stderr", "-c"]).arg(&configuration);
        let process = Process::start("nginx", &mut command, scratch.path());
        let mut nginx = Self { process, reserved, root, _scratch: scratch };
        wait_until("nginx (run `make setup` if it is missing)", Duration::from_secs(5), || {
            nginx.process.assert_running();
            Client::default().try_get(&nginx.url()).ok().filter(|answer| answer.status == 200)
        });
        nginx
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/segment", self.reserved.address)
    }

    /// The process that serves.
    ///
    /// # Panics
    /// When it is not there.
    #[must_use]
    pub fn worker(&self) -> u32 {
        let master = format!(" {} ", self.process.id());
        let processes = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
        let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_child = |id: &u32| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            // State and parent follow the name in brackets.
            let rest = stat.rsplit(')').next().and_then(|rest| rest.get(2..));
            rest.is_some_and(|rest| rest.starts_with(&master))
        };
        ids.find(is_child).expect("nginx's worker")
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn text(root: &std::path::Path, port: u16) -> String {
    let root = root.display();
    format!(
        "daemon off; worker_processes 1; pid nginx.pid; error_log stderr warn;
        user root;
        events {{ worker_connections 1024; }}
        http {{
            access_log off; sendfile on; tcp_nopush off; tcp_nodelay on;
            keepalive_requests 1000000000; default_type video/mp4;
            client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;
            uwsgi_temp_path t4; scgi_temp_path t5;
            server {{ listen 127.0.0.1:{port}; root {root}; }}
        }}"
    )
}
