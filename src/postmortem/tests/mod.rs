//! Tests of what a log answers.

mod chains;
mod states;
