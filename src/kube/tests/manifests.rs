//! The three objects as they are sent, and the rules that every name in them obeys.

use expect_test::expect_file;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{app, digest, host, order, settings, step};
use crate::config::{Profile, Settings};
use crate::ids::{AppId, HostName, PackageDigest, is_dns_label};
use crate::kube::labels::Scheme;
use crate::kube::manifest::{Order, Template, canonical, hostname};
use crate::kube::policy::{Confirmed as _, Policy};
use crate::kube::view::{self, PodView};

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON") + "\n"
}

#[test]
fn the_objects_are_these() {
    let template = Template::new(&settings());
    expect_file!["data/pod.json"].assert_eq(&pretty(&template.pod(&order(), &digest())));
    expect_file!["data/secret.json"].assert_eq(&pretty(&template.secret(&order(), "export A='b'\n")));
    expect_file!["data/policy.json"].assert_eq(&pretty(&Policy::new(&settings()).object()));
}

/// Every field is one that the API knows: what a typed decoding drops, a server would drop too.
#[test]
fn no_field_is_made_up() {
    fn typed<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> Value {
        let typed: T = serde_json::from_value(object.clone()).expect("the type");
        serde_json::to_value(typed).expect("JSON")
    }
    let mut settings = settings();
    settings.pod.priority_class = "tenants".to_owned();
    settings.pod.image_pull_secrets = vec!["pull".to_owned()];
    settings.pod.node_selector = vec!["pool=apps".to_owned()];
    settings.pod.tolerations = vec!["gvisor=yes:NoSchedule".to_owned()];
    settings.network.gateway_selector = vec!["app=gateway".to_owned()];
    let template = Template::new(&settings);
    let (pod, secret, policy) = (template.pod(&order(), &digest()), template.secret(&order(), "x"), Policy::new(&settings).object());
    assert_eq!(typed::<k8s_openapi::api::core::v1::Pod>(&pod), pod);
    assert_eq!(typed::<k8s_openapi::api::core::v1::Secret>(&secret), secret);
    assert_eq!(typed::<k8s_openapi::api::networking::v1::NetworkPolicy>(&policy), policy);
}

#[test]
fn the_profile_pinecall_has_the_seeds_names() {
    let template = Template::new(&Settings { profile: Profile::Pinecall, ..settings() });
    let pod = template.pod(&order(), &digest());
    let at = |path: &str| pod.pointer(path).cloned().unwrap_or_default();
    assert_eq!(at("/metadata/labels/pinecall.io~1app"), json!(app().stamp()));
    assert_eq!(at("/metadata/labels/pinecall.io~1world"), json!("test"));
    assert_eq!(at("/metadata/labels/pinecall.io~1release"), json!("2"));
    assert_eq!(at("/metadata/annotations/pinecall.io~1app"), json!("acme/bot"));
    assert_eq!(at("/spec/containers/0/command/2"), json!(". /run/pinecall/env && exec \"$@\""));
    assert_eq!(at("/spec/containers/0/volumeMounts/2/mountPath"), json!("/run/pinecall"));
    assert_eq!(
        at("/spec/initContainers/0/env/2"),
        json!({"name": "PINECALL_SOURCE", "value": format!("http://wharf.test:7071/sources/{}", digest())})
    );
    assert_eq!(at("/spec/initContainers/0/resources/limits/memory"), json!("1Gi"));
    assert_eq!(at("/spec/containers/0/resources/limits"), json!({"memory": "256Mi", "cpu": "500m", "ephemeral-storage": "3Gi"}));
}

#[test]
fn the_settings_are_in_the_pod() {
    let mut settings = settings();
    settings.pod.runtime_class = String::new();
    settings.pod.priority_class = "tenants".to_owned();
    settings.pod.image_pull_secrets = vec!["pull".to_owned()];
    settings.pod.node_selector = vec!["pool=apps".to_owned(), "bare".to_owned()];
    settings.pod.tolerations = vec!["gvisor=yes:NoSchedule".to_owned(), "spot:NoExecute".to_owned(), "any".to_owned()];
    settings.pod.labels = vec!["team=x".to_owned(), "wharfinger.dev/managed-by=evil".to_owned(), "wharfinger.dev/new=evil".to_owned()];
    settings.pod.resolvers = Vec::new();
    settings.pod.command = vec!["node".to_owned(), "a b.js".to_owned()];
    let pod = Template::new(&settings).pod(&order(), &digest());
    let spec = &pod["spec"];
    assert_eq!((spec.get("runtimeClassName"), &spec["dnsPolicy"], spec.get("dnsConfig")), (None, &json!("Default"), None));
    assert_eq!(spec["priorityClassName"], json!("tenants"));
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(spec["nodeSelector"], json!({"pool": "apps", "bare": ""}));
    assert_eq!(
        spec["tolerations"],
        json!([
            {"key": "gvisor", "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
            {"key": "spot", "operator": "Exists", "effect": "NoExecute"},
            {"key": "any", "operator": "Exists"},
        ])
    );
    let labels = &pod["metadata"]["labels"];
    assert_eq!((&labels["team"], &labels["wharfinger.dev/managed-by"]), (&json!("x"), &json!("wharfinger")));
    assert_eq!(labels.get("wharfinger.dev/new"), None, "ours cannot be set");
    assert_eq!(spec["containers"][0]["command"], json!(["sh", "-c", ". /run/wharf/env && exec \"$@\"", "sh", "node", "a b.js"]));
}

#[test]
fn a_pod_that_we_made_is_read_as_ours() {
    for profile in [Profile::Wharf, Profile::Pinecall] {
        let settings = Settings { profile, ..settings() };
        let template = Template::new(&settings);
        let mut pod = template.pod(&order(), &digest());
        pod["metadata"]["uid"] = json!("u-1");
        pod["metadata"]["resourceVersion"] = json!("5");
        let (view, odd) = view::read::<PodView>(pod.to_string().as_bytes()).expect("JSON");
        let seen = crate::kube::convert::observe(&Scheme::new(&settings), &view, odd).expect("an observation");
        assert_eq!(seen.ownership, crate::kube::labels::Ownership::Ours(app()));
        assert_eq!((seen.seen.release, seen.seen.sha256, seen.seen.step), (2, Some(digest()), Some(step(17))));
        assert_eq!(seen.manifest_digest, Some(template.digest(&pod_as_sent(&template))));
    }
}

fn pod_as_sent(template: &Template) -> Value {
    template.pod(&order(), &digest())
}

#[test]
fn the_digest_knows_what_differs_and_not_who_asked() {
    let template = Template::new(&settings());
    let of = |template: &Template, order: &Order, sha256: &PackageDigest| {
        let pod = template.pod(order, sha256);
        let annotated = pod["metadata"]["annotations"]["wharfinger.dev/digest"].as_str().expect("a digest").to_owned();
        assert_eq!(annotated, template.digest(&pod));
        annotated
    };
    let first = of(&template, &order(), &digest());
    assert_eq!(of(&template, &Order { step: step(99), attempts: 3, ..order() }, &digest()), first);
    assert_ne!(of(&template, &Order { release: 3, ..order() }, &digest()), first);
    assert_ne!(of(&template, &order(), &PackageDigest::from_bytes([1; 32])), first);
    let mut other = settings();
    other.pod.memory = "512Mi".to_owned();
    assert_ne!(of(&Template::new(&other), &order(), &digest()), first);
    assert_eq!(
        canonical(&json!({"b": [1, {"d": null, "c": "\"\u{e9}"}], "a": {}, "e": []})),
        r#"{"a":{},"b":[1,{"c":"\"é","d":null}],"e":[]}"#
    );
}

#[test]
fn a_policy_means_the_same_whatever_the_server_fills_in() {
    let policy = Policy::new(&settings());
    let there = || {
        let mut there = policy.object();
        there["metadata"]["uid"] = json!("u");
        there["metadata"]["annotations"] = json!({"somebody": "else's"});
        there["spec"]["ingress"] = json!([]);
        there["spec"]["policyTypes"] = json!(["Ingress", "Egress"]);
        there["spec"]["egress"].as_array_mut().expect("rules").reverse();
        there["spec"]["egress"][1]["ports"][0].as_object_mut().expect("a port").remove("protocol");
        there
    };
    assert!(policy.is_same(&there()), "{}", pretty(&there()));
    let differs = |path: &str, value: Value| {
        let mut there = there();
        let at = there.pointer_mut(path).unwrap_or_else(|| panic!("{path}"));
        *at = value;
        assert!(!policy.is_same(&there), "{path}");
    };
    differs("/spec/ingress", json!([{}]));
    differs("/spec/egress", json!([]));
    differs("/spec/egress", json!([{}]));
    differs("/spec/podSelector", json!({}));
    differs("/spec/policyTypes", json!(["Ingress"]));
    differs("/spec/egress/0/to/0/ipBlock/except", json!([]));
    differs("/metadata/labels", json!({}));
    let mut more = there();
    more["spec"]["egress"].as_array_mut().expect("rules").push(json!({}));
    assert!(!policy.is_same(&more));
    assert!(!policy.is_same(&json!({})) && !policy.is_same(&Value::Null));
}

#[test]
fn a_policy_never_has_a_rule_that_allows_everything() {
    for (egress, selector, ports) in [(0, 0, 1), (1, 0, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1)] {
        let mut settings = settings();
        settings.network.gateway_egress = vec!["203.0.113.7/32".to_owned(); egress];
        settings.network.gateway_selector = vec!["app=gateway".to_owned(); selector];
        settings.network.gateway_ports = vec![443; ports];
        settings.network.sources_selector = Vec::new();
        let rules = Policy::new(&settings).object()["spec"]["egress"].take();
        for rule in rules.as_array().expect("rules") {
            let some = |field: &str| rule.get(field).is_none_or(|list| !list.as_array().expect("a list").is_empty());
            assert!(rule.get("to").is_some() && some("to") && some("ports"), "{rule}");
        }
    }
    let mut settings = settings();
    settings.pod.resolvers = vec!["2606:4700:4700::1111".to_owned()];
    let rules = Policy::new(&settings).object()["spec"]["egress"].take();
    assert_eq!(rules[0]["to"][0]["ipBlock"]["cidr"], json!("2606:4700:4700::1111/128"));
}

#[test]
fn b32_a_hostname_is_cut_and_does_not_end_with_a_dash() {
    assert_eq!(hostname(&host("bot-r1-abc")), "bot-r1-abc");
    let long = format!("{}-{}", "a".repeat(62), "b".repeat(20));
    assert_eq!(hostname(&host(&long)), "a".repeat(62));
    let dashes = format!("a{}b", "-".repeat(80));
    assert_eq!(hostname(&host(&dashes)), "a");
}

/// Whether a label's value is one: at most 63 of letters, digits, '-', '_', '.', with a letter or digit at both ends.
fn is_label_value(value: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    value.is_empty()
        || (value.len() <= 63
            && edge(value.chars().next())
            && edge(value.chars().last())
            && value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9._-]{1,300}",
        "[a-z0-9-]{1,70}",
        "[a-z][a-z0-9]{0,30}",
        "[a-z]{60,62}[-.][a-z-]{0,40}[a-z]",
        "[a-z]{0,5}(ß|İ|\u{1f600}|e\u{301}){1,3}[a-z]{0,5}",
    ]
}

proptest! {
    #[test]
    fn b32_every_name_that_is_made_is_valid_or_refused(org in any_name(), name in any_name(), host in any_name(), release: u64, seq: u64) {
        let (Ok(app), Ok(host)) = (AppId::new(&org, &name), HostName::new(&host)) else {
            let bad = !is_dns_label(&org, 63) || !is_dns_label(&name, 63) || !is_dns_label(&host, 249);
            prop_assert!(bad, "a good name was refused");
            return Ok(());
        };
        let order = Order { app, host, release, step: step(seq), attempts: 0 };
        let template = Template::new(&settings());
        let (pod, secret) = (template.pod(&order, &digest()), template.secret(&order, ""));
        for object in [&pod, &secret] {
            let name = object["metadata"]["name"].as_str().expect("a name");
            prop_assert!(is_dns_label(name, 253), "{name}");
            for (key, value) in object["metadata"]["labels"].as_object().expect("labels") {
                prop_assert!(is_label_value(value.as_str().expect("text")), "{key}={value}");
            }
        }
        let spec = &pod["spec"];
        prop_assert!(is_dns_label(spec["hostname"].as_str().expect("text"), 63), "{}", spec["hostname"]);
        prop_assert_eq!(&spec["volumes"][3]["secret"]["secretName"], &secret["metadata"]["name"]);
        for list in ["volumes", "containers", "initContainers"] {
            for named in spec[list].as_array().expect("a list") {
                prop_assert!(is_dns_label(named["name"].as_str().expect("text"), 63));
            }
        }
    }
}
