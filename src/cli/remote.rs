//! Asking a running daemon's control listener, as the commands do: bounded, without proxies and redirects.

use std::path::PathBuf;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use super::error::CliError;
use crate::config::address::{Nearness, base_url, nearness};
use crate::ids::shown;

/// What to do when a daemon does not answer as it should.
const ADVICE: &str = "is the daemon running, and is this its control listener?";

/// How long one answer may take.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// How long a stream may last; it is opened again then.
const STREAM_WITHIN: Duration = Duration::from_secs(24 * 3_600);

/// The token that a daemon may ask for.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct TokenArgs {
    /// The file with the token, for a daemon with an access file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// The longest file with a token, bytes.
const TOKEN_BYTES: u64 = 16 << 10;

impl TokenArgs {
    /// The `Authorization` header, when there is a token.
    fn header(&self) -> Result<Option<HeaderValue>, CliError> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let at = shown(&path.display().to_string(), 200);
        let bad = |why: &str| CliError::input(format!("--token-file {at}: {why}"), "it holds one bearer token and nothing else");
        let file = std::fs::File::open(path).map_err(|error| bad(&error.to_string()).because(error))?;
        let mut token = String::new();
        std::io::Read::read_to_string(&mut std::io::Read::take(file, TOKEN_BYTES), &mut token)
            .map_err(|error| bad("it cannot be read").because(error))?;
        let token = token.trim();
        let header = HeaderValue::try_from(format!("Bearer {token}")).ok().filter(|_| !token.is_empty() && !token.contains(' '));
        let mut header = header.ok_or_else(|| bad("it holds no token"))?;
        header.set_sensitive(true);
        Ok(Some(header))
    }
}

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
    /// When the address is not one that may be asked, or there is no token where one should be.
    pub fn new(server: &str, token: &TokenArgs) -> Result<Self, CliError> {
        let server = server.trim_end_matches('/').to_owned();
        let at = format!("--server {}", shown(&server, 80));
        let (uri, url) = base_url(&server).map_err(|allowed| CliError::input(format!("{at}: {allowed}"), ""))?;
        let mut headers = HeaderMap::new();
        if let Some(header) = token.header()? {
            if uri.scheme_str() != Some("https") && nearness(&url.host) != Nearness::Loopback {
                return Err(CliError::input(
                    format!("{at}: a token goes over https, or to this machine"),
                    "kubectl port-forward brings it here",
                ));
            }
            headers.insert(AUTHORIZATION, header);
        }
        // The client refuses to be made without a process-wide provider. Whoever came first has installed the same one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(ANSWER_WITHIN);
        let client = builder.default_headers(headers).build();
        let client = client.map_err(|error| CliError::refused("no HTTP client can be made", "").because(error))?;
        Ok(Self { client, server })
    }

    /// The answer to a path, when it is a good one of at most `max` bytes.
    ///
    /// # Errors
    /// When there is none.
    pub async fn get(&self, path: &str, query: &[(&str, String)], max: usize) -> Result<Answer, CliError> {
        let (status, answer) = self.ask(path, query, max).await?;
        if status.is_success() { Ok(answer) } else { Err(self.no_good(path, status)) }
    }

    /// What an answer that is not a good one says.
    pub fn no_good(&self, path: &str, status: StatusCode) -> CliError {
        let at = format!("{}{path}", self.server);
        match status.as_u16() {
            401 => CliError::refused(format!("{at} asks for a token"), "name its file: --token-file FILE"),
            403 => CliError::refused(format!("{at} refuses this token"), "docs/operations.md has the roles of each path"),
            409 | 410 => CliError::refused(format!("{at}: this position is not in the daemon's log"), "begin again without --after"),
            status => CliError::refused(format!("{at} answers {status}"), ADVICE),
        }
    }

    /// The answer to a path, good or not, of at most `max` bytes.
    ///
    /// # Errors
    /// When there is none.
    pub async fn ask(&self, path: &str, query: &[(&str, String)], max: usize) -> Result<(StatusCode, Answer), CliError> {
        self.call(Method::GET, path, query, None, max, ANSWER_WITHIN).await
    }

    /// An answer without an end, to be read as it comes; the inner error when asking again may help.
    ///
    /// # Errors
    /// When the daemon refuses.
    pub(super) async fn stream(&self, path: &str, query: &[(&str, String)]) -> Result<Result<Response, CliError>, CliError> {
        let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let request = self.client.get(format!("{}{path}?{}", self.server, query.join("&"))).timeout(STREAM_WITHIN);
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(Ok(answer)),
            Ok(answer) if answer.status() == StatusCode::SERVICE_UNAVAILABLE => Ok(Err(self.no_good(path, answer.status()))),
            Ok(answer) => Err(self.no_good(path, answer.status())),
            Err(error) => Ok(Err(CliError::refused(format!("cannot ask {}{path}", self.server), ADVICE).because(error))),
        }
    }

    /// The answer to a request, good or not, of at most `max` bytes and `within` a time. What stands in path and query needs no
    /// escapes: whoever asks has checked it.
    ///
    /// # Errors
    /// When there is none.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        body: Option<&Value>,
        max: usize,
        within: Duration,
    ) -> Result<(StatusCode, Answer), CliError> {
        let at = format!("{}{path}", self.server);
        let refused = |error: reqwest::Error| CliError::refused(format!("cannot ask {at}"), ADVICE).because(error);
        let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = self.client.request(method, format!("{at}?{}", query.join("&"))).timeout(within);
        if let Some(body) = body {
            request = request.json(body);
        }
        let mut answer = request.send().await.map_err(refused)?;
        let headers = std::mem::take(answer.headers_mut());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(refused)? {
            if body.len() + chunk.len() > max {
                return Err(CliError::refused(format!("{at} answers more than {max} bytes"), ADVICE));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((answer.status(), Answer { headers, body }))
    }
}
