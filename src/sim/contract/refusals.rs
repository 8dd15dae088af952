//! Objects that are refused, each with the fields that are to blame.

use serde_json::{Value, json};

use super::{Broken, Contract, Kept, same};

async fn blamed(on: &Contract, path: &str, object: &Value) -> Result<(u16, Vec<String>), Broken> {
    let answer = on.ask("POST", path, &[], Some(object)).await?;
    let causes = answer.body["details"]["causes"].as_array().into_iter().flatten();
    Ok((answer.status, causes.map(|cause| cause["field"].as_str().unwrap_or_default().to_owned()).collect()))
}

/// Changes of a good pod's spec, and the fields that are to blame.
fn bad_specs() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (json!({"volumes": [{"name": "A_"}]}), vec!["spec.volumes[0].name"]),
        (json!({"volumes": [{"name": "a"}, {"name": "a"}]}), vec!["spec.volumes[1].name"]),
        (json!({"volumes": [{"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}]}), vec!["spec.volumes[0].secret"]),
        (json!({"volumes": [{"name": "a", "secret": {}}]}), vec!["spec.volumes[0].secret.secretName"]),
        (
            json!({"volumes": [{"name": "a", "secret": {"secretName": "s", "defaultMode": 9999}}]}),
            vec!["spec.volumes[0].secret.defaultMode"],
        ),
        (
            json!({"volumes": [{"name": "a", "secret": {"secretName": "s", "items": [{"key": "k", "path": "../x"}]}}]}),
            vec!["spec.volumes[0].secret.items[0].path"],
        ),
        (
            json!({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": ""}}]}),
            vec!["spec.volumes[0].persistentVolumeClaim.claimName"],
        ),
        (json!({"dnsPolicy": "None"}), vec!["spec.dnsConfig"]),
        (json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["x"]}}), vec!["spec.dnsConfig.nameservers[0]"]),
        (json!({"hostname": "A_b"}), vec!["spec.hostname"]),
        (json!({"activeDeadlineSeconds": 0}), vec!["spec.activeDeadlineSeconds"]),
        (json!({"nodeSelector": {"a b": "c d"}}), vec!["spec.nodeSelector", "spec.nodeSelector"]),
        (json!({"tolerations": [{"key": "a", "operator": "X"}]}), vec!["spec.tolerations[0].operator"]),
        (json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "v"}]}), vec!["spec.tolerations[0].operator"]),
        (
            json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 1}]}),
            vec!["spec.tolerations[0].effect"],
        ),
        (json!({"securityContext": {"runAsUser": -1}}), vec!["spec.securityContext.runAsUser"]),
        (json!({"securityContext": {"seccompProfile": {"type": "X"}}}), vec!["spec.securityContext.seccompProfile.type"]),
    ]
}

/// Changes of a good container, and the fields that are to blame.
fn bad_containers() -> Vec<(Value, Vec<&'static str>)> {
    vec![
        (json!({"image": " a "}), vec!["image"]),
        (json!({"name": ""}), vec!["name"]),
        (json!({"env": [{"name": ""}, {"name": "a=b"}, {"name": "1 OK"}]}), vec!["env[0].name", "env[1].name"]),
        (json!({"ports": [{"containerPort": 0}, {"containerPort": 70000}]}), vec!["ports[0].containerPort", "ports[1].containerPort"]),
        (json!({"imagePullPolicy": "x"}), vec!["imagePullPolicy"]),
        (json!({"terminationMessagePolicy": "x"}), vec!["terminationMessagePolicy"]),
        (json!({"volumeMounts": [{"name": "no", "mountPath": "/a"}]}), vec!["volumeMounts[0].name"]),
        (json!({"resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}), vec!["resources.requests"]),
        (json!({"securityContext": {"runAsUser": -1}}), vec!["securityContext.runAsUser"]),
    ]
}

fn merged(mut base: Value, change: &Value) -> Value {
    for (key, value) in change.as_object().into_iter().flatten() {
        base[key] = value.clone();
    }
    base
}

pub(super) async fn bad_pods_are_blamed_on_their_fields(on: &Contract) -> Kept {
    let path = on.path("pods");
    for (change, fields) in bad_specs() {
        let mut pod = on.pod("blamed");
        pod["spec"] = merged(pod["spec"].take(), &change);
        let expected = (422, fields.into_iter().map(str::to_owned).collect());
        same(&change.to_string(), &blamed(on, &path, &pod).await?, &expected)?;
    }
    for (change, fields) in bad_containers() {
        let mut pod = on.pod("blamed");
        pod["spec"]["containers"][0] = merged(pod["spec"]["containers"][0].take(), &change);
        let expected = (422, fields.into_iter().map(|field| format!("spec.containers[0].{field}")).collect());
        same(&change.to_string(), &blamed(on, &path, &pod).await?, &expected)?;
    }
    let mut pod = on.pod("blamed");
    pod["spec"]["containers"][0]["resources"] = json!({"limits": {"cpu": "x"}});
    same("no quantity", &blamed(on, &path, &pod).await?, &(400, Vec::new()))?;
    let mut pod = on.pod("blamed");
    pod["spec"]["priorityClassName"] = json!("absent");
    same("a priority class", &blamed(on, &path, &pod).await?, &(403, Vec::new()))?;
    let mut pod = on.pod("blamed");
    pod["metadata"]["finalizers"] = json!(["nope"]);
    same("a finalizer", &blamed(on, &path, &pod).await?, &(422, vec!["metadata.finalizers[0]".to_owned()]))
}

pub(super) async fn policies_are_filled_in_and_checked(on: &Contract) -> Kept {
    let path = on.path("networkpolicies");
    let policy =
        |spec: Value| json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "p"}, "spec": spec});
    let egress = |rule: Value| policy(json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [rule]}));
    let bad: Vec<(Value, &str)> = vec![
        (json!({"to": [{"ipBlock": {"cidr": "10.0.0.0"}}]}), "to[0].ipBlock.cidr"),
        (json!({"to": [{"ipBlock": {"cidr": "10.0.0.1/8"}}]}), "to[0].ipBlock.cidr"),
        (json!({"to": [{"ipBlock": {"cidr": ""}}]}), "to[0].ipBlock.cidr"),
        (json!({"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["11.0.0.0/8"]}}]}), "to[0].ipBlock.except[0]"),
        (json!({"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8"]}}]}), "to[0].ipBlock.except[0]"),
        (json!({"to": [{"ipBlock": {"cidr": "::/0", "except": ["10.0.0.0/8"]}}]}), "to[0].ipBlock.except[0]"),
        (json!({"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}}]}), "to[0]"),
        (json!({"to": [{}]}), "to[0]"),
        (json!({"ports": [{"port": 0}]}), "ports[0].port"),
        (json!({"ports": [{"port": "Bad_name"}]}), "ports[0].port"),
        (json!({"ports": [{"port": 5, "endPort": 3}]}), "ports[0].endPort"),
        (json!({"ports": [{"port": 5, "protocol": "X"}]}), "ports[0].protocol"),
    ];
    for (rule, field) in bad {
        let expected = (422, vec![format!("spec.egress[0].{field}")]);
        same(&rule.to_string(), &blamed(on, &path, &egress(rule)).await?, &expected)?;
    }
    let good = policy(json!({"podSelector": {"matchLabels": {"a": "b"}}, "egress": [
        {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}], "ports": [{"port": 443}]},
        {"to": [{"ipBlock": {"cidr": "::/0", "except": ["fc00::/7", "64:ff9b::/96"]}}]},
    ]}));
    let made = on.create("networkpolicies", &good).await?;
    same("types", &made["spec"]["policyTypes"], &json!(["Ingress", "Egress"]))?;
    same("protocol", &made["spec"]["egress"][0]["ports"][0]["protocol"], &json!("TCP"))?;
    same("generation", &made["metadata"]["generation"], &json!(1))?;
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let merge = [("content-type", "application/merge-patch+json")];
    let patched = on.ask("PATCH", &format!("{path}/p"), &merge, Some(&labelled)).await?.expect(200)?;
    same("a label is no new generation", &patched["metadata"]["generation"], &json!(1))?;
    let changed = on.ask("PUT", &format!("{path}/p"), &[], Some(&policy(json!({"podSelector": {}})))).await?.expect(200)?;
    same("a spec is", &changed["metadata"]["generation"], &json!(2))?;
    on.delete("networkpolicies", "p", &json!({})).await?.expect(200)?;
    Ok(())
}
