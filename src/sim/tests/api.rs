//! The embedded API server against the contract, and its faults.

use std::sync::Arc;

use crate::clock::{Clock, Entropy};
use crate::sim::api::{ApiOptions, ClusterApi};
use crate::sim::contract::Contract;

/// 2026-11-30T12:00:00Z.
pub(super) const START_US: i64 = 1_796_040_000_000_000;

pub(super) fn api() -> ClusterApi {
    ClusterApi::new(ApiOptions::new(Clock::simulated(START_US), Entropy::seeded(1)))
}

#[tokio::test(start_paused = true)]
async fn the_embedded_api_server_keeps_the_contract() {
    let api = api();
    api.add_namespace("contract", &[]);
    let compacting = api.clone();
    let contract = Contract {
        client: api.client("contract"),
        namespace: "contract".to_owned(),
        compact: Some(Arc::new(move || compacting.compact())),
        slow: true,
    };
    let passed = contract.check().await.expect("the contract is kept");
    assert_eq!(passed.len(), 32);
}
