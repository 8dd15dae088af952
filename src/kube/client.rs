//! The connection to the API server, by an explicit setting: nothing is inferred, nothing is retried behind our back, and no
//! certificate goes unverified.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use ::kube::{Client, Config};

use crate::config::Kubernetes;
use crate::ids::is_dns_label;

/// What the process's surroundings say; `config` reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The variable `KUBECONFIG`.
    pub kubeconfig: Option<String>,
    /// The home directory.
    pub home: Option<PathBuf>,
    /// Whether the variable `KUBERNETES_SERVICE_HOST` is set: the process is in a pod.
    pub in_cluster: bool,
}

/// Where the access to the API server comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// Kubeconfig files, the first has precedence.
    Files(Vec<PathBuf>),
    /// The pod's service account.
    InCluster,
}

/// Why there is no connection; each is for the operator to set right.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing says where the cluster is.
    #[error("no cluster: kubernetes.kubeconfig and KUBECONFIG are empty, ~/.kube/config is not there, and this is no pod")]
    Nowhere,
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig {path}: {source}")]
    Kubeconfig {
        /// Which.
        path: String,
        /// Why.
        source: KubeconfigError,
    },
    /// The pod's service account cannot be used.
    #[error("in-cluster access: {0}")]
    InCluster(#[source] ::kube::config::InClusterError),
    /// The kubeconfig asks for unverified TLS.
    #[error("the kubeconfig sets insecure-skip-tls-verify: give the cluster's certificate-authority instead")]
    Unverified,
    /// The authority to trust is named, and is none.
    #[error("the certificate-authority holds no certificate")]
    NoAuthority,
    /// The API server is reached without TLS, and not on this machine.
    #[error("{0} is neither https nor on loopback")]
    Plain(String),
    /// The token's file would break every request.
    #[error("the token file {path}: {what}")]
    Token {
        /// Which.
        path: String,
        /// What is wrong.
        what: String,
    },
    /// The namespace is none.
    #[error("kubernetes.namespace \"{0}\": no DNS label of at most 63 characters")]
    Namespace(String),
    /// The client cannot be built: a certificate or key is unusable.
    #[error("the cluster's client: {0}")]
    Client(#[source] Box<::kube::Error>),
}

/// Where the access comes from: the setting, `KUBECONFIG`, `~/.kube/config` if it is there, else the pod's service account. What
/// is named explicitly must be there; nothing falls through.
///
/// # Errors
/// When there is nothing to go by.
pub fn access(settings: &Kubernetes, surroundings: &Surroundings) -> Result<Access, ConnectError> {
    if !settings.kubeconfig.is_empty() {
        return Ok(Access::Files(vec![PathBuf::from(&settings.kubeconfig)]));
    }
    let listed = surroundings.kubeconfig.as_deref().unwrap_or("");
    let listed: Vec<PathBuf> = listed.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    if !listed.is_empty() {
        return Ok(Access::Files(listed));
    }
    let at_home = surroundings.home.as_ref().map(|home| home.join(".kube").join("config")).filter(|path| path.is_file());
    match at_home {
        Some(path) => Ok(Access::Files(vec![path])),
        None if surroundings.in_cluster => Ok(Access::InCluster),
        None => Err(ConnectError::Nowhere),
    }
}

/// A connection to the API server.
#[derive(Clone)]
pub struct Connected {
    /// The client; nothing was sent yet.
    pub client: Client,
    /// The namespace of all pods.
    pub namespace: String,
    /// The API server is on this machine's loopback.
    pub on_this_machine: bool,
}

/// Connects: nothing is sent yet. Must be called inside a tokio runtime.
///
/// # Errors
/// When the access is missing, unusable or unsafe.
pub async fn connect(settings: &Kubernetes, surroundings: &Surroundings) -> Result<Connected, ConnectError> {
    // Another part of the process may have installed it: that is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = match access(settings, surroundings)? {
        Access::Files(paths) => from_files(settings, &paths).await?,
        Access::InCluster => Config::incluster_env().map_err(ConnectError::InCluster)?,
    };
    safe(&config)?;
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(10));
    config.write_timeout = Some(Duration::from_secs(u64::from(settings.request_s)));
    // Longer than any silence that we allow: each call has its own limit, this one ends what was forgotten.
    config.read_timeout = Some(Duration::from_secs(u64::from(settings.watch_silence_s.max(settings.request_s)) + 60));
    config.reset_reader_on_write = true;
    let agent = http::HeaderValue::from_static(concat!("wharfinger/", env!("CARGO_PKG_VERSION")));
    config.headers.push((http::header::USER_AGENT, agent));
    let namespace = if settings.namespace.is_empty() { config.default_namespace.clone() } else { settings.namespace.clone() };
    if !is_dns_label(&namespace, 63) {
        return Err(ConnectError::Namespace(namespace));
    }
    let on_this_machine = is_on_loopback(&config);
    let client = Client::try_from(config).map_err(|error| ConnectError::Client(Box::new(error)))?;
    Ok(Connected { client, namespace, on_this_machine })
}

async fn from_files(settings: &Kubernetes, paths: &[PathBuf]) -> Result<Config, ConnectError> {
    let mut merged: Option<Kubeconfig> = None;
    let shown = paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":");
    let failed = |path: String| move |source| ConnectError::Kubeconfig { path, source };
    for path in paths {
        let next = Kubeconfig::read_from(path).map_err(failed(path.display().to_string()))?;
        merged = Some(match merged {
            Some(first) => first.merge(next).map_err(failed(path.display().to_string()))?,
            None => next,
        });
    }
    let context = Some(settings.context.clone()).filter(|context| !context.is_empty());
    let options = KubeConfigOptions { context, cluster: None, user: None };
    Config::from_custom_kubeconfig(merged.unwrap_or_default(), &options).await.map_err(failed(shown))
}

fn is_on_loopback(config: &Config) -> bool {
    let host = config.cluster_url.host().unwrap_or("").trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn safe(config: &Config) -> Result<(), ConnectError> {
    if config.accept_invalid_certs {
        return Err(ConnectError::Unverified);
    }
    // Without a certificate in it the library would trust the system's authorities instead.
    if config.root_cert.as_ref().is_some_and(Vec::is_empty) {
        return Err(ConnectError::NoAuthority);
    }
    if config.cluster_url.scheme_str() != Some("https") && !is_on_loopback(config) {
        return Err(ConnectError::Plain(config.cluster_url.to_string()));
    }
    config.auth_info.token_file.as_ref().map_or(Ok(()), |path| usable_token(Path::new(path)))
}

/// kube takes the file as it is: a newline at its end would make every request fail.
fn usable_token(path: &Path) -> Result<(), ConnectError> {
    let wrong = |what: &str| ConnectError::Token { path: path.display().to_string(), what: what.to_owned() };
    let token = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    if token.is_empty() {
        return Err(wrong("it is empty"));
    }
    if token.bytes().any(|byte| !byte.is_ascii_graphic()) {
        return Err(wrong("it holds white space or what is no token"));
    }
    Ok(())
}
