//! The judge, judged.
