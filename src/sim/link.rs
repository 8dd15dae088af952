//! The embedded gateway as the daemon asks it, in process: no socket, so that a run on paused time repeats exactly. Sorts
//! answers as the real client does.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use http::{Request, Response, header};
use serde::Deserialize;

use super::gateway::Gateway as Embedded;
use crate::gateway::api::{Chunks, Gateway, GatewayError, GatewayRefusal};
use crate::ids::AppId;

/// Packages arrive in pieces of so many bytes.
const CHUNK: usize = 64 << 10;

/// A daemon's link to an embedded gateway; cheap to clone.
#[derive(Debug, Clone)]
pub struct Link {
    gateway: Embedded,
    token: String,
    limit: Duration,
}

#[derive(Deserialize)]
struct EnvironmentAnswer {
    environment: BTreeMap<String, String>,
}

impl Link {
    /// A link with this bearer token; a request that is not answered within `limit` is given up.
    #[must_use]
    pub fn new(gateway: &Embedded, token: &str, limit: Duration) -> Self {
        Self { gateway: gateway.clone(), token: token.to_owned(), limit }
    }

    async fn ask(&self, what: &'static str, method: &str, path: &str, body: Vec<u8>) -> Result<Bytes, GatewayError> {
        let retry = |reason: String, status: u16| GatewayError::Retry { what, reason, status };
        let request = Request::builder().method(method).uri(path).header(header::AUTHORIZATION, format!("Bearer {}", self.token));
        let request = request.body(Bytes::from(body)).map_err(|error| retry(error.to_string(), 0))?;
        let answered = tokio::time::timeout(self.limit, self.gateway.call(request)).await;
        let answer: Response<Bytes> = match answered {
            Ok(answer) => answer.map_err(|error| retry(error.to_string(), 0))?,
            Err(_) => return Err(retry("timed out".to_owned(), 0)),
        };
        match answer.status().as_u16() {
            200..=299 => Ok(answer.into_body()),
            404 => Err(GatewayError::Refused { what, why: GatewayRefusal::NotThere }),
            410 => Err(GatewayError::Refused { what, why: GatewayRefusal::Gone }),
            status @ (401 | 403) => Err(GatewayError::Unauthorised { what, reason: format!("the gateway answers {status}") }),
            status => Err(retry(format!("the gateway answers {status}"), status)),
        }
    }
}

fn app_path(app: &AppId, rest: &str) -> String {
    format!("/v1/runner/apps/{}/{}{rest}", app.org(), app.name())
}

impl Gateway for Link {
    fn heartbeat(&self, body: Vec<u8>) -> BoxFuture<'_, Result<Bytes, GatewayError>> {
        Box::pin(self.ask("heartbeat", "POST", "/v1/runner/heartbeat", body))
    }

    fn environment<'a>(&'a self, app: &'a AppId) -> BoxFuture<'a, Result<BTreeMap<String, String>, GatewayError>> {
        Box::pin(async move {
            let what = "environment";
            let body = self.ask(what, "GET", &app_path(app, "/environment"), Vec::new()).await?;
            let answer = serde_json::from_slice::<EnvironmentAnswer>(&body);
            answer.map(|answer| answer.environment).map_err(|_| GatewayError::Retry {
                what,
                reason: "no environment".to_owned(),
                status: 0,
            })
        })
    }

    fn source<'a>(&'a self, app: &'a AppId, release: u64) -> BoxFuture<'a, Result<Chunks, GatewayError>> {
        Box::pin(async move {
            let body = self.ask("source", "GET", &app_path(app, &format!("/releases/{release}/source")), Vec::new()).await?;
            let chunks: Vec<_> = body.chunks(CHUNK).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
            Ok(stream::iter(chunks).boxed())
        })
    }
}
