//! Tests of sessions: stories in a mini-language, and random worlds against what must never happen.

mod carrying;
mod properties;
mod stories_bring;
mod stories_doubts;
mod stories_ends;
mod stories_faults;
mod stories_remove;
mod stories_resume;
mod stories_stages;
pub(crate) mod story;
mod world;
