//! Tests of the embedded cluster, node and gateway.

mod api;
mod node;
mod support;
