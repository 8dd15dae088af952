//! Changing and deleting.

use serde_json::{Value, json};

use super::{Contract, Kept, holds, same};

const STALE: &str = "the object has been modified; please apply your changes to the latest version and try again";

pub(super) async fn an_update_is_bound_to_its_version(on: &Contract) -> Kept {
    let first = on.create("secrets", &Contract::secret("put", &json!({}))).await?;
    let path = format!("{}/put", on.path("secrets"));
    let mut changed = first.clone();
    changed["data"] = json!({"env": "Qg=="});
    let second = on.ask("PUT", &path, &[], Some(&changed)).await?.expect(200)?;
    same("data", &second["data"], &json!({"env": "Qg=="}))?;
    same("uid", &second["metadata"]["uid"], &first["metadata"]["uid"])?;
    let stale = on.ask("PUT", &path, &[], Some(&changed)).await?;
    let why = format!("Operation cannot be fulfilled on secrets \"put\": {STALE}");
    same("a stale version", &stale.refusal(), &(409, "Conflict", why.as_str()))?;
    same("the same again", &on.ask("PUT", &path, &[], Some(&second)).await?.expect(200)?, &second)?;
    let mut other = second.clone();
    other["metadata"]["uid"] = json!("00000000-0000-0000-0000-000000000000");
    same("another uid", &on.ask("PUT", &path, &[], Some(&other)).await?.refusal().0, &409)?;
    let mut unbound = Contract::secret("put", &json!({"now": "labelled"}));
    let third = on.ask("PUT", &path, &[], Some(&unbound)).await?.expect(200)?;
    same("without a version", &third["metadata"]["labels"], &json!({"now": "labelled"}))?;
    same("created", &third["metadata"]["creationTimestamp"], &first["metadata"]["creationTimestamp"])?;
    unbound["type"] = json!("kubernetes.io/other");
    same("a fixed field", &on.ask("PUT", &path, &[], Some(&unbound)).await?.status, &422)?;
    let nowhere = format!("{}/put-nowhere", on.path("secrets"));
    let answer = on.ask("PUT", &nowhere, &[], Some(&Contract::secret("put-nowhere", &json!({})))).await?;
    same("what is not there", &answer.status, &404)?;
    same("another name", &on.ask("PUT", &nowhere, &[], Some(&third)).await?.status, &400)?;
    on.delete("secrets", "put", &json!({})).await?.expect(200)?;
    Ok(())
}

pub(super) async fn patches_merge(on: &Contract) -> Kept {
    let first = on.create("secrets", &Contract::secret("patch", &json!({"a": "1", "b": "2"}))).await?;
    let path = format!("{}/patch", on.path("secrets"));
    let merge = [("content-type", "application/merge-patch+json")];
    let patch = json!({"metadata": {"labels": {"a": null, "c": "3"}}});
    let second = on.ask("PATCH", &path, &merge, Some(&patch)).await?.expect(200)?;
    same("labels", &second["metadata"]["labels"], &json!({"b": "2", "c": "3"}))?;
    let bound = json!({"metadata": {"resourceVersion": first["metadata"]["resourceVersion"], "labels": {"d": "4"}}});
    same("a stale version", &on.ask("PATCH", &path, &merge, Some(&bound)).await?.refusal().0, &409)?;
    let other = json!({"metadata": {"uid": "00000000-0000-0000-0000-000000000000", "labels": {"d": "4"}}});
    same("another uid", &on.ask("PATCH", &path, &merge, Some(&other)).await?.refusal().0, &422)?;
    same("an unknown kind of patch", &on.ask("PATCH", &path, &[("content-type", "text/plain")], Some(&patch)).await?.status, &415)?;
    on.delete("secrets", "patch", &json!({})).await?.expect(200)?;
    Ok(())
}

pub(super) async fn a_delete_is_bound_to_its_object(on: &Contract) -> Kept {
    let secret = on.create("secrets", &Contract::secret("del", &json!({}))).await?;
    let (uid, other) = (secret["metadata"]["uid"].as_str().unwrap_or_default(), "00000000-0000-0000-0000-000000000000");
    let answer = on.delete("secrets", "del", &json!({"preconditions": {"uid": other}})).await?;
    let why = format!(
        "Operation cannot be fulfilled on Secret \"del\": the UID in the precondition ({other}) does not match the UID in record \
         ({uid}). The object might have been deleted and then recreated"
    );
    same("another uid", &answer.refusal(), &(409, "Conflict", why.as_str()))?;
    let answer = on.delete("secrets", "del", &json!({"preconditions": {"uid": uid, "resourceVersion": "1"}})).await?;
    same("another version", &(answer.status, answer.body["reason"].as_str()), &(409, Some("Conflict")))?;
    let done = on.delete("secrets", "del", &json!({"preconditions": {"uid": uid}})).await?.expect(200)?;
    let details = json!({"name": "del", "kind": "secrets", "uid": uid});
    same("the answer", &(done["status"].as_str(), &done["details"]), &(Some("Success"), &details))?;
    same("again", &on.delete("secrets", "del", &json!({})).await?.status, &404)
}

pub(super) async fn finalizers_hold(on: &Contract) -> Kept {
    let mut secret = Contract::secret("held", &json!({}));
    secret["metadata"]["finalizers"] = json!(["example.com/hold"]);
    on.create("secrets", &secret).await?;
    on.delete("secrets", "held", &json!({})).await?.expect(200)?;
    let held = on.get("secrets", "held").await?.expect(200)?;
    holds("marked", held["metadata"]["deletionTimestamp"].is_string(), &held["metadata"])?;
    let path = format!("{}/held", on.path("secrets"));
    let patch = json!({"metadata": {"finalizers": null}});
    on.ask("PATCH", &path, &[("content-type", "application/merge-patch+json")], Some(&patch)).await?.expect(200)?;
    same("let go", &on.get("secrets", "held").await?.status, &404)
}

pub(super) async fn a_lease_is_never_updated_blindly(on: &Contract) -> Kept {
    let spec = |holder: &str| json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": "2026-11-30T12:00:00.000000Z"});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lease"}, "spec": spec("a")});
    let first = on.create("leases", &lease).await?;
    let path = format!("{}/lease", on.path("leases"));
    same("without a version", &on.ask("PUT", &path, &[], Some(&lease)).await?.status, &422)?;
    let taken = |from: &Value, holder: &str| {
        let mut taken = from.clone();
        taken["spec"] = spec(holder);
        taken
    };
    let second = on.ask("PUT", &path, &[], Some(&taken(&first, "b"))).await?.expect(200)?;
    let lost = on.ask("PUT", &path, &[], Some(&taken(&first, "c"))).await?;
    let why = format!("Operation cannot be fulfilled on leases.coordination.k8s.io \"lease\": {STALE}");
    same("the race that was lost", &lost.refusal(), &(409, "Conflict", why.as_str()))?;
    same("who holds it", &second["spec"]["holderIdentity"], &json!("b"))?;
    on.delete("leases", "lease", &json!({})).await?.expect(200)?;
    Ok(())
}
