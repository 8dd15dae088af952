//! An API server by script: each request is checked against the next line of the script, and a request too many fails the test.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::kube::Client;
use ::kube::client::Body;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use serde_json::Value;

use crate::clock::now;

/// What the server says.
#[derive(Debug, Clone)]
pub(super) enum Say {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A status, headers and a body as it is.
    Raw(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// 200, then pieces of a body.
    Stream(Vec<Piece>),
    /// Nothing, ever.
    Never,
    /// Nobody listens.
    Refuse,
    /// The connection ends before the answer.
    Reset,
}

/// A piece of a body.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text(String),
    Wait(Duration),
    /// The body breaks off with an error.
    Break,
    /// Nothing comes any more.
    Hang,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Got {
    /// Method and path with query.
    pub(super) line: String,
    pub(super) body: Value,
    pub(super) audit_id: Option<String>,
    pub(super) accept: String,
}

#[derive(Default)]
struct State {
    script: VecDeque<(String, Say)>,
    got: Vec<Got>,
    journal: Vec<(Duration, String)>,
    wrong: Vec<String>,
    /// What is said when the script is over.
    last: Option<Say>,
}

#[derive(Clone, Default)]
pub(super) struct Script(Arc<Mutex<State>>);

type Answer = http::Response<UnsyncBoxBody<Bytes, std::io::Error>>;

impl Script {
    /// Expects these requests, in order: `METHOD part-of-the-path`, and what is said to it.
    pub(super) fn new(script: Vec<(&str, Say)>) -> Self {
        let script = script.into_iter().map(|(line, say)| (line.to_owned(), say)).collect();
        Self(Arc::new(Mutex::new(State { script, ..State::default() })))
    }

    /// Says this to every request after the script.
    pub(super) fn then(self, say: Say) -> Self {
        self.0.lock().unwrap().last = Some(say);
        self
    }

    pub(super) fn client(&self) -> Client {
        let (script, begun) = (self.clone(), now());
        let service = tower::service_fn(move |request| {
            let script = script.clone();
            async move { script.serve(request, begun.elapsed()).await }
        });
        Client::new(service, "apps")
    }

    async fn serve(&self, request: http::Request<Body>, after: Duration) -> Result<Answer, std::io::Error> {
        let (parts, body) = request.into_parts();
        let bytes = body.collect_bytes().await.expect("a body");
        let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().expect("text").to_owned());
        let line = format!("{} {}", parts.method, parts.uri);
        let say = {
            let mut state = self.0.lock().unwrap();
            state.journal.push((after, format!("    {line}")));
            state.got.push(Got {
                line: line.clone(),
                body: serde_json::from_slice(&bytes).unwrap_or_default(),
                audit_id: header("audit-id"),
                accept: header("accept").unwrap_or_default(),
            });
            match state.script.pop_front() {
                Some((wanted, say)) => {
                    let (method, part) = wanted.split_once(' ').expect("METHOD path");
                    if parts.method.as_str() != method || !line.contains(part) {
                        state.wrong.push(format!("wanted {wanted}, got {line}"));
                    }
                    say
                }
                None => state.last.clone().unwrap_or_else(|| {
                    state.wrong.push(format!("one too many: {line}"));
                    Say::Json(599, Value::Null)
                }),
            }
        };
        say.answer().await
    }

    /// What came; fails when it was not what the script says.
    pub(super) fn got(&self) -> Vec<Got> {
        let state = self.0.lock().unwrap();
        assert!(state.wrong.is_empty(), "{:#?}", state.wrong);
        assert!(state.script.is_empty(), "never asked: {:?}", state.script);
        state.got.clone()
    }

    /// Writes a line beside the requests.
    pub(super) fn note(&self, after: Duration, line: String) {
        self.0.lock().unwrap().journal.push((after, line));
    }

    /// Requests and notes in order, each with the time since the beginning; fails as [`Script::got`].
    pub(super) fn journal(&self) -> Vec<(Duration, String)> {
        self.got();
        self.0.lock().unwrap().journal.clone()
    }

    /// The requests that came, by lines.
    pub(super) fn lines(&self) -> Vec<String> {
        self.got().iter().map(|got| got.line.clone()).collect()
    }
}

impl Say {
    async fn answer(self) -> Result<Answer, std::io::Error> {
        let (status, headers, pieces) = match self {
            Self::Json(status, body) => {
                (status, vec![("content-type", "application/json".to_owned())], vec![Piece::Text(body.to_string())])
            }
            Self::Raw(status, headers, body) => (status, headers, vec![Piece::Text(String::from_utf8_lossy(&body).into_owned())]),
            Self::Stream(pieces) => (200, Vec::new(), pieces),
            Self::Never => std::future::pending().await,
            Self::Refuse => return Err(std::io::ErrorKind::ConnectionRefused.into()),
            Self::Reset => return Err(std::io::ErrorKind::ConnectionReset.into()),
        };
        let mut response = http::Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(name, value);
        }
        let stream = futures_util::stream::unfold(VecDeque::from(pieces), |mut pieces| async move {
            loop {
                match pieces.pop_front()? {
                    Piece::Text(text) => return Some((Ok(Frame::data(Bytes::from(text))), pieces)),
                    Piece::Wait(wait) => tokio::time::sleep(wait).await,
                    Piece::Break => return Some((Err(std::io::Error::other("broken")), VecDeque::new())),
                    Piece::Hang => {
                        let _: Infallible = std::future::pending().await;
                    }
                }
            }
        });
        Ok(response.body(StreamBody::new(stream).boxed_unsync()).expect("a response"))
    }
}

/// A `Status` as the API server writes it.
pub(super) fn status(code: u16, reason: &str, message: &str, kind: &str, name: &str) -> Say {
    let body = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": {"name": name, "kind": kind}, "code": code,
    });
    Say::Json(code, body)
}
