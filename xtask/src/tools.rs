//! Programs that are run, and where those come from that the machine may not have. What is fetched goes into a cache folder
//! outside the checkout.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{root, say};

/// The version of cargo-deny that deny.toml is written for.
const DENY_VERSION: &str = "0.20.2";

/// What schemathesis is made of, by exact versions.
const SCHEMATHESIS: &str = "hack/schemathesis/requirements.txt";

/// Programs that tests run, and the Debian package that has each.
const DEBIAN: &[(&str, &str)] =
    &[("busybox", "busybox"), ("dash", "dash"), ("bash", "bash"), ("node", "nodejs"), ("python3", "python3-venv")];

/// Runs a program in the checkout's root.
///
/// # Errors
/// When it cannot be started or ends with a failure.
pub(crate) fn run(program: impl AsRef<Path>, arguments: &[&str]) -> Result<(), String> {
    let program = program.as_ref();
    let shown = format!("{} {}", program.display(), arguments.join(" "));
    let status = command(program).args(arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(e) => Err(format!("{shown}: {e}")),
    }
}

/// A program in the checkout's root, with the environment that this was called from: what cargo told this package about itself
/// would make crates be built a second time that look at it.
#[expect(clippy::disallowed_methods, reason = "no part of the program")]
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root()).stdin(Stdio::null());
    let told = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"].iter().any(|begin| name.starts_with(begin));
    for (name, _) in std::env::vars().filter(|(name, _)| told(name)) {
        command.env_remove(name);
    }
    command
}

/// The cargo that runs this.
pub(crate) fn cargo() -> PathBuf {
    variable("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// A variable of the environment that is set and not empty.
#[expect(clippy::disallowed_methods, reason = "no part of the program")]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Where what is fetched is kept.
///
/// # Errors
/// When neither `XDG_CACHE_HOME` nor `HOME` says where.
pub(crate) fn cache() -> Result<PathBuf, String> {
    let base = variable("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")));
    Ok(base.ok_or("neither XDG_CACHE_HOME nor HOME says where fetched tools may be kept")?.join("wharfinger"))
}

/// cargo-deny in its version, installed when it is not there.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn cargo_deny() -> Result<PathBuf, String> {
    let folder = cache()?.join(format!("cargo-deny-{DENY_VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        say::line(&format!("cargo-deny {DENY_VERSION} is built into {} (some minutes, once)", folder.display()));
        let version = format!("={DENY_VERSION}");
        let root = folder.display().to_string();
        run(cargo(), &["install", "--quiet", "--locked", "cargo-deny", "--version", &version, "--root", &root])?;
    }
    Ok(program)
}

/// Sees that the programs are there that tests run.
///
/// # Errors
/// When one is missing and cannot be installed.
pub(crate) fn debian_packages() -> Result<(), String> {
    let missing: Vec<&str> = DEBIAN.iter().filter(|(program, _)| !is_there(program)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    say::line(&format!("Debian packages are installed: {names}"));
    let advice = |e: String| format!("{e}; install {names} yourself");
    // A stale list of packages is tried first: it is often enough, and needs no network.
    let arguments: Vec<&str> = ["install", "-y", "--no-install-recommends"].into_iter().chain(missing).collect();
    run("apt-get", &arguments).or_else(|_| run("apt-get", &["update"]).and_then(|()| run("apt-get", &arguments))).map_err(advice)
}

fn is_there(program: &str) -> bool {
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The folder with a real API server for the tests: the one that `KUBEBUILDER_ASSETS` names, else built from source.
///
/// # Errors
/// When they cannot be built.
pub(crate) fn kube_assets() -> Result<PathBuf, String> {
    if let Some(named) = variable("KUBEBUILDER_ASSETS") {
        return Ok(PathBuf::from(named));
    }
    let folder = cache()?.join("kube-assets");
    say::line(&format!("etcd and kube-apiserver are built into {} unless they are there (some minutes, once)", folder.display()));
    let script = root().join("hack/kube-assets/build.sh");
    run(&script, &[&folder.display().to_string()])?;
    Ok(folder)
}

/// schemathesis in its version, which generates requests from the OpenAPI document: installed when it is not there, into a virtual
/// environment that nothing else sees.
///
/// # Errors
/// When it cannot be installed.
pub(crate) fn schemathesis() -> Result<PathBuf, String> {
    let folder = cache()?.join("schemathesis");
    let (program, made_of) = (folder.join("bin/st"), folder.join("made-of"));
    let wanted = std::fs::read_to_string(root().join(SCHEMATHESIS)).map_err(|e| format!("{SCHEMATHESIS}: {e}"))?;
    if program.is_file() && std::fs::read_to_string(&made_of).is_ok_and(|there| there == wanted) {
        return Ok(program);
    }
    say::line(&format!("schemathesis is installed into {} (half a minute, once)", folder.display()));
    let shown = folder.display().to_string();
    run("python3", &["-m", "venv", "--clear", &shown]).map_err(|e| format!("{e}; install python3 with its module venv"))?;
    run(folder.join("bin/pip"), &["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement", SCHEMATHESIS])?;
    // Written last: an installation that was cut short is begun again.
    std::fs::write(&made_of, wanted).map_err(|e| format!("{}: {e}", made_of.display()))?;
    Ok(program)
}

/// The output of a program that is read line by line: stdout and stderr.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn piped(program: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> io::Result<std::process::Child> {
    let mut command = command(program);
    command.args(arguments).envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// Runs a program to its end: whether it succeeded, and what it printed, stdout before stderr.
///
/// # Errors
/// When it cannot be started.
pub(crate) fn output(program: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> Result<(bool, String), String> {
    let ended = command(program).args(arguments).envs(variables.iter().copied()).output();
    let output = ended.map_err(|e| format!("{} {}: {e}", program.display(), arguments.join(" ")))?;
    let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Ok((output.status.success(), told))
}
