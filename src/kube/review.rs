//! Asks the API server whose a bearer token is (TokenReview, authentication.k8s.io/v1). Decides nothing and keeps nothing.

use std::time::Duration;

use ::kube::Client;
use serde::Deserialize;
use serde_json::json;

use super::call::{Request, send};
use crate::ids::shown;

/// The audience a token must be for: one that was made for the API server itself does not open this daemon.
pub const AUDIENCE: &str = "wharfinger";

/// How long one review may take.
const WITHIN: Duration = Duration::from_secs(5);

/// The most groups that are looked at.
const GROUPS: usize = 256;

/// Whose a token is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name.
    pub user: String,
    /// Its groups.
    pub groups: Vec<String>,
}

/// The API server's reviews of tokens.
#[derive(Clone)]
pub struct TokenReviews(Client);

impl TokenReviews {
    /// Asked through that client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// Whose the token is; `None` when the API server does not know it, or it is for another audience.
    ///
    /// # Errors
    /// When it cannot be asked, or refuses the review.
    pub async fn review(&self, token: &str) -> Result<Option<Account>, String> {
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [AUDIENCE]},
        });
        let request = Request {
            method: http::Method::POST,
            body: review.to_string().into_bytes(),
            ..Request::get("/apis/authentication.k8s.io/v1/tokenreviews".to_owned())
        };
        let reply = send(&self.0, request, WITHIN).await.map_err(|lack| lack.to_string())?;
        if !matches!(reply.status, 200 | 201) {
            return Err(format!("the API server answers {}", reply.status));
        }
        let review: Reviewed = serde_json::from_slice(&reply.body).map_err(|error| shown(&error.to_string(), 200))?;
        let status = review.status;
        let ours = status.audiences.iter().any(|audience| audience == AUDIENCE);
        let mut user = status.user;
        user.groups.truncate(GROUPS);
        Ok((status.authenticated && ours && !user.username.is_empty()).then_some(Account { user: user.username, groups: user.groups }))
    }
}

#[derive(Deserialize)]
struct Reviewed {
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    authenticated: bool,
    #[serde(default)]
    audiences: Vec<String>,
    #[serde(default)]
    user: User,
}

#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}
