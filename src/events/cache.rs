//! Values beside the blocks that may be lost at any time and cost nothing but time then. Knows no record and no meaning.

use std::io;
use std::ops::ControlFlow;

/// A key and its new value; `None` removes it.
pub type Change = (Vec<u8>, Option<Vec<u8>>);

/// Takes keys and values, and may end it.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// The longest value, bytes: as with blocks, the store puts larger ones into files that it never syncs.
pub const VALUE_MAX: usize = 24 * 1024;

/// Where such values are. They become durable with the next commit of the log, or not at all.
pub trait Cache: Send + Sync {
    /// The value of a key.
    ///
    /// # Errors
    /// When the store does not answer.
    fn get(&self, key: &[u8]) -> io::Result<Option<Vec<u8>>>;

    /// Every value, in the order of the keys.
    ///
    /// # Errors
    /// When the store does not answer.
    fn each(&self, visit: &mut Visit<'_>) -> io::Result<()>;

    /// Makes all of these changes or none.
    ///
    /// # Errors
    /// When the store does not take them.
    fn change(&self, changes: Vec<Change>) -> io::Result<()>;
}
