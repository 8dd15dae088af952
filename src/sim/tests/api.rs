//! The embedded API server against the contract, and its faults.

use std::sync::Arc;

use super::support::api;
use crate::sim::contract::Contract;

#[tokio::test(start_paused = true)]
async fn the_embedded_api_server_keeps_the_contract() {
    let api = api();
    let compacting = api.clone();
    let contract = Contract {
        client: api.client("apps"),
        namespace: "apps".to_owned(),
        compact: Some(Arc::new(move || compacting.compact())),
        slow: true,
    };
    let passed = contract.check().await.expect("the contract is kept");
    assert_eq!(passed.len(), 34);
}
