//! Asking a running daemon's control listener, as the commands do: bounded, without proxies and redirects.

use std::time::Duration;

use reqwest::header::HeaderMap;

use super::error::CliError;
use crate::ids::shown;

/// How long one answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A daemon that is asked.
#[derive(Debug)]
pub struct Remote {
    client: reqwest::Client,
    server: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Remote {
    /// The daemon at that address.
    ///
    /// # Errors
    /// When the address is not one that may be asked.
    pub fn new(server: &str) -> Result<Self, CliError> {
        let server = server.trim_end_matches('/').to_owned();
        crate::config::address::base_url(&server)
            .map_err(|allowed| CliError::input(format!("--server {}: {allowed}", shown(&server, 80)), ""))?;
        // The client refuses to be made without a process-wide provider. Whoever came first has installed the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(ANSWER_WITHIN);
        let client = builder.build().map_err(|error| CliError::refused("no HTTP client can be made", "").because(error))?;
        Ok(Self { client, server })
    }

    /// The answer to a path, when it is a good one of at most `max` bytes.
    ///
    /// # Errors
    /// When there is none.
    pub async fn get(&self, path: &str, query: &[(&str, String)], max: usize) -> Result<Answer, CliError> {
        let advice = "is the daemon running, and is this its control listener?";
        let at = format!("{}{path}", self.server);
        let refused = |error: reqwest::Error| CliError::refused(format!("cannot ask {at}"), advice).because(error);
        let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut answer = self.client.get(format!("{at}?{}", query.join("&"))).send().await.map_err(refused)?;
        if !answer.status().is_success() {
            return Err(CliError::refused(format!("{at} answers {}", answer.status().as_u16()), advice));
        }
        let headers = std::mem::take(answer.headers_mut());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(refused)? {
            if body.len() + chunk.len() > max {
                return Err(CliError::refused(format!("{at} answers more than {max} bytes"), advice));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { headers, body })
    }
}
