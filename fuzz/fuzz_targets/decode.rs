//! Any bytes through everything that reads stored bytes: `cargo +nightly fuzz run decode`. What it finds goes into the corpus,
//! which a test of the repository replays.

#![no_main]

#[path = "../../tests/it/decoder/whole.rs"]
mod whole;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| whole::read(bytes));
