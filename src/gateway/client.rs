//! The gateway over HTTP: bearer token, time limits, sizes checked while read. Judges nothing and keeps no state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{RequestBuilder, Response, StatusCode};

use super::api::{Chunks, Gateway, GatewayError, GatewayRefusal};
use super::protocol::{EnvironmentAnswer, HEARTBEAT};
use crate::config::address::{GatewayUrl, gateway_url};
use crate::ids::{AppId, shown};

/// The largest answer with an environment, bytes: a file of 1 MiB whose every byte JSON may write in six.
const ENVIRONMENT_BYTES: u64 = 8 << 20;

/// The largest token file, bytes: a token is one line.
const TOKEN_BYTES: u64 = 64 << 10;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// Why the client cannot be made: a setting to be changed.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct BadGatewaySetting {
    /// The setting's key.
    pub key: &'static str,
    /// What is wrong, and what is allowed.
    pub reason: String,
}

/// The gateway over HTTP.
#[derive(Debug, Clone)]
pub struct GatewayClient {
    http: reqwest::Client,
    base: String,
    token_file: PathBuf,
    answer_bytes: u64,
}

impl GatewayClient {
    /// Reads `gateway.ca_file`, once; the token is read with every request. `answer_bytes` is `limits.answer_bytes`.
    ///
    /// # Errors
    /// When a setting cannot be used: a URL that is neither https nor near, authorities that cannot be read.
    pub fn new(settings: &crate::config::Gateway, answer_bytes: u64) -> Result<Self, BadGatewaySetting> {
        let GatewayUrl { base, .. } = gateway_url(&settings.url).map_err(|reason| BadGatewaySetting { key: "gateway.url", reason })?;
        if settings.token_file.is_empty() {
            return Err(BadGatewaySetting { key: "gateway.token_file", reason: "is empty: name the file with the token".to_owned() });
        }
        // The client refuses to be made without a process-wide provider. Whoever came first has installed the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("wharf/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .connect_timeout(CONNECT)
            .timeout(Duration::from_secs(settings.request_s.into()));
        if !settings.ca_file.is_empty() {
            builder = builder.tls_certs_only(authorities(Path::new(&settings.ca_file))?);
        }
        let http = builder.build().map_err(|e| BadGatewaySetting { key: "gateway.url", reason: chain(&e) })?;
        Ok(Self { http, base, token_file: PathBuf::from(&settings.token_file), answer_bytes })
    }

    async fn send(&self, what: &'static str, request: RequestBuilder) -> Result<Response, GatewayError> {
        let token = self.token(what).await?;
        let answer = request.header(AUTHORIZATION, token).send().await.map_err(|e| no_answer(what, &e))?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            StatusCode::NOT_FOUND => Err(GatewayError::Refused { what, why: GatewayRefusal::NotThere }),
            StatusCode::GONE => Err(GatewayError::Refused { what, why: GatewayRefusal::Gone }),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(GatewayError::Unauthorised {
                what,
                reason: format!("the gateway answers {} to the token in {}", status.as_u16(), self.token_file.display()),
            }),
            status => {
                Err(GatewayError::Retry { what, reason: format!("the gateway answers {}", status.as_u16()), status: status.as_u16() })
            }
        }
    }

    /// The header with the token as the file has it now.
    async fn token(&self, what: &'static str) -> Result<HeaderValue, GatewayError> {
        let refused = |reason: String| GatewayError::Unauthorised { what, reason: format!("{}: {reason}", self.token_file.display()) };
        let length = tokio::fs::metadata(&self.token_file).await.map_err(|e| refused(e.to_string()))?.len();
        if length > TOKEN_BYTES {
            return Err(refused(format!("{length} bytes are no token; at most {TOKEN_BYTES}")));
        }
        let text = tokio::fs::read_to_string(&self.token_file).await.map_err(|e| refused(e.to_string()))?;
        let token = text.trim();
        if token.is_empty() {
            return Err(refused("is empty; it has to hold the token".to_owned()));
        }
        if !token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(refused("holds more than one line of visible ASCII".to_owned()));
        }
        let mut header = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| refused("cannot be sent in a header".to_owned()))?;
        header.set_sensitive(true);
        Ok(header)
    }

    fn app_url(&self, app: &AppId, rest: &str) -> String {
        // Both parts are DNS labels: nothing in them has to be escaped.
        format!("{}/v1/runner/apps/{}/{}{rest}", self.base, app.org(), app.name())
    }
}

impl Gateway for GatewayClient {
    fn heartbeat(&self, body: Vec<u8>) -> BoxFuture<'_, Result<Bytes, GatewayError>> {
        Box::pin(async move {
            let what = "heartbeat";
            let request = self.http.post(format!("{}{HEARTBEAT}", self.base)).header(CONTENT_TYPE, "application/json").body(body);
            let answer = self.send(what, request).await?;
            // An answer that is too large is no refusal of anything: the next one may be smaller.
            bounded(what, answer, self.answer_bytes).await.map_err(|error| match error {
                GatewayError::Refused { why, .. } => GatewayError::Retry { what, reason: format!("its answer: {why}"), status: 0 },
                other @ (GatewayError::Retry { .. } | GatewayError::Unauthorised { .. }) => other,
            })
        })
    }

    fn environment<'a>(&'a self, app: &'a AppId) -> BoxFuture<'a, Result<BTreeMap<String, String>, GatewayError>> {
        Box::pin(async move {
            let what = "environment";
            let answer = self.send(what, self.http.get(self.app_url(app, "/environment"))).await?;
            let body = bounded(what, answer, ENVIRONMENT_BYTES).await?;
            // The parser's own words may quote a value: only where it stopped is said.
            serde_json::from_slice::<EnvironmentAnswer>(&body).map(|answer| answer.environment).map_err(|e| {
                let reason = format!("not {{\"environment\": {{NAME: VALUE}}}}, at line {} column {}", e.line(), e.column());
                GatewayError::Retry { what, reason, status: 0 }
            })
        })
    }

    fn source<'a>(&'a self, app: &'a AppId, release: u64) -> BoxFuture<'a, Result<Chunks, GatewayError>> {
        Box::pin(async move {
            let what = "source";
            let answer = self.send(what, self.http.get(self.app_url(app, &format!("/releases/{release}/source")))).await?;
            let chunks = stream::unfold(Some(answer), move |answer| async move {
                let mut answer = answer?;
                match answer.chunk().await {
                    Ok(Some(chunk)) => Some((Ok(chunk), Some(answer))),
                    Ok(None) => None,
                    Err(e) => Some((Err(no_answer(what, &e)), None)),
                }
            });
            Ok(chunks.boxed())
        })
    }
}

/// A body of at most `limit` bytes; what is longer is not read to its end.
async fn bounded(what: &'static str, mut answer: Response, limit: u64) -> Result<Bytes, GatewayError> {
    let too_large = GatewayError::Refused { what, why: GatewayRefusal::TooLarge { limit } };
    if answer.content_length().is_some_and(|length| length > limit) {
        return Err(too_large);
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = answer.chunk().await.map_err(|e| no_answer(what, &e))? {
        if (body.len() + chunk.len()) as u64 > limit {
            return Err(too_large);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn authorities(file: &Path) -> Result<Vec<reqwest::Certificate>, BadGatewaySetting> {
    let bad = |reason: String| BadGatewaySetting { key: "gateway.ca_file", reason: format!("{}: {reason}", file.display()) };
    let pem = std::fs::read(file).map_err(|e| bad(e.to_string()))?;
    let certificates = reqwest::Certificate::from_pem_bundle(&pem).map_err(|e| bad(chain(&e)))?;
    if certificates.is_empty() { Err(bad("holds no certificate in PEM".to_owned())) } else { Ok(certificates) }
}

fn no_answer(what: &'static str, error: &reqwest::Error) -> GatewayError {
    let kind = if error.is_timeout() { "timed out: " } else { "" };
    GatewayError::Retry { what, reason: format!("{kind}{}", chain(error)), status: 0 }
}

/// An error with its causes, because the first line of this client's says nothing.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    shown(&text, 500)
}
