//! Lists the Secrets beside the watch of the pods: whenever it is asked to, until they can be had. What cannot be listed holds
//! nobody up but the first plans of an incarnation, and those for a bounded time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use crate::events::kinds::pod::SecretSeen;
use crate::ids::AppId;
use crate::kube::labels::Ownership;
use crate::kube::perform::{Cluster, SecretList};
use crate::kube::throttle::backoff;

/// How long the first plans of an incarnation wait for the Secrets. One that nobody listed is unknown: it is read by name before
/// anything is concluded of it.
pub(super) const WAIT: Duration = Duration::from_secs(60);

/// What the list comes to.
#[derive(Debug)]
pub(super) enum Secrets {
    /// They are listed, by app.
    Listed {
        /// The list's version.
        version: u64,
        /// Those of ours that stay.
        seen: BTreeMap<AppId, Vec<SecretSeen>>,
    },
    /// They are not, for [`WAIT`] since it was asked; told once, and it is tried on.
    Late,
}

/// Runs until nobody listens any more: lists once for each time, or more times in a row, that it is asked.
pub(super) async fn run(cluster: Cluster, asked: Arc<Notify>, sink: mpsc::Sender<Secrets>) {
    loop {
        asked.notified().await;
        let listing = list(&cluster);
        tokio::pin!(listing);
        let in_time = tokio::select! {
            biased;
            list = &mut listing => Some(list),
            () = tokio::time::sleep(WAIT) => None,
        };
        let list = match in_time {
            Some(list) => list,
            None if sink.send(Secrets::Late).await.is_err() => return,
            None => listing.await,
        };
        if sink.send(by_app(list)).await.is_err() {
            return;
        }
    }
}

async fn list(cluster: &Cluster) -> SecretList {
    let mut tries = 0;
    loop {
        match cluster.list_secrets().await {
            Ok(list) => return list,
            Err(answer) => {
                tries += 1;
                tracing::warn!(?answer, tries, "the secrets cannot be listed");
                tokio::time::sleep(Duration::from_micros(backoff(tries, u64::from(tries)))).await;
            }
        }
    }
}

fn by_app(list: SecretList) -> Secrets {
    let mut seen: BTreeMap<AppId, Vec<SecretSeen>> = BTreeMap::new();
    for secret in list.secrets.into_iter().filter(|secret| !secret.deleting) {
        if let Ownership::Ours(app) = secret.ownership {
            let (host, object) = (secret.host, secret.object);
            seen.entry(app).or_default().push(SecretSeen { host, uid: object.uid, resource_version: object.resource_version });
        }
    }
    Secrets::Listed { version: list.version, seen }
}
