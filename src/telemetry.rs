//! Logs and metrics: typed, bounded, without a label that grows with tenants.
