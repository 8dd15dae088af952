//! An embedded cluster, node and gateway, behind the same interfaces as the real ones.
