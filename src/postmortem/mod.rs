//! What a log answers after an incident: what was known at a moment, and why each thing was done. Reads records and folds them;
//! plans nothing, changes nothing, and prints nothing.

pub mod about;
pub mod because;
pub mod document;
pub mod history;
pub mod reference;
pub mod replay;
pub mod rules;
pub mod why;

#[cfg(test)]
mod tests;
