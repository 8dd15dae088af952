//! The command line: one file a command, data on stdout, everything else on stderr.

pub mod plan;
