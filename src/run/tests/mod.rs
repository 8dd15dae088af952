//! Tests of the parts that join the daemon.

mod checkpoints;
