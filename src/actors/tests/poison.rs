//! Makes a subject's reaction panic, where a test says so. Knows one thread: the tests' runtimes have no other.

use std::cell::RefCell;

use crate::ids::{AppId, Subject};

/// Where in a reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::actors) enum At {
    BeforeAppend,
    AfterAppend,
}

thread_local! {
    static POISON: RefCell<Vec<(Subject, At, u32)>> = const { RefCell::new(Vec::new()) };
}

/// The next `times` reactions of the app panic there.
pub(super) fn poison(app: &AppId, at: At, times: u32) {
    POISON.with_borrow_mut(|poison| poison.push((Subject::App(app.clone()), at, times)));
}

/// Whether some of it is left.
pub(super) fn is_left() -> bool {
    POISON.with_borrow(|poison| poison.iter().any(|(.., times)| *times > 0))
}

/// What a reaction meets.
pub(in crate::actors) fn meet(subject: &Subject, at: At) {
    let met = POISON.with_borrow_mut(|poison| {
        let found = poison.iter_mut().find(|(of, place, times)| of == subject && *place == at && *times > 0);
        found.map(|(.., times)| *times -= 1).is_some()
    });
    assert!(!met, "poisoned");
}

/// Takes all of it back.
pub(super) fn clear() {
    POISON.with_borrow_mut(Vec::clear);
}
