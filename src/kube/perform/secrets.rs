//! Secrets: put by uid and resourceVersion, deleted by uid, read as metadata alone; whole only to redact a tail.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::pods::Doomed;
use super::{Cluster, Performed, Performing, Target, object_of};
use crate::events::kinds::step::{ObjectSeen, Refusal};
use crate::ids::{AppId, HostName, Uid};
use crate::kube::answer::{Answer, Verb, sort};
use crate::kube::call::{METADATA, METADATA_LIST, PAGE_BYTES, Request, escaped, send};
use crate::kube::environment::Environment;
use crate::kube::labels::Ownership;
use crate::kube::manifest::Order;
use crate::kube::redact::{Cut, Redactor};
use crate::kube::view::{self, Meta, MetaView, tolerant};

const SECRETS: &str = "secrets";

/// Objects a page.
const PAGE: u32 = 500;

/// The most pages of a list that are followed.
const PAGES: u32 = 400;

/// A Secret of ours as a list showed it, without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretMeta {
    /// Whose it is.
    pub ownership: Ownership,
    /// The host whose environment it holds.
    pub host: HostName,
    /// Its identity and version.
    pub object: ObjectSeen,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// A complete list of the Secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretList {
    /// The list's version: what is newer was not to be in it.
    pub version: u64,
    /// Those that are there.
    pub secrets: Vec<SecretMeta>,
}

impl Cluster {
    /// Creates or replaces the host's Secret. Without a file (the environment could not be fetched) a present one will do when
    /// `present_will_do`. A Secret of that name that is not the app's is refused and stays as it is.
    pub async fn put_secret(&self, order: &Order, file: Option<&str>, present_will_do: bool) -> Performed {
        let mut trying = self.begin_order(order);
        let (answer, object) = match file {
            Some(file) => trying.put(order, file).await,
            None if present_will_do => match trying.present(order).await {
                Ok(meta) => (Answer::AlreadySo, object_of(&meta)),
                // There is none: it is tried again, until the environment can be fetched.
                Err(Answer::Gone) => (Answer::AGAIN, None),
                Err(answer) => (answer, None),
            },
            None => (Answer::AGAIN, None),
        };
        let mut performed = trying.end(answer, object, None);
        // The server may quote what it refuses.
        let environment = file.and_then(Environment::parse);
        performed.explained = match (performed.explained, environment) {
            (Some(words), Some(environment)) => Some(Redactor::new(&environment).redact(&words, Cut { begin: true, end: true })),
            (words, None) => words.filter(|_| file.is_none()),
            (None, Some(_)) => None,
        };
        performed
    }

    /// Deletes exactly this Secret.
    pub async fn delete_secret(&self, order: &Order, uid: &Uid) -> Performed {
        let name = order.host.secret();
        self.delete(order, &Doomed { resource: SECRETS, name: &name, uid, grace_s: None }).await
    }

    /// Reads the metadata of the host's Secret, after a write that was never answered.
    pub async fn read_secret(&self, order: &Order) -> Performed {
        let mut trying = self.begin_order(order);
        let (answer, object) = match trying.present(order).await {
            Ok(meta) => (Answer::Done, object_of(&meta)),
            // There, and going: read again until it is gone.
            Err(answer) => (answer, None),
        };
        trying.end(answer, object, None)
    }

    /// The environment that the host's Secret holds, to redact a tail and for nothing else; `None` when there is none of ours.
    ///
    /// # Errors
    /// With what to do next, when it could not be read.
    pub async fn secret_env(&self, app: &AppId, host: &HostName) -> Result<Option<Environment>, Answer> {
        let name = host.secret();
        let request = Request::get(self.path(SECRETS, &name));
        let Ok(reply) = send(&self.0.client, request, self.0.limit).await else { return Err(Answer::AGAIN) };
        let answer = sort(Verb::Read, &name, &reply);
        if answer == Answer::Gone {
            return Ok(None);
        }
        if answer != Answer::Done {
            return Err(answer);
        }
        let secret: Value = serde_json::from_slice(&reply.body).map_err(|_| Answer::AGAIN)?;
        let (view, _) = tolerant::<MetaView>(&secret);
        let file = secret.pointer("/data/env").and_then(Value::as_str).and_then(|text| BASE64_STANDARD.decode(text).ok());
        let file = file.filter(|_| self.0.template.scheme.owns_secret(&view.metadata, app)).and_then(|bytes| String::from_utf8(bytes).ok());
        Ok(file.and_then(|file| Environment::parse(&file)))
    }

    /// Every Secret of this instance, without what they hold.
    ///
    /// # Errors
    /// With what to do next, when the list is not complete.
    pub async fn list_secrets(&self) -> Result<SecretList, Answer> {
        let base = format!("{}?limit={PAGE}&labelSelector={}", self.path(SECRETS, ""), escaped(&self.0.template.scheme.selector()));
        let mut found = SecretList { version: u64::MAX, secrets: Vec::new() };
        let mut next = String::new();
        for _ in 0..PAGES {
            let token = if next.is_empty() { String::new() } else { format!("&continue={}", escaped(&next)) };
            let mut request = Request::get_as(format!("{base}{token}"), METADATA_LIST);
            request.limit = PAGE_BYTES;
            let Ok(reply) = send(&self.0.client, request, self.0.limit).await else { return Err(Answer::AGAIN) };
            let answer = sort(Verb::Read, "", &reply);
            if answer != Answer::Done {
                return Err(answer);
            }
            let list: MetaList = serde_json::from_slice(&reply.body).map_err(|_| Answer::AGAIN)?;
            // All pages are of one moment; if a server says otherwise, the earliest concludes nothing wrong.
            let version = list.metadata.resource_version.and_then(|version| version.parse().ok()).ok_or(Answer::AGAIN)?;
            found.version = found.version.min(version);
            found.secrets.extend(list.items.unwrap_or_default().iter().filter_map(|item| self.secret_meta(item)));
            next = list.metadata.r#continue.unwrap_or_default();
            if next.is_empty() {
                return Ok(found);
            }
        }
        Err(Answer::AGAIN)
    }

    fn secret_meta(&self, item: &Value) -> Option<SecretMeta> {
        let (MetaView { metadata }, _) = tolerant::<MetaView>(item);
        Some(SecretMeta {
            ownership: self.0.template.scheme.ownership(&metadata),
            host: HostName::new(metadata.name.as_deref()?.strip_suffix("-env")?).ok()?,
            object: object_of(&metadata)?,
            deleting: metadata.deleting(),
        })
    }
}

#[derive(Deserialize)]
struct MetaList {
    #[serde(default)]
    metadata: ListMeta,
    items: Option<Vec<Value>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ListMeta {
    r#continue: Option<String>,
    resource_version: Option<String>,
}

impl Performing<'_> {
    async fn put(&mut self, order: &Order, file: &str) -> (Answer, Option<ObjectSeen>) {
        let name = order.host.secret();
        let mut secret = self.cluster.0.template.secret(order, file);
        let target = Target { verb: Verb::Create, resource: SECRETS, name: &name, uid: None };
        match self.write(target, &secret).await {
            Ok(reply) => return self.written(order, &reply.body).await,
            Err(Answer::Conflict) => {}
            Err(answer) => return (answer, None),
        }
        let there = match self.present(order).await {
            Ok(meta) => object_of(&meta),
            Err(Answer::Gone) => return (Answer::AGAIN, None),
            Err(answer) => return (answer, None),
        };
        let Some(there) = there else { return (Answer::Refused(Refusal::Foreign), None) };
        secret["metadata"]["uid"] = json!(there.uid.as_str());
        secret["metadata"]["resourceVersion"] = json!(there.resource_version.to_string());
        let target = Target { verb: Verb::Update, resource: SECRETS, name: &name, uid: Some(there.uid) };
        match self.write(target, &secret).await {
            Ok(reply) => self.written(order, &reply.body).await,
            // Somebody changed or removed it in between.
            Err(Answer::Conflict | Answer::Gone) => (Answer::AGAIN, None),
            Err(answer) => (answer, None),
        }
    }

    /// After a success: the object, read back when the answer could not be read.
    async fn written(&mut self, order: &Order, body: &[u8]) -> (Answer, Option<ObjectSeen>) {
        if let Some(object) = view::read::<MetaView>(body).and_then(|(view, _)| object_of(&view.metadata)) {
            return (Answer::Done, Some(object));
        }
        let step = self.cluster.0.template.scheme.key("step");
        match self.present(order).await {
            Ok(meta) if meta.annotation(&step) == Some(order.step.to_string().as_str()) => (Answer::Done, object_of(&meta)),
            _ => (Answer::Unknown, None),
        }
    }

    /// The metadata of the host's Secret if it is the app's and stays.
    async fn present(&mut self, order: &Order) -> Result<Meta, Answer> {
        let reply = self.read(SECRETS, &order.host.secret(), Some(METADATA)).await?;
        let (view, _) = view::read::<MetaView>(&reply.body).ok_or(Answer::AGAIN)?;
        if view.metadata.deleting() {
            return Err(Answer::NameHeld);
        }
        if !self.cluster.0.template.scheme.owns_secret(&view.metadata, &order.app) {
            return Err(Answer::Refused(Refusal::Foreign));
        }
        Ok(view.metadata)
    }
}
