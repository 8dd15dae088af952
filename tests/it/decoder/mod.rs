//! The fuzz target's corpus, replayed: whatever once taught the fuzzer something is read here each time.

mod whole;

use std::path::Path;

#[test]
fn no_entry_of_the_corpus_breaks_the_decoder() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/decode");
    let entries: Vec<_> = std::fs::read_dir(corpus).expect("a corpus").map(|entry| entry.expect("readable").path()).collect();
    assert!(entries.len() >= 90, "{} entries", entries.len());
    for entry in entries {
        let bytes = std::fs::read(&entry).expect("readable");
        whole::read(&bytes);
        // What the fuzzer would do first: cut it, and change each byte.
        for at in 0..bytes.len() {
            whole::read(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] = changed[at].wrapping_add(1);
            whole::read(&changed);
            changed[at] = 0xff;
            whole::read(&changed);
        }
    }
}
