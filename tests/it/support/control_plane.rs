//! A real control plane on loopback: etcd, kube-apiserver and kube-controller-manager, started with the first test that wants
//! them, shared by all, and gone with this process. No kubelet, no scheduler: the simulated nodes are both.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ::kube::config::{KubeConfigOptions, Kubeconfig};
use ::kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use wharfinger::sim::node::Identity;

use super::pki::Pki;
use super::process::{Guarded, sweep_at_the_end};
use super::{PATIENCE, ask, expect, skipped, until};

/// The programs that there have to be.
const PROGRAMS: [&str; 3] = ["etcd", "kube-apiserver", "kube-controller-manager"];

/// The controllers that tests meet: default service accounts, namespaces that go, garbage, volume claims.
const CONTROLLERS: &str = "serviceaccount-controller,garbage-collector-controller,persistentvolume-binder-controller,\
                           persistentvolume-protection-controller,persistentvolumeclaim-protection-controller,namespace-controller";

/// Between two looks at whether a program is ready.
const LOOK: Duration = Duration::from_millis(50);

/// How often a port is chosen anew that another process was faster to take.
const PORTS: u32 = 5;

/// A running control plane.
pub(crate) struct ControlPlane {
    folder: PathBuf,
    server: String,
    pki: Pki,
    namespaces: AtomicU32,
    _sweeper: Child,
    _processes: Vec<Guarded>,
}

static SHARED: OnceCell<Option<ControlPlane>> = OnceCell::const_new();

impl ControlPlane {
    /// The one of this process; `None` when the programs are not there: the test that asks is said to be skipped.
    pub(crate) async fn shared() -> Option<&'static Self> {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let Some(programs) = programs() else {
            skipped("no kube-apiserver: set KUBEBUILDER_ASSETS or run hack/kube-assets/build.sh");
            return None;
        };
        let start = async || match Self::start(&programs).await {
            Ok(started) => Some(started),
            Err(error) => panic!("the control plane did not start: {error}"),
        };
        SHARED.get_or_init(start).await.as_ref()
    }

    async fn start(programs: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("wharf-it-").tempdir()?.keep();
        let sweeper = sweep_at_the_end(&folder)?;
        let pki = Pki::make(&folder.join("pki"))?;
        fs::write(folder.join("tokens.csv"), TOKENS)?;
        fs::write(folder.join("audit-policy.yaml"), AUDIT_POLICY)?;
        let etcd = start_etcd(programs, &folder)?;
        let (server, apiserver) = start_apiserver(programs, &folder, &pki).await?;
        let namespaces = AtomicU32::new(0);
        let mut started = Self { folder, server, pki, namespaces, _sweeper: sweeper, _processes: vec![etcd, apiserver] };
        let manager = started.kubeconfig("controller-manager", "kcm-token", "default")?;
        let arguments = [
            format!("--kubeconfig={}", manager.display()),
            "--secure-port=0".to_owned(),
            "--leader-elect=false".to_owned(),
            format!("--controllers={CONTROLLERS}"),
            "--use-service-account-credentials=true".to_owned(),
            format!("--service-account-private-key-file={}", started.pki.file("sa.key")),
            format!("--root-ca-file={}", started.pki.file("ca.crt")),
            "--kube-api-qps=300".to_owned(),
            "--kube-api-burst=600".to_owned(),
            "--pvclaimbinder-sync-period=1s".to_owned(),
        ];
        let program = programs.join("kube-controller-manager");
        started._processes.push(Guarded::start(&program, &arguments, started.folder.join("controller-manager.log"))?);
        started.kubeconfig("admin", "admin-token", "default")?;
        Ok(started)
    }

    /// A client that may do everything. It belongs to the runtime it is made in.
    pub(crate) async fn admin_client(&self, namespace: &str) -> Client {
        client(&self.admin_kubeconfig(), namespace).await.expect("a kubeconfig of ours")
    }

    /// The path of a kubeconfig that may do everything.
    pub(crate) fn admin_kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    /// Makes a namespace for a test, enforcing Pod Security `restricted`, and waits until pods can be created in it.
    pub(crate) async fn namespace(&self, test: &str) -> String {
        let letters = test.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let short: String = letters.take(40).collect();
        let name = format!("{}-{}", short.trim_matches('-'), self.namespaces.fetch_add(1, Ordering::Relaxed));
        let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
        let admin = self.admin_client(&name).await;
        expect(&admin, "POST", "/api/v1/namespaces", &object, 201).await;
        until(&admin, &format!("/api/v1/namespaces/{name}/serviceaccounts"), "default", "0", |_, _| true).await;
        name
    }

    /// Registers a runtime class, once.
    pub(crate) async fn register_runtime_class(&self, name: &str) {
        let admin = self.admin_client("default").await;
        let object = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runsc"});
        let (code, answer) = ask(&admin, "POST", "/apis/node.k8s.io/v1/runtimeclasses", &object).await.expect("an answer");
        assert!([201, 409].contains(&code), "{answer}");
    }

    /// What the simulated kubelet shows to the API server.
    pub(crate) fn kubelet_identity(&self) -> Identity {
        Identity { certificate: self.pki.server_certificate.clone(), key: self.pki.server_key.clone() }
    }

    /// The entries of the API server's audit log so far that are so, oldest first.
    pub(crate) fn audit_entries(&self, so: impl Fn(&Value) -> bool) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.join("audit.log")).expect("the audit log is there");
        // The last line may be half written.
        let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries.filter(|entry| so(entry)).collect()
    }

    /// Waits until there are so many: an entry is written just after its answer.
    pub(crate) async fn audited(&self, count: usize, so: impl Fn(&Value) -> bool) -> Vec<Value> {
        for _ in 0..100 {
            let entries = self.audit_entries(&so);
            if entries.len() >= count {
                return entries;
            }
            tokio::time::sleep(LOOK).await;
        }
        panic!("fewer than {count} such entries in the audit log: {:#?}", self.audit_entries(so))
    }

    /// Writes a kubeconfig for a token.
    pub(super) fn kubeconfig(&self, name: &str, token: &str, namespace: &str) -> io::Result<PathBuf> {
        let path = self.folder.join(name).with_extension("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.server, "certificate-authority-data": self.pki.authority_data}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}],
        });
        fs::write(&path, config.to_string())?;
        Ok(path)
    }
}

/// Name, user, uid, groups.
const TOKENS: &str = "kcm-token,system:kube-controller-manager,u-kcm,\nadmin-token,admin,u-admin,\"system:masters\"\n";

const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
";

/// The folder with the programs: the one that is named, else the one that hack/kube-assets/build.sh builds into.
#[expect(clippy::disallowed_methods, reason = "where the tests' programs are is no setting of the daemon")]
fn programs() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let folder = variable("KUBEBUILDER_ASSETS").or_else(|| Some(cache()?.join("wharfinger/kube-assets")))?;
    PROGRAMS.iter().all(|program| folder.join(program).is_file()).then_some(folder)
}

fn start_etcd(programs: &Path, folder: &Path) -> io::Result<Guarded> {
    let arguments = [
        "--name=e0".to_owned(),
        format!("--data-dir={}", folder.join("etcd").display()),
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
        "--heartbeat-interval=20".to_owned(),
        "--election-timeout=100".to_owned(),
        // As kubeadm sets it: bookmarks depend on it.
        "--watch-progress-notify-interval=5s".to_owned(),
        format!("--listen-client-urls={}", etcd_url(folder)),
        "--advertise-client-urls=http://127.0.0.1:1".to_owned(),
        "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
        "--initial-advertise-peer-urls=http://127.0.0.1:0".to_owned(),
        "--initial-cluster=e0=http://127.0.0.1:0".to_owned(),
    ];
    Guarded::start(&programs.join("etcd"), &arguments, folder.join("etcd.log"))
}

/// A socket in the folder: no port can be taken.
fn etcd_url(folder: &Path) -> String {
    format!("unix://{}", folder.join("etcd.sock").display())
}

/// Starts the API server on a free port and waits until it is ready. It cannot choose a port by itself.
async fn start_apiserver(programs: &Path, folder: &Path, pki: &Pki) -> io::Result<(String, Guarded)> {
    let mut printed = String::new();
    for attempt in 0..PORTS {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let log = folder.join(format!("apiserver-{attempt}.log"));
        let mut process = Guarded::start(&programs.join("kube-apiserver"), &apiserver_arguments(folder, pki, port), log)?;
        let server = format!("https://127.0.0.1:{port}");
        if ready(&server, pki, &mut process).await? {
            return Ok((server, process));
        }
        printed = process.printed();
        if !printed.contains("address already in use") {
            break;
        }
    }
    Err(io::Error::other(format!("kube-apiserver ended or was not ready:\n{printed}")))
}

fn apiserver_arguments(folder: &Path, pki: &Pki, port: u16) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers={}", etcd_url(folder)),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        "--advertise-address=127.0.0.1".to_owned(),
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--tls-cert-file={}", pki.file("server.crt")),
        format!("--tls-private-key-file={}", pki.file("server.key")),
        format!("--client-ca-file={}", pki.file("ca.crt")),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--authorization-mode=RBAC".to_owned(),
        "--allow-privileged=true".to_owned(),
        "--service-cluster-ip-range=10.96.0.0/24".to_owned(),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-signing-key-file={}", pki.file("sa.key")),
        format!("--service-account-key-file={}", pki.file("sa.pub")),
        format!("--audit-policy-file={}", file("audit-policy.yaml")),
        format!("--audit-log-path={}", file("audit.log")),
        "--audit-log-maxsize=1000".to_owned(),
        format!("--kubelet-client-certificate={}", pki.file("kubelet-client.crt")),
        format!("--kubelet-client-key={}", pki.file("kubelet-client.key")),
        format!("--kubelet-certificate-authority={}", pki.file("ca.crt")),
        "--kubelet-preferred-address-types=InternalIP".to_owned(),
    ]
}

/// Whether it became ready; not, when it ended or took too long.
async fn ready(server: &str, pki: &Pki, process: &mut Guarded) -> io::Result<bool> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority-data": pki.authority_data}}],
        "users": [{"name": "test", "user": {"token": "admin-token"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    });
    let client = of(serde_json::from_value(config)?, "default").await?;
    let looks = PATIENCE.as_millis() / LOOK.as_millis();
    for _ in 0..looks {
        if !process.runs() {
            return Ok(false);
        }
        if let Ok((200, _)) = ask(&client, "GET", "/readyz", &Value::Null).await {
            return Ok(true);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(false)
}

/// A client by a kubeconfig. It belongs to the runtime it is made in.
pub(crate) async fn client(kubeconfig: &Path, namespace: &str) -> io::Result<Client> {
    of(Kubeconfig::read_from(kubeconfig).map_err(io::Error::other)?, namespace).await
}

async fn of(kubeconfig: Kubeconfig, namespace: &str) -> io::Result<Client> {
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(io::Error::other)?;
    config.default_namespace = namespace.to_owned();
    config.default_retry = false;
    Client::try_from(config).map_err(io::Error::other)
}
