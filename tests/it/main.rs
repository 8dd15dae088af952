//! The only integration test binary.

fn main() {}
