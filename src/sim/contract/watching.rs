//! Watches.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Broken, Contract, Kept, PATIENCE, broken, holds, same};

async fn version(on: &Contract) -> Result<String, Broken> {
    let list = on.list("secrets", "").await?.expect(200)?;
    Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
}

async fn label(on: &Contract, name: &str, labels: &Value) -> Kept {
    let patch = json!({"metadata": {"labels": labels}});
    let path = format!("{}/{name}", on.path("secrets"));
    on.ask("PATCH", &path, &[("content-type", "application/merge-patch+json")], Some(&patch)).await?.expect(200)?;
    Ok(())
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

pub(super) async fn a_watch_goes_on_from_a_list(on: &Contract) -> Kept {
    let from = version(on).await?;
    on.create("secrets", &Contract::secret("w", &json!({}))).await?;
    let mut watch = on.watch("secrets", &format!("resourceVersion={from}&timeoutSeconds=60"), "").await?;
    let (kind, added) = watch.next().await?;
    same("what happened before the watch", &(kind.as_str(), &added["metadata"]["name"]), &("ADDED", &json!("w")))?;
    holds("the object is whole", added["kind"] == "Secret" && added["data"].is_object(), &added)?;
    label(on, "w", &json!({"a": "1"})).await?;
    let (kind, modified) = watch.next().await?;
    same("a change", &kind.as_str(), &"MODIFIED")?;
    on.delete("secrets", "w", &json!({})).await?.expect(200)?;
    let (kind, deleted) = watch.next().await?;
    same("a delete", &kind.as_str(), &"DELETED")?;
    let versions = [revision(&added), revision(&modified), revision(&deleted)];
    holds("versions rise, the delete's too", versions.is_sorted_by(|a, b| a < b), &versions)?;
    let mut resumed = on.watch("secrets", &format!("resourceVersion={}&timeoutSeconds=60", versions[1]), "").await?;
    same("resumed after the change", &resumed.kinds(1).await?, &vec!["DELETED w".to_owned()])
}

pub(super) async fn a_selected_watch_sees_objects_come_and_go(on: &Contract) -> Kept {
    on.create("secrets", &Contract::secret("sel", &json!({"in": "yes"}))).await?;
    let from = version(on).await?;
    let mut watch = on.watch("secrets", &format!("resourceVersion={from}&labelSelector=in%3Dyes&timeoutSeconds=60"), "").await?;
    label(on, "sel", &json!({"in": "no"})).await?;
    label(on, "sel", &json!({"unseen": "1"})).await?;
    label(on, "sel", &json!({"in": "yes"})).await?;
    label(on, "sel", &json!({"seen": "1"})).await?;
    on.delete("secrets", "sel", &json!({})).await?.expect(200)?;
    let expected = ["DELETED sel", "ADDED sel", "MODIFIED sel", "DELETED sel"];
    same("the events", &watch.kinds(4).await?, &expected.map(str::to_owned).to_vec())
}

pub(super) async fn a_watch_from_zero_begins_with_what_is(on: &Contract) -> Kept {
    on.create("secrets", &Contract::secret("z", &json!({}))).await?;
    let mut watch = on.watch("secrets", "resourceVersion=0&fieldSelector=metadata.name%3Dz&timeoutSeconds=60", "").await?;
    same("what is", &watch.kinds(1).await?, &vec!["ADDED z".to_owned()])?;
    on.delete("secrets", "z", &json!({})).await?.expect(200)?;
    same("what comes", &watch.kinds(1).await?, &vec!["DELETED z".to_owned()])
}

pub(super) async fn a_watch_from_the_future_is_silent(on: &Contract) -> Kept {
    let now: u64 = version(on).await?.parse().map_err(broken)?;
    let query = format!("resourceVersion={}&timeoutSeconds=3&allowWatchBookmarks=true", now + 100_000);
    let mut watch = on.watch("secrets", &query, "").await?;
    on.create("secrets", &Contract::secret("unseen", &json!({}))).await?;
    same("nothing, then the end", &watch.any(PATIENCE).await?, &None)?;
    on.delete("secrets", "unseen", &json!({})).await?.expect(200)?;
    Ok(())
}

pub(super) async fn an_invalid_version_is_refused(on: &Contract) -> Kept {
    let answer = on.list("secrets", "watch=1&resourceVersion=abc&timeoutSeconds=3").await?;
    same("the status", &(answer.status, answer.body["kind"].as_str()), &(500, Some("Status")))
}

pub(super) async fn metadata_alone_can_be_watched(on: &Contract) -> Kept {
    let from = version(on).await?;
    let accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut watch = on.watch("secrets", &format!("resourceVersion={from}&timeoutSeconds=60"), accept).await?;
    on.create("secrets", &Contract::secret("wm", &json!({}))).await?;
    let (_, object) = watch.next().await?;
    same("kind", &object["kind"], &json!("PartialObjectMetadata"))?;
    holds("no data", object["data"].is_null(), &object)?;
    on.delete("secrets", "wm", &json!({})).await?.expect(200)?;
    Ok(())
}

pub(super) async fn a_streamed_list_ends_with_a_mark(on: &Contract) -> Kept {
    on.create("secrets", &Contract::secret("streamed", &json!({}))).await?;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true\
                 &fieldSelector=metadata.name%3Dstreamed&timeoutSeconds=60";
    let mut watch = on.watch("secrets", query, "").await?;
    same("what is", &watch.kinds(1).await?, &vec!["ADDED streamed".to_owned()])?;
    let Some((kind, object)) = watch.any(PATIENCE).await? else { return Err(Broken("the watch ended".to_owned())) };
    let mark = &object["metadata"]["annotations"]["k8s.io/initial-events-end"];
    same("the mark", &(kind.as_str(), mark), &("BOOKMARK", &json!("true")))?;
    on.delete("secrets", "streamed", &json!({})).await?.expect(200)?;
    Ok(())
}

pub(super) async fn an_old_version_is_expired(on: &Contract) -> Kept {
    let Some(compact) = &on.compact else { return Ok(()) };
    for name in ["old-1", "old-2", "old-3"] {
        on.create("secrets", &Contract::secret(name, &json!({}))).await?;
    }
    let page = on.list("secrets", "limit=1").await?.expect(200)?;
    let (token, old) = (page["metadata"]["continue"].as_str().unwrap_or_default(), &page["metadata"]["resourceVersion"]);
    let old = old.as_str().unwrap_or_default();
    label(on, "old-3", &json!({"a": "1"})).await?;
    compact();
    let mut watch = on.watch("secrets", &format!("resourceVersion={old}&timeoutSeconds=60"), "").await?;
    let (kind, status) = watch.next().await?;
    same("a watch", &(kind.as_str(), &status["code"], &status["reason"]), &("ERROR", &json!(410), &json!("Expired")))?;
    let answer = on.list("secrets", &format!("resourceVersion={old}&resourceVersionMatch=Exact")).await?;
    same("an exact list", &answer.refusal(), &(410, "Expired", "The resourceVersion for the provided list is too old."))?;
    let answer = on.list("secrets", &format!("limit=1&continue={token}")).await?;
    same("a page", &(answer.status, answer.body["reason"].as_str()), &(410, Some("Expired")))?;
    let fresh = answer.body["metadata"]["continue"].as_str().unwrap_or_default();
    let rest = on.list("secrets", &format!("continue={fresh}")).await?.expect(200)?;
    same("the rest by the fresh token", &rest["items"].as_array().map(Vec::len), &Some(2))?;
    on.ask("DELETE", &on.path("secrets"), &[], None).await?.expect(200)?;
    Ok(())
}

pub(super) async fn bookmarks_come(on: &Contract) -> Kept {
    if !on.slow {
        return Ok(());
    }
    let from = version(on).await?;
    let mut watch = on.watch("secrets", &format!("resourceVersion={from}&allowWatchBookmarks=true&timeoutSeconds=300"), "").await?;
    // None has to come before anything of the kind moves.
    let created = on.create("secrets", &Contract::secret("moves", &json!({}))).await?;
    same("the change", &watch.kinds(1).await?, &vec!["ADDED moves".to_owned()])?;
    for _ in 0..2 {
        let event = watch.any(Duration::from_secs(100)).await?;
        let Some((kind, object)) = event else { return Err(Broken("the watch ended".to_owned())) };
        same("kind", &kind.as_str(), &"BOOKMARK")?;
        holds("a version", revision(&object) >= revision(&created), &object)?;
    }
    on.delete("secrets", "moves", &json!({})).await?.expect(200)?;
    Ok(())
}
