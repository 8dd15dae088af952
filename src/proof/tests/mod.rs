//! Proofs, keys and notes against published vectors and against another program.

mod merkle;
mod notes;
