//! Tests of the embedded cluster, node and gateway.

mod api;
mod faults;
mod gateway;
mod kubelet;
mod loss;
mod node;
mod recorded;
mod support;
mod world;
