//! The sessions of the incarnation that runs now, as the control listener asks for them, or that none can be asked for.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::window::Window;
use crate::actors::{Called, NotCalled};
use crate::events::kinds::session::{CallRefusal, SessionAsked, SessionCall, SessionDeleteAsked, SessionTouched};
use crate::http::sessions::view::SessionsView;
use crate::ids::{SessionId, Tenant, Word};
use crate::session::state::Session;

const NOBODY_ACTS: NotCalled = NotCalled::NotReady("the daemon starts, stops or stands by");

impl SessionsView for Window {
    fn create<'a>(&'a self, id: &'a SessionId, ask: SessionAsked) -> BoxFuture<'a, Result<Called, NotCalled>> {
        async move { self.sessions().ok_or(NOBODY_ACTS)?.create(id, ask).await }.boxed()
    }

    fn delete<'a>(
        &'a self,
        id: &'a SessionId,
        ask: SessionDeleteAsked,
        of: Option<&'a Tenant>,
    ) -> BoxFuture<'a, Result<Called, NotCalled>> {
        async move { self.sessions().ok_or(NOBODY_ACTS)?.delete(id, ask, of).await }.boxed()
    }

    fn touch<'a>(&'a self, id: &'a SessionId, touched: SessionTouched) -> BoxFuture<'a, Result<Called, NotCalled>> {
        async move { self.sessions().ok_or(NOBODY_ACTS)?.touch(id, touched).await }.boxed()
    }

    fn refused(&self, id: &SessionId, by: &Word, call: SessionCall, why: CallRefusal) {
        if let Some(sessions) = self.sessions() {
            sessions.refused(id, by, call, why);
        }
    }

    fn is_known(&self) -> bool {
        self.sessions().is_some()
    }

    fn state(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.sessions()?.state(id)
    }

    fn changes(&self, id: &SessionId) -> Option<watch::Receiver<Arc<Session>>> {
        self.sessions()?.changes(id)
    }

    fn list(&self, after: Option<&SessionId>, limit: usize, takes: &dyn Fn(&Session) -> bool) -> Vec<(SessionId, Arc<Session>)> {
        self.sessions().map(|sessions| sessions.list(after, limit, |_, session| takes(session))).unwrap_or_default()
    }
}
