//! Connections with limits: how many, how many of one address, how long one lasts and how long it may be silent.
//!
//! Who connects may be a tenant's code. Past a limit a connection is closed, so that nobody keeps others out for long.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Sleep;

/// How long open requests may take to end once the daemon stops.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// The limits of a listener.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    /// Connections at once; more wait to be accepted.
    pub all: usize,
    /// Connections at once of one address; more are closed at once.
    pub of_one_address: usize,
    /// How long one may last.
    pub lifetime: Duration,
    /// How long one may neither be read from nor written to.
    pub silence: Duration,
}

/// For people and tools on this machine.
pub const CONTROL: ConnectionLimits =
    ConnectionLimits { all: 256, of_one_address: 256, lifetime: Duration::from_secs(300), silence: Duration::from_secs(60) };

/// For pods: each fetches one package, within its install's 300 s.
pub const SOURCES: ConnectionLimits =
    ConnectionLimits { all: 1_024, of_one_address: 16, lifetime: Duration::from_secs(300), silence: Duration::from_secs(30) };

/// Serves until `shutdown` is there and open requests have ended, or were given up.
///
/// # Errors
/// When the listener fails for good.
pub async fn serve(
    listener: TcpListener,
    limits: ConnectionLimits,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let shutdown = shutdown.boxed().shared();
    let permits = Arc::new(Semaphore::new(limits.all));
    let limited = Limited { listener, limits, permits, by_address: Arc::new(Mutex::new(BTreeMap::new())) };
    let serving = axum::serve(limited, router).with_graceful_shutdown(shutdown.clone()).into_future();
    tokio::select! {
        biased;
        served = serving => served,
        () = async { shutdown.await; tokio::time::sleep(STOP_WITHIN).await } => {
            tracing::warn!("open requests were given up");
            Ok(())
        }
    }
}

type ByAddress = Arc<Mutex<BTreeMap<IpAddr, usize>>>;

struct Limited {
    listener: TcpListener,
    limits: ConnectionLimits,
    permits: Arc<Semaphore>,
    by_address: ByAddress,
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let permit = Arc::clone(&self.permits).acquire_owned().await.expect("the semaphore is never closed");
            let (stream, address) = Listener::accept(&mut self.listener).await;
            if let Some(share) = Share::take(&self.by_address, address.ip(), self.limits.of_one_address) {
                return (Connection::new(stream, self.limits, permit, share), address);
            }
            tracing::debug!(%address, "connection closed: this address has too many");
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// One of the connections that an address may have.
struct Share {
    by_address: ByAddress,
    address: IpAddr,
}

impl Share {
    fn take(by_address: &ByAddress, address: IpAddr, most: usize) -> Option<Self> {
        let mut counts = by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_insert(0);
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Self { by_address: Arc::clone(by_address), address })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut counts = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.get_mut(&self.address) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(&self.address)),
        }
    }
}

/// A connection that ends by itself.
struct Connection {
    stream: TcpStream,
    silence: Duration,
    /// Over: it has been silent for too long; put off by whatever moves.
    silent: Pin<Box<Sleep>>,
    /// Over: it has lasted long enough.
    end: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
    _share: Share,
}

impl Connection {
    fn new(stream: TcpStream, limits: ConnectionLimits, permit: OwnedSemaphorePermit, share: Share) -> Self {
        let silent = Box::pin(tokio::time::sleep(limits.silence));
        let end = Box::pin(tokio::time::sleep(limits.lifetime));
        Self { stream, silence: limits.silence, silent, end, _permit: permit, _share: share }
    }

    fn limited<T>(&mut self, ctx: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if self.end.as_mut().poll(ctx).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the connection lasted too long")));
        }
        if result.is_ready() {
            self.silent.as_mut().reset(crate::clock::now() + self.silence);
            return result;
        }
        match self.silent.as_mut().poll(ctx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the connection was silent for too long"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_read(ctx, buffer);
        self.limited(ctx, result)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(ctx, bytes);
        self.limited(ctx, result)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, ctx: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(ctx, bytes);
        self.limited(ctx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(ctx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, ctx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(ctx)
    }
}
