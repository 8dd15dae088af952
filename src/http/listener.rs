//! Connections with limits: how many, how many of one address, how long one lasts and how long it may be silent.
//!
//! Who connects may be a tenant's code, and many pods may have one address, that of their node. Past its address's share a
//! connection waits, within limits of their own, so that nobody keeps others out for long.

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
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
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
    /// Connections at once of one address; more wait for one of them to end.
    pub of_one_address: usize,
    /// Connections that wait for their address's share, of all addresses; more are closed at once.
    pub waiting: usize,
    /// How many of these are of one address.
    pub waiting_of_one_address: usize,
    /// How long one waits; then it is closed.
    pub wait: Duration,
    /// How long one may last.
    pub lifetime: Duration,
    /// How long one may neither be read from nor written to.
    pub silence: Duration,
}

/// For people and tools on this machine.
pub const CONTROL: ConnectionLimits = ConnectionLimits {
    all: 256,
    of_one_address: 256,
    waiting: 0,
    waiting_of_one_address: 0,
    wait: Duration::ZERO,
    lifetime: Duration::from_secs(300),
    silence: Duration::from_secs(60),
};

/// For pods: each fetches one package, within its install's 300 s.
pub const SOURCES: ConnectionLimits = ConnectionLimits {
    all: 1_024,
    of_one_address: 16,
    waiting: 512,
    waiting_of_one_address: 128,
    wait: Duration::from_secs(30),
    lifetime: Duration::from_secs(300),
    silence: Duration::from_secs(30),
};

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
    let limited = Limited { listener, limits, permits, by_address: ByAddress::default(), waiting: FuturesUnordered::new() };
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

type ByAddress = Arc<Mutex<BTreeMap<IpAddr, Address>>>;

/// What is connected from one address.
struct Address {
    shares: Arc<Semaphore>,
    /// Connections, those that wait too.
    connections: usize,
}

struct Limited {
    listener: TcpListener,
    limits: ConnectionLimits,
    permits: Arc<Semaphore>,
    by_address: ByAddress,
    /// Past their address's share: `None` when it was not had in time.
    waiting: FuturesUnordered<BoxFuture<'static, Option<(Connection, SocketAddr)>>>,
}

impl Listener for Limited {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let Self { listener, permits, waiting, .. } = self;
            let accepting = async {
                let permit = permit(permits).await;
                (permit, Listener::accept(listener).await)
            };
            let (permit, (stream, address)) = tokio::select! {
                biased;
                Some(waited) = waiting.next() => match waited {
                    Some(connection) => return connection,
                    None => continue,
                },
                accepted = accepting => accepted,
            };
            let Some(place) = Place::take(&self.by_address, address.ip(), self.limits) else {
                tracing::debug!(%address, "connection closed: this address has too many");
                continue;
            };
            match Arc::clone(&place.shares).try_acquire_owned() {
                Ok(share) => return (Connection::new(stream, self.limits, permit, share, place), address),
                Err(_) if self.waiting.len() < self.limits.waiting => {
                    drop(permit);
                    self.waiting.push(wait(stream, address, place, self.limits, Arc::clone(&self.permits)).boxed());
                }
                Err(_) => tracing::debug!(%address, "connection closed: too many wait"),
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

async fn permit(permits: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(permits).acquire_owned().await.expect("the semaphore is never closed")
}

/// Waits for a share of the address, then for a place among all.
async fn wait(
    stream: TcpStream,
    address: SocketAddr,
    place: Place,
    limits: ConnectionLimits,
    permits: Arc<Semaphore>,
) -> Option<(Connection, SocketAddr)> {
    let both = async { (permit(&place.shares).await, permit(&permits).await) };
    let Ok((share, permit)) = tokio::time::timeout(limits.wait, both).await else {
        tracing::debug!(%address, "connection closed: this address had too many for too long");
        return None;
    };
    Some((Connection::new(stream, limits, permit, share, place), address))
}

/// One of the connections that an address may have, those that wait included.
struct Place {
    by_address: ByAddress,
    address: IpAddr,
    shares: Arc<Semaphore>,
}

impl Place {
    fn take(by_address: &ByAddress, address: IpAddr, limits: ConnectionLimits) -> Option<Self> {
        let mut addresses = by_address.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Address { shares: Arc::new(Semaphore::new(limits.of_one_address)), connections: 0 };
        let of_address = addresses.entry(address).or_insert_with(new);
        if of_address.connections >= limits.of_one_address + limits.waiting_of_one_address {
            return None;
        }
        of_address.connections += 1;
        Some(Self { by_address: Arc::clone(by_address), address, shares: Arc::clone(&of_address.shares) })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut addresses = self.by_address.lock().unwrap_or_else(PoisonError::into_inner);
        match addresses.get_mut(&self.address) {
            Some(of_address) if of_address.connections > 1 => of_address.connections -= 1,
            _ => drop(addresses.remove(&self.address)),
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
    _share: OwnedSemaphorePermit,
    _place: Place,
}

impl Connection {
    fn new(stream: TcpStream, limits: ConnectionLimits, permit: OwnedSemaphorePermit, share: OwnedSemaphorePermit, place: Place) -> Self {
        let silent = Box::pin(tokio::time::sleep(limits.silence));
        let end = Box::pin(tokio::time::sleep(limits.lifetime));
        Self { stream, silence: limits.silence, silent, end, _permit: permit, _share: share, _place: place }
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
