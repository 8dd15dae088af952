//! Creating and reading.

use serde_json::{Value, json};

use super::{Answer, Broken, Contract, Kept, holds, same};

pub(super) async fn what_is_created_is_read(on: &Contract) -> Kept {
    let created = on.ask("POST", &on.path("secrets"), &[("audit-id", "contract-1")], Some(&Contract::secret("read", &json!({})))).await?;
    same("the audit id", &created.headers.get("audit-id").and_then(|id| id.to_str().ok()), &Some("contract-1"))?;
    let created = created.expect(201)?;
    let metadata = &created["metadata"];
    holds("a uid", metadata["uid"].as_str().is_some_and(|uid| uid.len() == 36), metadata)?;
    holds("a version", metadata["resourceVersion"].as_str().is_some_and(|version| version.parse::<u64>().is_ok()), metadata)?;
    holds("a time", metadata["creationTimestamp"].as_str().is_some_and(|time| time.len() == 20), metadata)?;
    same("data", &created["data"], &json!({"env": "QT0x"}))?;
    same("type", &created["type"], &json!("Opaque"))?;
    holds("no stringData", created["stringData"].is_null(), &created)?;
    same("what is read", &on.get("secrets", "read").await?.expect(200)?, &created)?;
    on.delete("secrets", "read", &json!({})).await?.expect(200)?;
    Ok(())
}

pub(super) async fn a_taken_name_is_a_conflict(on: &Contract) -> Kept {
    on.create("secrets", &Contract::secret("dup", &json!({}))).await?;
    let again = on.ask("POST", &on.path("secrets"), &[], Some(&Contract::secret("dup", &json!({})))).await?;
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 409,
        "message": "secrets \"dup\" already exists", "reason": "AlreadyExists", "details": {"name": "dup", "kind": "secrets"}});
    same("the refusal", &again.body, &status)?;
    on.delete("secrets", "dup", &json!({})).await?.expect(200)?;
    Ok(())
}

pub(super) async fn what_is_not_there_is_not_found(on: &Contract) -> Kept {
    let answer = on.get("secrets", "nope").await?;
    same("an object", &answer.refusal(), &(404, "NotFound", "secrets \"nope\" not found"))?;
    let body = Contract::secret("a", &json!({}));
    let answer = on.ask("POST", "/api/v1/namespaces/absent/secrets", &[], Some(&body)).await?;
    same("a namespace", &answer.refusal(), &(404, "NotFound", "namespaces \"absent\" not found"))?;
    let answer = on.ask("GET", "/api/v1/namespaces/absent/unheardof", &[], None).await?;
    same("a kind", &answer.status, &404)?;
    same("a delete", &on.delete("secrets", "nope", &json!({})).await?.status, &404)
}

/// What it answers to a pod that is changed so.
async fn refused(on: &Contract, change: impl FnOnce(&mut Value)) -> Result<Answer, Broken> {
    let mut pod = on.pod("bad");
    change(&mut pod);
    on.ask("POST", &on.path("pods"), &[], Some(&pod)).await
}

pub(super) async fn bad_objects_are_refused(on: &Contract) -> Kept {
    let answer = refused(on, |pod| {
        pod["spec"]["containers"][0]["name"] = json!("Bad_Name");
        pod["spec"]["restartPolicy"] = json!("Sometimes");
    });
    let answer = answer.await?;
    same("causes", &(answer.status, answer.body["reason"].clone()), &(422, json!("Invalid")))?;
    let fields: Vec<&Value> = answer.body["details"]["causes"].as_array().into_iter().flatten().map(|cause| &cause["field"]).collect();
    // An init container needs a policy that is known; a server may say so of it too.
    holds("fields", fields.contains(&&json!("spec.containers[0].name")) && fields.contains(&&json!("spec.restartPolicy")), &fields)?;
    let invalid = [
        refused(on, |pod| pod["metadata"]["name"] = json!("Upper")).await?,
        refused(on, |pod| pod["metadata"]["labels"]["case"] = json!("a/b")).await?,
        refused(on, |pod| pod["metadata"]["labels"]["case"] = json!("x".repeat(64))).await?,
        refused(on, |pod| pod["spec"]["containers"] = json!([])).await?,
        refused(on, |pod| pod["spec"]["containers"][0]["name"] = json!("install")).await?,
        refused(on, |pod| pod["spec"]["containers"][0]["image"] = json!("")).await?,
        refused(on, |pod| pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "no", "mountPath": "/x"}])).await?,
        refused(on, |pod| pod["spec"]["hostname"] = json!("ends-with-")).await?,
        refused(on, |pod| pod["spec"]["dnsPolicy"] = json!("None")).await?,
    ];
    for answer in &invalid {
        same("invalid", &answer.status, &422)?;
    }
    let answer = refused(on, |pod| pod["metadata"]["namespace"] = json!("other")).await?;
    let why = "the namespace of the provided object does not match the namespace sent on the request";
    same("another namespace", &answer.refusal(), &(400, "BadRequest", why))?;
    let answer = refused(on, |pod| pod["metadata"]["resourceVersion"] = json!("1")).await?;
    same("a version", &answer.refusal(), &(500, "", "resourceVersion should not be set on objects to be created"))?;
    let answer = refused(on, |pod| pod["spec"]["containers"][0]["command"] = json!("no list")).await?;
    same("a wrong type", &answer.refusal().0, &400)?;
    let answer = refused(on, |pod| pod["spec"]["runtimeClassName"] = json!("absent")).await?;
    let why = "pods \"bad\" is forbidden: pod rejected: RuntimeClass \"absent\" not found";
    same("a runtime class", &answer.refusal(), &(403, "Forbidden", why))?;
    let body = json!({"metadata": {"name": "bad"}, "data": {"no/key": "QQ=="}});
    let answer = on.ask("POST", &on.path("secrets"), &[], Some(&body)).await?;
    same("a secret's key", &answer.status, &422)?;
    let answer = on.ask("POST", &on.path("secrets"), &[("content-type", "text/plain")], Some(&body)).await?;
    same("a media type", &answer.status, &415)
}

pub(super) async fn a_dry_run_stores_nothing(on: &Contract) -> Kept {
    let path = format!("{}?dryRun=All", on.path("secrets"));
    on.ask("POST", &path, &[], Some(&Contract::secret("dry", &json!({})))).await?.expect(201)?;
    same("after a create", &on.get("secrets", "dry").await?.status, &404)?;
    on.create("secrets", &Contract::secret("dry", &json!({}))).await?;
    on.delete("secrets", "dry", &json!({"dryRun": ["All"]})).await?.expect(200)?;
    same("after a delete", &on.get("secrets", "dry").await?.status, &200)?;
    on.delete("secrets", "dry", &json!({})).await?.expect(200)?;
    Ok(())
}

fn names(answer: &Value) -> Vec<&str> {
    let items = answer["items"].as_array().into_iter().flatten();
    items.filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

pub(super) async fn selectors_select(on: &Contract) -> Kept {
    for (name, labels) in [("s-a", json!({"k": "1", "only": "x"})), ("s-b", json!({"k": "2"})), ("s-c", json!({"other": "1"}))] {
        on.create("secrets", &Contract::secret(name, &labels)).await?;
    }
    let cases: [(&str, &[&str]); 8] = [
        ("labelSelector=k", &["s-a", "s-b"]),
        ("labelSelector=k%3D1", &["s-a"]),
        ("labelSelector=k%21%3D1", &["s-b", "s-c"]),
        ("labelSelector=%21k", &["s-c"]),
        ("labelSelector=k%20in%20%281%2C2%29", &["s-a", "s-b"]),
        ("labelSelector=k%20notin%20%281%29", &["s-b", "s-c"]),
        ("labelSelector=k%2Conly%3Dx", &["s-a"]),
        ("fieldSelector=metadata.name%3Ds-b", &["s-b"]),
    ];
    for (query, expected) in cases {
        let list = on.list("secrets", query).await?.expect(200)?;
        same(query, &names(&list), &expected.to_vec())?;
    }
    same("a bad selector", &on.list("secrets", "labelSelector=a%20b").await?.status, &400)?;
    on.ask("DELETE", &on.path("secrets"), &[], None).await?.expect(200)?;
    same("after all were deleted", &names(&on.list("secrets", "").await?.expect(200)?), &Vec::new())
}

pub(super) async fn pages_show_one_moment(on: &Contract) -> Kept {
    for name in ["p-1", "p-2", "p-3", "p-4", "p-5"] {
        on.create("secrets", &Contract::secret(name, &json!({}))).await?;
    }
    let first = on.list("secrets", "limit=2").await?.expect(200)?;
    same("the first page", &names(&first), &vec!["p-1", "p-2"])?;
    same("what is left", &first["metadata"]["remainingItemCount"], &json!(3))?;
    on.delete("secrets", "p-3", &json!({})).await?.expect(200)?;
    on.create("secrets", &Contract::secret("p-35", &json!({}))).await?;
    let mut token = first["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    let mut rest = Vec::new();
    while !token.is_empty() {
        let page = on.list("secrets", &format!("limit=2&continue={token}")).await?.expect(200)?;
        same("the version of all pages", &page["metadata"]["resourceVersion"], &first["metadata"]["resourceVersion"])?;
        rest.extend(names(&page).into_iter().map(str::to_owned));
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    same("the other pages", &rest, &vec!["p-3".to_owned(), "p-4".to_owned(), "p-5".to_owned()])?;
    let any = on.list("secrets", "limit=1&resourceVersion=0").await?.expect(200)?;
    same("a list from the cache has no pages", &names(&any).len(), &5)?;
    on.ask("DELETE", &on.path("secrets"), &[], None).await?.expect(200)?;
    Ok(())
}

pub(super) async fn metadata_alone_can_be_read(on: &Contract) -> Kept {
    on.create("secrets", &Contract::secret("meta", &json!({"k": "v"}))).await?;
    let accept = [("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")];
    let one = on.ask("GET", &format!("{}/meta", on.path("secrets")), &accept, None).await?.expect(200)?;
    same("kind", &one["kind"], &json!("PartialObjectMetadata"))?;
    same("labels", &one["metadata"]["labels"], &json!({"k": "v"}))?;
    holds("no data", one["data"].is_null(), &one)?;
    let accept = [("accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")];
    let list = on.ask("GET", &on.path("secrets"), &accept, None).await?.expect(200)?;
    same("kind", &list["kind"], &json!("PartialObjectMetadataList"))?;
    holds("no data", !list.to_string().contains("QT0x"), &list)?;
    on.delete("secrets", "meta", &json!({})).await?.expect(200)?;
    Ok(())
}

pub(super) async fn a_list_from_the_future_times_out(on: &Contract) -> Kept {
    let list = on.list("secrets", "").await?.expect(200)?;
    let now: u64 = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse().map_err(super::broken)?;
    let answer = on.list("secrets", &format!("resourceVersion={}", now + 100_000)).await?;
    same("the refusal", &(answer.status, answer.body["reason"].as_str()), &(504, Some("Timeout")))?;
    same("retry-after", &answer.headers.get("retry-after").and_then(|value| value.to_str().ok()), &Some("1"))?;
    let cause = &answer.body["details"]["causes"][0]["reason"];
    same("the cause", cause, &json!("ResourceVersionTooLarge"))
}
