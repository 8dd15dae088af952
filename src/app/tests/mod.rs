//! Tests of the pure core: stories in a mini-language, and properties over random ones.

mod carrying;
mod causes;
mod living;
mod marks;
mod model;
mod properties;
mod safety;
mod story;
mod world;

mod stories_bring;
mod stories_edges;
mod stories_ends;
mod stories_faults;
mod stories_wants;
mod stories_windows;
