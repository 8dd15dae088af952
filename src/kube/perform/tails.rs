//! The last lines of a container, as bytes and bounded. A failure here changes nothing but that there is no tail.

use std::fmt;
use std::time::Duration;

use super::Cluster;
use crate::events::kinds::pod::{Container, ContainerState};
use crate::events::kinds::tail::TailLack;
use crate::ids::{HostName, Uid};
use crate::kube::answer::{Answer, Reply};
use crate::kube::call::{NoAnswer, Request, send};
use crate::kube::convert::INSTALL;
use crate::kube::redact::Cut;
use crate::kube::tail::{LINES, ends};

/// How long a tail may take, all requests together.
pub const TAIL_LIMIT: Duration = Duration::from_secs(5);

/// The most that is read, bytes: 300 lines of 2 KiB, and as much again for what is cut.
const READ_BYTES: usize = 1 << 20;

/// What a container printed last, not redacted: it is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct RawTail {
    /// As it was answered, at most 1 MiB.
    pub bytes: Vec<u8>,
    /// Which ends are cut.
    pub ends: Cut,
    /// Whether the container had ended: then these are its last words.
    pub ended: bool,
}

impl fmt::Debug for RawTail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {:?}, ended {}", self.bytes.len(), self.ends, self.ended)
    }
}

impl Cluster {
    /// Reads the last lines of a container of exactly this pod, or of its run before the last restart.
    ///
    /// # Errors
    /// When they cannot be had; a container that has not started has none.
    pub async fn read_tail(&self, host: &HostName, uid: &Uid, container: &str, previous: bool) -> Result<RawTail, TailLack> {
        match tokio::time::timeout(TAIL_LIMIT, self.tail_within(host, uid, container, previous)).await {
            Ok(tail) => tail,
            Err(_) => Err(TailLack::TimedOut),
        }
    }

    async fn tail_within(&self, host: &HostName, uid: &Uid, container: &str, previous: bool) -> Result<RawTail, TailLack> {
        let mut lines = LINES;
        let bytes = loop {
            let bytes = self.log(host, container, previous, lines).await?;
            // The server cuts the end off, and the end is what is wanted: ask for fewer lines.
            if bytes.len() < READ_BYTES || lines <= 3 {
                break bytes;
            }
            lines /= 10;
        };
        // A log is read by name: only if the pod is the same afterwards was it this pod's.
        let pod = match self.pod_now(host).await {
            Ok(Some(pod)) if pod.seen.uid == *uid => pod,
            Ok(_) => return Err(TailLack::Gone),
            Err(Answer::RetryLater { .. }) => return Err(TailLack::TimedOut),
            Err(_) => return Err(TailLack::Refused),
        };
        let state = if container == INSTALL { &pod.seen.install } else { &pod.seen.app };
        if bytes.is_empty() && !has_started(state) {
            return Err(TailLack::NotStarted);
        }
        let mut ends = ends(&bytes, lines, READ_BYTES);
        ends.begin |= lines < LINES;
        Ok(RawTail { bytes, ends, ended: previous || matches!(state.state, ContainerState::Ended(_)) })
    }

    async fn log(&self, host: &HostName, container: &str, previous: bool, lines: usize) -> Result<Vec<u8>, TailLack> {
        let before = if previous { "&previous=true" } else { "" };
        let query = format!("container={container}&tailLines={lines}&limitBytes={READ_BYTES}{before}");
        let path = format!("{}/log?{query}", self.path("pods", host.as_str()));
        let request = Request { accept: "*/*", limit: READ_BYTES, ..Request::get(path) };
        match send(&self.0.client, request, TAIL_LIMIT).await {
            Ok(Reply { status: 200..=299, body, .. }) => Ok(body),
            Ok(reply) => Err(lack(&reply)),
            Err(NoAnswer::NotSent(_) | NoAnswer::Lost(_)) => Err(TailLack::TimedOut),
        }
    }
}

fn lack(reply: &Reply) -> TailLack {
    match reply.status {
        400 if reply.api_status().message.contains("waiting to start") => TailLack::NotStarted,
        404 => TailLack::Gone,
        _ => TailLack::Refused,
    }
}

fn has_started(container: &Container) -> bool {
    container.last_end.is_some() || matches!(container.state, ContainerState::Running { .. } | ContainerState::Ended(_))
}
