use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::api::Api;
use super::{Admin, Control};
use crate::limits::{
    ACCEPT_RETRY, ADMIN_CONNECTIONS, ADMIN_HEAD_BYTES, ADMIN_HEADER_WAIT, ADMIN_STOP_WAIT,
};

/// The admin thread. Dropping it leaves the thread running; [`Running::stop`] ends it.
pub struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Running {
    /// Lets requests in flight end, for a bounded while, and closes the listener.
    pub fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

/// Serves `admin` on `listener`, in a thread of its own with a runtime of its own.
///
/// # Errors
/// When the thread, its runtime or the listener's registration cannot be had.
pub fn start<C: Control>(listener: TcpListener, admin: Admin<C>) -> io::Result<Running> {
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let on_loopback = address.ip().is_loopback();
    if !on_loopback {
        tracing::warn!(%address, "the admin listener asks for no password, and others may reach it");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let api = Arc::new(Api { admin, on_loopback });
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("weir-admin".to_owned())
        .spawn(move || runtime.block_on(serve(listener, api, stopped)))?;
    Ok(Running { stop, thread })
}

async fn serve<C: Control>(
    listener: tokio::net::TcpListener,
    api: Arc<Api<C>>,
    stopped: oneshot::Receiver<()>,
) {
    let connections = GracefulShutdown::new();
    tokio::select! {
        () = accept_all(&listener, &api, &connections) => {}
        _ = stopped => {}
    }
    drop(listener);
    let _ = timeout(ADMIN_STOP_WAIT, connections.shutdown()).await;
}

async fn accept_all<C: Control>(
    listener: &tokio::net::TcpListener,
    api: &Arc<Api<C>>,
    connections: &GracefulShutdown,
) {
    let slots = Arc::new(Semaphore::new(ADMIN_CONNECTIONS));
    // The semaphore is never closed, so the loop ends only with the thread.
    while let Ok(slot) = slots.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let connection = connections.watch(connection(stream, api.clone()));
                tokio::spawn(async move {
                    // A peer that breaks off or breaks HTTP is its own affair.
                    let _ = connection.await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "admin: cannot accept a connection");
                sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

fn connection<C: Control>(
    stream: TcpStream,
    api: Arc<Api<C>>,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = hyper::Error> {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let api = api.clone();
        async move { Ok::<_, Infallible>(api.answer(request).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ADMIN_HEADER_WAIT)
        .max_buf_size(ADMIN_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
}
