//! Finding out who asks: the access file as it stands now, and the API server for a token that is an account's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;

use crate::clock;
use crate::config::access::{Access, Caller, FILE_BYTES, token_digest};
use crate::kube::review::{Account, TokenReviews};

/// How old what was read of the file may be.
const FILE_AGE: Duration = Duration::from_secs(1);
/// How long an answer of the API server counts: for so long a token that was taken back is still taken.
const REVIEW_AGE: Duration = Duration::from_secs(30);
/// The same for a token that it does not know.
const UNKNOWN_AGE: Duration = Duration::from_secs(10);
/// Tokens whose answers are kept.
const REVIEWS: usize = 1_024;
/// Reviews under way at once.
const REVIEWS_AT_ONCE: usize = 8;
/// The longest token that is looked at, bytes.
const TOKEN_BYTES: usize = 16 << 10;

/// Why nobody knows who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKnown {
    /// There is no token, or one that nobody has.
    Nobody,
    /// The access file cannot be read, or is wrong: nobody gets in until it is mended.
    File(String),
    /// The API server could not be asked.
    Review(String),
}

/// What the access file said, and when it was read.
type Read = (Instant, Result<Arc<Access>, String>);

/// Until when an answer of the API server counts, and whose the token is.
type Reviewed = (Instant, Option<Account>);

/// Knows who has which token.
pub struct Callers {
    path: PathBuf,
    read: Mutex<Option<Read>>,
    reviews: TokenReviews,
    reviewed: Mutex<BTreeMap<[u8; 32], Reviewed>>,
    under_way: Semaphore,
}

impl Callers {
    /// By that access file, and by what the API server says of its accounts.
    #[must_use]
    pub fn new(path: PathBuf, reviews: TokenReviews) -> Self {
        let under_way = Semaphore::new(REVIEWS_AT_ONCE);
        Self { path, read: Mutex::default(), reviews, reviewed: Mutex::default(), under_way }
    }

    /// Who has the token.
    ///
    /// # Errors
    /// See [`NotKnown`].
    pub async fn of(&self, token: &str) -> Result<Caller, NotKnown> {
        let access = self.access().await.map_err(NotKnown::File)?;
        if let Some(caller) = access.of_token(token) {
            return Ok(caller.clone());
        }
        if !access.has_accounts() || !is_token(token) {
            return Err(NotKnown::Nobody);
        }
        let account = self.account(token).await?.ok_or(NotKnown::Nobody)?;
        access.of_account(&account.user, &account.groups).ok_or(NotKnown::Nobody)
    }

    /// The file as it stands: read again when what is known of it is older than a second, because it may be a mounted Secret.
    async fn access(&self) -> Result<Arc<Access>, String> {
        let mut read = self.read.lock().await;
        if let Some((at, access)) = &*read
            && at.elapsed() < FILE_AGE
        {
            return access.clone();
        }
        let access = self.load().await.map(Arc::new);
        if let Err(error) = &access
            && !matches!(&*read, Some((_, Err(before))) if before == error)
        {
            tracing::error!(error, "the access file cannot be used: nobody gets in until it is mended");
        }
        *read = Some((clock::now(), access.clone()));
        access
    }

    async fn load(&self) -> Result<Access, String> {
        let at = |error: String| format!("{}: {error}", crate::ids::shown(&self.path.display().to_string(), 200));
        let size = tokio::fs::metadata(&self.path).await.map_err(|error| at(error.to_string()))?.len();
        if size > FILE_BYTES as u64 {
            return Err(at(format!("more than {FILE_BYTES} bytes")));
        }
        let text = tokio::fs::read_to_string(&self.path).await.map_err(|error| at(error.to_string()))?;
        Access::parse(&text).map_err(at)
    }

    async fn account(&self, token: &str) -> Result<Option<Account>, NotKnown> {
        let digest = token_digest(token);
        if let Some((until, account)) = self.reviewed.lock().await.get(&digest)
            && clock::now() < *until
        {
            return Ok(account.clone());
        }
        let _permit = self.under_way.try_acquire().map_err(|_| NotKnown::Review("too many tokens are being reviewed".to_owned()))?;
        let account = self.reviews.review(token).await.map_err(NotKnown::Review)?;
        let mut reviewed = self.reviewed.lock().await;
        let now = clock::now();
        if reviewed.len() >= REVIEWS {
            reviewed.retain(|_, (until, _)| now < *until);
        }
        if reviewed.len() >= REVIEWS {
            // All are fresh: somebody tries many tokens, and the unknown ones go first.
            reviewed.retain(|_, (_, account)| account.is_some());
        }
        if reviewed.len() < REVIEWS {
            reviewed.insert(digest, (now + if account.is_some() { REVIEW_AGE } else { UNKNOWN_AGE }, account.clone()));
        }
        Ok(account)
    }
}

/// Whether it may be a bearer token at all (RFC 6750, section 2.1), so that the API server is not asked about other things.
fn is_token(token: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=');
    (1..=TOKEN_BYTES).contains(&token.len()) && token.bytes().all(fits)
}
