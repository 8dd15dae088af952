//! Ordering and ownership: who handles what, one thing at a time, and what happens when one ends.
