//! What an auditor checks a log with: proofs over leaves, the key, the signed note, the checkpoint. Pure; knows neither store nor
//! file. What is proved, and how strong that is, is in docs/proof.md.

pub mod checkpoint;
pub mod key;
pub mod merkle;
pub mod note;
#[cfg(test)]
mod tests;
