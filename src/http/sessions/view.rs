//! What the routes of sessions ask of the daemon, and the words in which the answers name what is known.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::actors::{Called, NotCalled};
use crate::events::kinds::session::{CallRefusal, SessionAsked, SessionCall, SessionDeleteAsked, SessionTouched};
use crate::ids::{SessionId, Tenant, Word};
use crate::session::state::Session;

/// The sessions, as far as callers have to do with them.
pub trait SessionsView: Send + Sync + 'static {
    /// Asks for the session to run.
    fn create<'a>(&'a self, id: &'a SessionId, ask: SessionAsked) -> BoxFuture<'a, Result<Called, NotCalled>>;

    /// Asks for it to be deleted or suspended.
    fn delete<'a>(&'a self, id: &'a SessionId, ask: SessionDeleteAsked, of: Option<&'a Tenant>)
    -> BoxFuture<'a, Result<Called, NotCalled>>;

    /// Says that it is in use.
    fn touch<'a>(&'a self, id: &'a SessionId, touched: SessionTouched) -> BoxFuture<'a, Result<Called, NotCalled>>;

    /// Has it recorded that a call was refused for a reason that is known here alone.
    fn refused(&self, id: &SessionId, by: &Word, call: SessionCall, why: CallRefusal);

    /// Whether anything is known at the moment: not while the log is being opened.
    fn is_known(&self) -> bool;

    /// The session as it is; `None` when there is none of that id.
    fn state(&self, id: &SessionId) -> Option<Arc<Session>>;

    /// The session as it is and becomes; closed when nobody acts on it any more. `None` when nobody does.
    fn changes(&self, id: &SessionId) -> Option<watch::Receiver<Arc<Session>>>;

    /// At most `limit` sessions behind `after`, by id, of those that `takes` wants.
    fn list(&self, after: Option<&SessionId>, limit: usize, takes: &dyn Fn(&Session) -> bool) -> Vec<(SessionId, Arc<Session>)>;
}
