//! What apps and sessions have in common: how a reaction is made, verified and replayed, the life of a pod, and what hinders a
//! step. Knows neither an app nor a session.

pub mod carry;
pub mod ends;
pub mod hindrance;
pub mod pod;
pub mod react;
pub mod rules;
pub mod stored;
pub mod wake;
