//! The shipped rights (deploy/rbac.yaml) in a test's namespace, and the daemon's way in with them.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::expect;

const RBAC: &str = include_str!("../../../deploy/rbac.yaml");

/// The daemon's service account.
const ACCOUNT: &str = "wharf";

/// Between two looks at whether a right holds.
const LOOK: Duration = Duration::from_millis(50);

impl ControlPlane {
    /// Installs the shipped service account and its rights, all of it in this one namespace; what is cluster-wide only if asked
    /// for, under a name of its own. Returns when the API server grants it.
    pub(crate) async fn install_rights(&self, namespace: &str, with_cluster_role: bool) {
        let admin = self.admin_client(namespace).await;
        for object in adapted(namespace) {
            let kind = object["kind"].as_str().expect("a kind");
            let path = match kind {
                "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts"),
                "Role" => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles"),
                "RoleBinding" => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"),
                "ClusterRole" | "ClusterRoleBinding" if !with_cluster_role => continue,
                "ClusterRole" => "/apis/rbac.authorization.k8s.io/v1/clusterroles".to_owned(),
                "ClusterRoleBinding" => "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings".to_owned(),
                "Namespace" => continue,
                _ => panic!("deploy/rbac.yaml has a {kind}, which is new to the tests"),
            };
            expect(&admin, "POST", &path, &object, 201).await;
        }
        self.granted(namespace, json!({"namespace": namespace, "verb": "list", "resource": "pods"})).await;
        if with_cluster_role {
            self.granted(namespace, json!({"verb": "list", "resource": "nodes"})).await;
        }
    }

    /// Waits until the API server has heard of a right.
    async fn granted(&self, namespace: &str, attributes: Value) {
        let admin = self.admin_client(namespace).await;
        let spec = json!({"user": format!("system:serviceaccount:{namespace}:{ACCOUNT}"), "resourceAttributes": attributes});
        let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec});
        for _ in 0..200 {
            let answer = expect(&admin, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", &review, 201).await;
            if answer["status"]["allowed"] == true {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("not granted: {review}");
    }

    /// The path of a kubeconfig with a token of the shipped service account, good for an hour.
    pub(crate) async fn daemon_kubeconfig(&self, namespace: &str) -> PathBuf {
        let admin = self.admin_client(namespace).await;
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{ACCOUNT}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}});
        let answer = expect(&admin, "POST", &path, &request, 201).await;
        let token = answer["status"]["token"].as_str().expect("a token");
        self.kubeconfig(&format!("daemon-{namespace}"), token, namespace).expect("a kubeconfig can be written")
    }
}

/// The shipped objects with one namespace for everything.
fn adapted(namespace: &str) -> Vec<Value> {
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(RBAC).expect("deploy/rbac.yaml is YAML");
    for object in &mut objects {
        if object["metadata"]["namespace"].is_string() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        for subject in object["subjects"].as_array_mut().into_iter().flatten() {
            subject["namespace"] = json!(namespace);
        }
        if matches!(object["kind"].as_str(), Some("ClusterRole" | "ClusterRoleBinding")) {
            object["metadata"]["name"] = json!(format!("{ACCOUNT}-{namespace}"));
        }
        if object["roleRef"]["kind"] == "ClusterRole" {
            object["roleRef"]["name"] = json!(format!("{ACCOUNT}-{namespace}"));
        }
    }
    objects
}
