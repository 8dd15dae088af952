//! Sessions on the cluster: whose an object is, what is sent, what is read, and the NetworkPolicy of all their pods. Pure, but for
//! how a watch reads them; `perform/sessions.rs` sends.

pub mod convert;
pub mod decode;
pub mod labels;
pub mod manifest;
pub mod policy;
pub mod view;
