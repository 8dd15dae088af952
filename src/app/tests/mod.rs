//! Tests of the pure core: stories in a mini-language, and properties over random ones.

mod properties;
mod story;

mod stories_bring;
mod stories_ends;
mod stories_faults;
mod stories_wants;
