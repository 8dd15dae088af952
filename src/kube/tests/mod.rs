//! Tests of the cluster edge that need more than their own file.
