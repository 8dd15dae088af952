//! Sessions on the cluster: what is sent, what an API server makes of it, what is read back, and whose it is.

use expect_test::{expect, expect_file};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::step;
use crate::clock::{Clock, Entropy};
use crate::config::{Profile, Settings, Switch};
use crate::events::kinds::session::{ServiceSeen, SessionStep};
use crate::events::kinds::step::{ObjectSeen, Refusal};
use crate::events::record::Event;
use crate::ids::{HostName, SessionId, Tenant, Uid, Word, is_dns_label};
use crate::kube::answer::Answer;
use crate::kube::labels::Ownership;
use crate::kube::perform::{Performed, SessionCluster, SessionPerformed};
use crate::kube::policy::Confirmed as _;
use crate::kube::session::labels::SessionScheme;
use crate::kube::session::manifest::{SessionOrder, SessionTemplate};
use crate::kube::session::policy::SessionPolicy;
use crate::kube::view::{MetaView, tolerant};
use crate::sim::api::{ApiOptions, ClusterApi};

const START_US: i64 = 1_796_040_000_000_000;

fn settings() -> Settings {
    let mut settings = super::settings();
    settings.sessions.serve = Switch::On;
    settings.sessions.image = format!("registry.test/session@sha256:{}", "5a".repeat(32));
    settings.sessions.frontend_selector = vec!["app=front".to_owned()];
    settings
}

fn poimen() -> Settings {
    Settings { profile: Profile::Poimen, sessions: Box::new(crate::config::Sessions::of_poimen()), ..settings() }
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).expect("an id")
}

fn tenant(text: &str) -> Tenant {
    Tenant::new(text).expect("a tenant")
}

fn order(seq: u64) -> SessionOrder {
    SessionOrder { id: id("s1"), tenant: tenant("acme"), step: step(seq), attempts: 0 }
}

fn pod_name() -> HostName {
    HostName::new("pi-session-s1").expect("a name")
}

fn claim_name() -> Word {
    Word::new("workspace-session-s1")
}

fn service_name() -> Word {
    Word::new("pi-session-s1")
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON") + "\n"
}

/// The three objects and the policy.
fn objects(settings: &Settings) -> [Value; 4] {
    let template = SessionTemplate::new(settings);
    [
        template.claim(&order(17), &claim_name()),
        template.pod(&order(18), &pod_name(), &claim_name()),
        template.service(&order(19), &service_name()),
        SessionPolicy::new(settings).object(),
    ]
}

#[test]
fn the_objects_are_these() {
    let [claim, pod, service, policy] = objects(&settings());
    expect_file!["data/session_claim.json"].assert_eq(&pretty(&claim));
    expect_file!["data/session_pod.json"].assert_eq(&pretty(&pod));
    expect_file!["data/session_service.json"].assert_eq(&pretty(&service));
    expect_file!["data/session_policy.json"].assert_eq(&pretty(&policy));
}

/// Every field is one that the API knows: what a typed decoding drops, a server would drop too.
#[test]
fn no_field_is_made_up() {
    fn typed<T: serde::de::DeserializeOwned + serde::Serialize>(object: &Value) -> Value {
        let typed: T = serde_json::from_value(object.clone()).expect("the type");
        serde_json::to_value(typed).expect("JSON")
    }
    let mut settings = settings();
    settings.sessions.priority_class = "tenants".to_owned();
    settings.sessions.image_pull_secrets = vec!["pull".to_owned()];
    settings.sessions.node_selector = vec!["pool=sessions".to_owned()];
    settings.sessions.tolerations = vec!["gvisor=yes:NoSchedule".to_owned()];
    settings.sessions.frontend_namespace = vec!["team=front".to_owned()];
    settings.sessions.gateway_selector = vec!["app=gateway".to_owned()];
    let [claim, pod, service, policy] = objects(&settings);
    assert_eq!(typed::<k8s_openapi::api::core::v1::PersistentVolumeClaim>(&claim), claim);
    assert_eq!(typed::<k8s_openapi::api::core::v1::Pod>(&pod), pod);
    assert_eq!(typed::<k8s_openapi::api::core::v1::Service>(&service), service);
    assert_eq!(typed::<k8s_openapi::api::networking::v1::NetworkPolicy>(&policy), policy);
}

#[tokio::test(start_paused = true)]
async fn the_profile_poimen_has_the_seeds_names() {
    let [claim, pod, service, policy] = objects(&poimen());
    for object in [&claim, &pod, &service] {
        assert_eq!(object["metadata"]["labels"]["app"], json!("pi-session"));
        assert_eq!(object["metadata"]["labels"]["session-id"], json!("s1"));
    }
    assert_eq!(pod["spec"]["containers"][0]["name"], json!("pi-session"));
    assert_eq!(policy["metadata"]["name"], json!("pi-session-sandbox"));
    assert_eq!(policy["spec"]["podSelector"], json!({"matchLabels": {"app": "pi-session"}}));
    assert_eq!(policy["spec"]["ingress"][0]["from"], json!([{"podSelector": {"matchLabels": {"app": "poimen-frontend"}}}]));
    assert_eq!(SessionCluster::new(server().client("x"), "apps", &poimen()).namespace(), "poimen");
}

#[test]
fn b48_dns_goes_both_ways_of_asking_and_the_metadata_address_stays_shut() {
    let egress = SessionPolicy::new(&settings()).object()["spec"]["egress"].take();
    expect![[r#"[{"ports":[{"port":53,"protocol":"TCP"},{"port":53,"protocol":"UDP"}],"to":[{"ipBlock":{"cidr":"169.254.20.10/32"}},{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}}]},{"ports":[{"port":8080,"protocol":"TCP"}],"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"api"}}}]}]"#]].assert_eq(&egress.to_string());
    let mut shut = settings();
    shut.sessions.dns_blocks = Vec::new();
    shut.sessions.dns_namespace = Vec::new();
    shut.sessions.gateway_namespace = Vec::new();
    shut.sessions.frontend_selector = Vec::new();
    let spec = SessionPolicy::new(&shut).object()["spec"].take();
    assert_eq!((&spec["egress"], &spec["ingress"]), (&json!([]), &json!([])), "without a peer there is no rule, not one for everybody");
}

#[test]
fn a_policy_that_selects_a_session_widens_ours() {
    let policy = SessionPolicy::new(&settings());
    let other = |selector: Value| json!({"metadata": {"name": "other"}, "spec": {"podSelector": selector}});
    let key = |name: &str| format!("wharfinger.dev/{name}");
    let widening = [
        json!({}),
        json!({"matchLabels": {key("kind"): "session"}}),
        json!({"matchLabels": {key("session"): "s1"}}),
        json!({"matchExpressions": [{"key": key("tenant"), "operator": "Exists"}]}),
        json!({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}),
        json!({"matchExpressions": [{"key": key("kind"), "operator": "NotIn", "values": ["app"]}]}),
        json!({"matchExpressions": [{"key": "x", "operator": "Newer"}]}),
    ];
    for selector in widening {
        assert!(policy.is_widened_by(&other(selector.clone())), "{selector}");
    }
    let harmless = [
        json!({"matchLabels": {"app": "web"}}),
        json!({"matchLabels": {key("kind"): "app"}}),
        json!({"matchLabels": {key("kind"): "session", "more": "x"}}),
        json!({"matchExpressions": [{"key": key("kind"), "operator": "NotIn", "values": ["session"]}]}),
        json!({"matchExpressions": [{"key": key("session"), "operator": "DoesNotExist"}]}),
    ];
    for selector in harmless {
        assert!(!policy.is_widened_by(&other(selector.clone())), "{selector}");
    }
    assert!(!policy.is_widened_by(&policy.object()));
}

#[test]
fn b11_ours_is_what_bears_all_labels() {
    let scheme = SessionScheme::new(&settings());
    let whose = |change: &dyn Fn(&mut Value)| {
        let [claim, ..] = objects(&settings());
        let mut claim = claim;
        change(&mut claim);
        scheme.ownership(&tolerant::<MetaView>(&claim).0.metadata)
    };
    assert_eq!(whose(&|_| {}), Ownership::Ours(id("s1")));
    assert_eq!(whose(&|claim| claim["metadata"]["labels"] = json!({})), Ownership::Foreign);
    assert_eq!(whose(&|claim| claim["metadata"]["labels"]["wharfinger.dev/kind"] = json!("app")), Ownership::Foreign);
    assert_eq!(whose(&|claim| claim["metadata"]["labels"]["wharfinger.dev/instance"] = json!("x")), Ownership::OursOtherInstance);
    assert!(matches!(whose(&|claim| claim["metadata"]["labels"]["wharfinger.dev/session"] = json!("A")), Ownership::Unreadable { .. }));
}

fn server() -> ClusterApi {
    let api = ClusterApi::new(ApiOptions::new(Clock::simulated(START_US), Entropy::seeded(1)));
    api.add_namespace("apps", &[("pod-security.kubernetes.io/enforce", "restricted")]);
    api
}

/// A server that enforces Pod Security, and our edge to it.
fn edge() -> (ClusterApi, SessionCluster) {
    let api = server();
    let cluster = SessionCluster::new(api.client("apps"), "apps", &settings());
    (api, cluster)
}

async fn put(api: &ClusterApi, path: &str, object: &Value) -> Value {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(object).expect("JSON"))
        .expect("a request");
    api.client("apps").request(request).await.expect("it is created")
}

async fn perform(cluster: &SessionCluster, seq: u64, what: &SessionStep) -> SessionPerformed {
    cluster.perform(&id("s1"), step(seq), 0, what).await
}

fn create_claim() -> SessionStep {
    SessionStep::CreateClaim { name: claim_name(), tenant: tenant("acme") }
}

fn create_pod() -> SessionStep {
    SessionStep::CreatePod { name: pod_name(), tenant: tenant("acme"), claim: claim_name() }
}

fn put_service(replaces: Option<ObjectSeen>) -> SessionStep {
    SessionStep::PutService { name: service_name(), tenant: tenant("acme"), replaces }
}

fn short(performed: &SessionPerformed) -> String {
    let Performed { answer, calls, requests, object, .. } = &performed.performed;
    let seen = performed.seen.as_ref().map(|event| event.kind().name());
    let verbs: Vec<String> = calls.iter().map(|call| format!("{} {}", call.verb, call.status)).collect();
    format!("{answer:?} object {} seen {} [{}] of {requests}", object.is_some(), seen.unwrap_or("-"), verbs.join(", "))
}

#[tokio::test(start_paused = true)]
async fn a_session_is_made_with_three_writes_under_pod_security_restricted() {
    let (api, cluster) = edge();
    api.add_runtime_class("gvisor");
    expect!["Done object true seen ClaimSeen [create 201] of 1"].assert_eq(&short(&perform(&cluster, 1, &create_claim()).await));
    expect!["Done object true seen ServiceSeen [create 201] of 1"].assert_eq(&short(&perform(&cluster, 2, &put_service(None)).await));
    expect!["Done object true seen PodSeen [create 201] of 1"].assert_eq(&short(&perform(&cluster, 3, &create_pod()).await));
    // Again, as after a crash: nothing is made twice, and what is there is seen.
    expect!["AlreadySo object true seen ClaimSeen [create 409] of 2"].assert_eq(&short(&perform(&cluster, 4, &create_claim()).await));
    expect!["AlreadySo object true seen ServiceSeen [create 409] of 2"].assert_eq(&short(&perform(&cluster, 5, &put_service(None)).await));
    let again = perform(&cluster, 6, &create_pod()).await;
    expect!["AlreadySo object true seen PodSeen [create 409] of 2"].assert_eq(&short(&again));
    let Some(Event::PodSeen(seen)) = again.seen else { panic!("a pod is seen") };
    assert_eq!((seen.host, seen.step), (pod_name(), Some(step(3))));
}

#[tokio::test(start_paused = true)]
async fn the_policy_is_made_once_confirmed_and_repaired() {
    let (api, cluster) = edge();
    let answer = |seq| {
        let cluster = cluster.clone();
        async move { cluster.ensure_policy(step(seq), 0).await.answer }
    };
    assert_eq!(answer(1).await, Answer::Done);
    assert_eq!(answer(2).await, Answer::AlreadySo, "what the server fills in does not count");
    let path = format!("/apis/networking.k8s.io/v1/namespaces/apps/networkpolicies/{}", cluster.policy().name());
    let patch = json!({"spec": {"ingress": [{}]}});
    let request = http::Request::patch(&path).header("content-type", "application/merge-patch+json");
    let request = request.body(serde_json::to_vec(&patch).expect("JSON")).expect("a request");
    api.client("apps").request::<Value>(request).await.expect("somebody opens it");
    assert_eq!(answer(3).await, Answer::Done, "repaired");
    assert_eq!(answer(4).await, Answer::AlreadySo);
}

#[tokio::test(start_paused = true)]
async fn b11_a_foreign_policy_of_that_name_is_refused() {
    let (api, cluster) = edge();
    let mut foreign = cluster.policy().object();
    foreign["metadata"]["labels"] = json!({"app": "x"});
    put(&api, "/apis/networking.k8s.io/v1/namespaces/apps/networkpolicies", &foreign).await;
    assert_eq!(cluster.ensure_policy(step(1), 0).await.answer, Answer::Refused(Refusal::NetworkPolicy));
}

#[tokio::test(start_paused = true)]
async fn b11_what_has_the_name_and_is_not_its_is_refused_and_stays() {
    let (api, cluster) = edge();
    let template = cluster.template();
    let other = |id_text: &str, tenant_text: &str| SessionOrder { id: id(id_text), tenant: tenant(tenant_text), ..order(9) };
    let claims = "/api/v1/namespaces/apps/persistentvolumeclaims";
    let there = put(&api, claims, &template.claim(&other("s2", "acme"), &claim_name())).await;
    let performed = perform(&cluster, 1, &create_claim()).await;
    expect!["Refused(Foreign) object false seen - [create 409] of 2"].assert_eq(&short(&performed));
    let services = "/api/v1/namespaces/apps/services";
    put(&api, services, &template.service(&other("s1", "evil"), &service_name())).await;
    expect!["Refused(Foreign) object false seen ServiceSeen [create 409] of 2"]
        .assert_eq(&short(&perform(&cluster, 2, &put_service(None)).await));
    // A delete by the uid that was decided on does not meet another object.
    let uid = Uid::new("another").expect("a uid");
    let delete = SessionStep::DeleteClaim { name: claim_name(), uid };
    expect!["Gone object false seen - [delete 409] of 2"].assert_eq(&short(&perform(&cluster, 3, &delete).await));
    let kept = api.object("persistentvolumeclaims", "apps", claim_name().as_str()).expect("it is there");
    assert_eq!(*kept.value(), there, "byte for byte");
}

#[tokio::test(start_paused = true)]
async fn b51_a_service_is_repaired_and_keeps_its_address() {
    let (api, cluster) = edge();
    let mut old = cluster.template().service(&order(9), &service_name());
    old["spec"]["selector"] = json!({"old": "selector"});
    put(&api, "/api/v1/namespaces/apps/services", &old).await;
    let found = perform(&cluster, 1, &put_service(None)).await;
    let Some(Event::ServiceSeen(ServiceSeen { as_made: false, address, uid, resource_version, .. })) = found.seen else {
        panic!("it is seen as it is: {found:?}")
    };
    let replaces = Some(ObjectSeen { uid, resource_version });
    let repaired = perform(&cluster, 2, &put_service(replaces)).await;
    expect!["Done object true seen ServiceSeen [update 200] of 2"].assert_eq(&short(&repaired));
    let Some(Event::ServiceSeen(seen)) = repaired.seen else { panic!("it is seen") };
    assert_eq!((seen.as_made, seen.address), (true, address));
    assert!(address.is_some());
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_is_deleted_by_uid_and_read_as_gone() {
    let (_api, cluster) = edge();
    let made = perform(&cluster, 1, &create_claim()).await;
    let uid = made.performed.object.expect("an object").uid;
    let delete = SessionStep::DeleteClaim { name: claim_name(), uid: uid.clone() };
    let read = SessionStep::ReadClaim { name: claim_name() };
    expect!["Done object true seen ClaimSeen [] of 1"].assert_eq(&short(&perform(&cluster, 2, &read).await));
    assert_eq!(perform(&cluster, 3, &delete).await.performed.answer, Answer::Done);
    expect!["Gone object false seen - [] of 1"].assert_eq(&short(&perform(&cluster, 4, &read).await));
    assert_eq!(perform(&cluster, 5, &delete).await.performed.answer, Answer::Gone);
}

#[tokio::test(start_paused = true)]
async fn b54_without_the_runtime_class_there_is_no_pod() {
    let (_api, cluster) = edge();
    let performed = perform(&cluster, 1, &create_pod()).await;
    assert_eq!(performed.performed.answer, Answer::Refused(Refusal::RuntimeClass));
}

proptest! {
    #[test]
    fn b32_every_name_of_a_session_is_valid_and_its_own(one in "[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", other in "[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?") {
        let sessions = settings().sessions;
        let names = |id: &str| [format!("{}{id}", sessions.pod_prefix), format!("{}{id}", sessions.claim_prefix)];
        for name in names(&one) {
            prop_assert!(is_dns_label(&name, 63) && name.starts_with(|c: char| c.is_ascii_lowercase()), "{}", name);
        }
        prop_assert!(one == other || names(&one).iter().zip(names(&other)).all(|(a, b)| *a != b));
    }
}
