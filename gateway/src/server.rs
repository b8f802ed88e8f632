//! The process: what is set up in which order, so that nothing is ever half-started, and how it
//! stops.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use rustls::ServerConfig;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::admin::{self, Admin};
use crate::auth::Door;
use crate::certificates::Certificates;
use crate::config::Config;
use crate::control::Cores;
use crate::core::admission::Admission;
use crate::core::mailbox::mailbox;
use crate::core::serve::{Seat, serve};
use crate::core::{Core, CoreId, runtime};
use crate::io::{Arena, Backend, Listener as CoreListener, allowed_cpus, probe, raise_fd_limit};
use crate::metrics::{Counters, Exporter};
use crate::process::Process;
use crate::relay::Demand;
use crate::stream::Registry;
use crate::trust::Clients;
use crate::{Listener, StartError, limits, log};

/// Starts the gateway and runs it until SIGTERM or SIGINT.
///
/// # Errors
/// Says what is in the way and what to do about it. Nothing serves then.
pub fn run(config: Config) -> Result<(), StartError> {
    log::start(&config.log).map_err(system("start the log"))?;
    let gateway = Gateway::start(Arc::new(config))?;
    gateway.say_ready();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(system("wait for signals"))?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(system("wait for signals"))?;
        tokio::select! {
            () = signals.next() => {}
            result = keep_certificates(gateway.certificates.as_deref()) => result?,
        }
        gateway.stop(signals).await;
        Ok(())
    })
}

/// Everything that runs.
struct Gateway {
    addresses: Addresses,
    backend: Backend,
    cores: Cores,
    threads: Vec<JoinHandle<()>>,
    admin: admin::Running,
    certificates: Option<Arc<Certificates>>,
}

struct Addresses {
    rtmp: SocketAddr,
    rtmps: Option<SocketAddr>,
    http: SocketAddr,
    admin: SocketAddr,
}

/// The listening sockets: those of each core, and the admin's.
struct Sockets {
    addresses: Addresses,
    cores: Vec<CoreSockets>,
    admin: TcpListener,
}

struct CoreSockets {
    rtmp: TcpListener,
    rtmps: Option<TcpListener>,
    http: TcpListener,
}

impl Gateway {
    /// First everything that can be refused, then threads.
    fn start(config: Arc<Config>) -> Result<Self, StartError> {
        raise_descriptor_limit(&config);
        let cpus = config
            .cores
            .choose(&allowed_cpus().map_err(system("read the CPU mask"))?.into_iter().collect())?;
        let (backend, note) = probe::select(config.io)?;
        if let Some(note) = &note {
            tracing::warn!("{note}");
        }
        let clients = Arc::new(Clients::new(config.relays.trusts())?);
        let certificates = Certificates::open(&config.tls)?;
        let sockets = Sockets::bind(&config, cpus.len())?;
        let budget = usize::try_from(config.memory.max).unwrap_or(usize::MAX);
        let arena = Arena::reserve(budget).map_err(system("reserve address space for media"))?;
        let counters: Vec<_> = cpus.iter().map(|_| Arc::new(Counters::default())).collect();
        let process = Arc::new(Process {
            started: Instant::now(),
            started_at: SystemTime::now(),
            io_backend: backend.name(),
            io_note: note,
            cpus: cpus.clone(),
            arena,
            certificates: certificates.clone(),
        });
        let exporter = Exporter::new(counters.clone(), process.clone());
        let tls = certificates.as_ref().map(Certificates::server_config).transpose();
        let tls = tls.map_err(|error| system("set up TLS")(io::Error::other(error)))?;
        let Sockets { addresses, cores, admin } = sockets;
        let crew = Crew { config, clients, arena, backend, counters, cpus };
        let (cores, threads) = crew.start(cores, tls)?;
        let admin = admin::start(admin, Admin { control: cores.clone(), process, exporter })
            .map_err(system("start the admin thread"))?;
        Ok(Self { addresses, backend, cores, threads, admin, certificates })
    }

    /// One line for people and programs that wait for it: every listener takes connections now.
    fn say_ready(&self) {
        let Addresses { rtmp, rtmps, http, admin } = &self.addresses;
        let rtmps = rtmps.map_or_else(String::new, |rtmps| format!(" rtmps={rtmps}"));
        let (io, cores) = (self.backend.name(), self.threads.len());
        let line = format!(
            "weir ready rtmp={rtmp}{rtmps} http={http} admin={admin} io={io} cores={cores}\n"
        );
        let mut stdout = io::stdout();
        // Nobody may be there to read it.
        let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    }

    /// Gives players their clean end, within [`limits::STOP_TIME`]; a second signal skips that.
    async fn stop(self, mut signals: Signals) {
        tracing::info!("stopping");
        self.cores.stop();
        let (done, stopped) = tokio::sync::oneshot::channel();
        let threads = self.threads;
        std::thread::spawn(move || {
            for thread in threads {
                let _ = thread.join();
            }
            let _ = done.send(());
        });
        tokio::select! {
            _ = stopped => {}
            () = tokio::time::sleep(limits::STOP_TIME) => tracing::warn!("a core did not stop in time"),
            () = signals.next() => tracing::warn!("stopping at once"),
        }
        drop(self.admin);
    }
}

/// What the cores are made of.
struct Crew {
    config: Arc<Config>,
    clients: Arc<Clients>,
    arena: &'static Arena,
    backend: Backend,
    counters: Vec<Arc<Counters>>,
    cpus: Vec<usize>,
}

impl Crew {
    fn start(
        self,
        sockets: Vec<CoreSockets>,
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<(Cores, Vec<JoinHandle<()>>), StartError> {
        let registry = Arc::new(Registry::default());
        let door = Arc::new(Door::new(self.config.publish_keys.clone()));
        if door.is_open() {
            tracing::info!("anybody may publish: there is no [[publish_key]] in the configuration");
        }
        let demand = Arc::<Demand>::default();
        let admission = Arc::new(Admission::new(self.config.limits.clone()));
        let (mailboxes, inboxes): (Vec<_>, Vec<_>) =
            self.cpus.iter().map(|_| mailbox(limits::MAILBOX_MESSAGES)).unzip();
        let (started, starting) = mpsc::channel();
        let mut threads = Vec::new();
        let seats = sockets.into_iter().zip(inboxes);
        for (index, (sockets, inbox)) in seats.enumerate() {
            let (config, registry, door) = (self.config.clone(), registry.clone(), door.clone());
            let (demand, clients) = (demand.clone(), self.clients.clone());
            let (counters, arena) = (self.counters[index].clone(), self.arena);
            let (mailboxes, cpu, backend) = (mailboxes.clone(), self.cpus[index], self.backend);
            let CoreSockets { rtmp, rtmps, http } = sockets;
            let seat = Seat {
                rtmp,
                rtmps: rtmps.zip(tls.clone()),
                http,
                inbox,
                admission: admission.clone(),
            };
            let started = started.clone();
            let thread = std::thread::Builder::new().name(format!("weir-core-{index}"));
            let body = move || {
                let started_here = started.clone();
                let life = async move {
                    let id = CoreId(index);
                    let core = Core::new(id, config, registry, counters, arena, mailboxes);
                    let core = core.behind(door).with_demand(demand).with_clients(clients);
                    serve(Rc::new(core), seat, || drop(started_here.send(Ok(())))).await
                };
                if let Err(error) = runtime::run(backend, Some(cpu), life).and_then(|end| end) {
                    let _ = started.send(Err(error));
                }
            };
            threads.push(thread.spawn(body).map_err(system("start a core's thread"))?);
        }
        drop(started);
        for _ in &threads {
            let result = starting.recv().map_err(|_| io::Error::other("its thread ended"));
            result.and_then(|result| result).map_err(system("start a core"))?;
        }
        Ok((Cores { mailboxes, stopping: Arc::new(AtomicBool::new(false)) }, threads))
    }
}

impl Sockets {
    fn bind(config: &Config, cores: usize) -> Result<Self, StartError> {
        let group = |listener, address| {
            CoreListener::bind_group(address, cores)
                .map_err(|error| StartError::listen(listener, address, error))
        };
        let (rtmp_address, rtmp) = group(Listener::Rtmp, config.rtmp)?;
        let rtmps = config.rtmps.address(&config.tls);
        let rtmps = rtmps.map(|address| group(Listener::Rtmps, address)).transpose()?;
        let (rtmps_address, rtmps) = rtmps.unzip();
        let (http_address, http) = group(Listener::Http, config.http)?;
        let (admin_address, admin) = CoreListener::bind_group(config.admin, 1)
            .map_err(|error| StartError::listen(Listener::Admin, config.admin, error))?;
        let admin = admin.into_iter().next().ok_or_else(|| {
            StartError::listen(Listener::Admin, config.admin, io::ErrorKind::Other.into())
        })?;
        let mut rtmps = rtmps.into_iter().flatten();
        let of_core = |(rtmp, http)| CoreSockets { rtmp, rtmps: rtmps.next(), http };
        let cores = rtmp.into_iter().zip(http).map(of_core).collect();
        let addresses = Addresses {
            rtmp: rtmp_address,
            rtmps: rtmps_address,
            http: http_address,
            admin: admin_address,
        };
        Ok(Self { addresses, cores, admin })
    }
}

/// Looks after the certificate, if there is one, for ever.
async fn keep_certificates(certificates: Option<&Certificates>) -> Result<(), StartError> {
    let Some(certificates) = certificates else { return std::future::pending().await };
    let mut again = signal(SignalKind::hangup()).map_err(system("wait for signals"))?;
    let mut looks = tokio::time::interval(limits::CERTIFICATE_LOOK);
    loop {
        tokio::select! {
            _ = again.recv() => certificates.reload(),
            _ = looks.tick() => certificates.look(),
        }
    }
}

/// The signals that end the process.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A connection is a descriptor, so the soft limit of old days would be the real bound.
fn raise_descriptor_limit(config: &Config) {
    match raise_fd_limit() {
        Ok(limit) if (limit.after as usize) < config.limits.connections => tracing::warn!(
            descriptors = limit.after,
            connections = config.limits.connections,
            "fewer file descriptors than limits.connections: raise the hard limit (ulimit -Hn)"
        ),
        Ok(limit) => tracing::info!(descriptors = limit.after, "file descriptors"),
        Err(error) => tracing::warn!(%error, "the limit of file descriptors cannot be raised"),
    }
}

fn system(action: &'static str) -> impl Fn(io::Error) -> StartError {
    move |error| StartError::System { action, error }
}
