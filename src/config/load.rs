//! From file, environment and flags to settings, in that order; every error names the key, the value and what is allowed.
//!
//! The only reader of the process's environment, together with its parent module.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::keys::{KEYS, Key, find};
use super::rule::Rule;
use super::{Profile, Settings};
use crate::ids::shown;

/// What a variable of ours begins with.
const PREFIX: &str = "WHARF_";

/// The seed's variable for the sweep of sessions, minutes: read too, and overridden by ours.
const REAPER_MINUTES: &str = "SANDBOX_REAPER_INTERVAL_MINUTES";

/// Settings that cannot be used, one line a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadSettings(pub Vec<String>);

impl std::error::Error for BadSettings {}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// Where settings come from.
#[derive(Debug, Clone, Default)]
pub struct Origins {
    /// The file's name and text.
    pub file: Option<(String, String)>,
    /// Environment variables; those that do not begin with `WHARF_` are passed over.
    pub environment: Vec<(String, String)>,
    /// `--set` flags: `section.key=value`.
    pub sets: Vec<String>,
}

impl Origins {
    /// The file, the process's own environment, and flags.
    ///
    /// # Errors
    /// When the file cannot be read.
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn of_process(file: Option<&Path>, sets: &[String]) -> Result<Self, BadSettings> {
        let file = match file {
            Some(path) => {
                let name = path.display().to_string();
                let text = std::fs::read_to_string(path).map_err(|e| BadSettings(vec![format!("{name}: {e}")]))?;
                Some((name, text))
            }
            None => None,
        };
        Ok(Self { file, environment: ours(std::env::vars_os())?, sets: sets.to_vec() })
    }

    /// The settings: the profile's defaults, then file, environment and flags over them.
    ///
    /// # Errors
    /// Every key that is not known and every value that is not allowed.
    pub fn settings(&self) -> Result<Settings, BadSettings> {
        let mut found = Found::default();
        if let Some((name, text)) = &self.file {
            found.file(name, text);
        }
        for (variable, text) in &self.environment {
            found.seeds_variable(variable, text);
        }
        for (variable, text) in &self.environment {
            found.variable(variable, text);
        }
        for set in &self.sets {
            found.flag(set);
        }
        found.into_settings()
    }
}

/// The variables that are for us; what else is in the environment need not even be text.
fn ours(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<Vec<(String, String)>, BadSettings> {
    let names = variables.map(|(name, value)| (name.to_string_lossy().into_owned(), value));
    let texts =
        names.filter(|(name, _)| name.starts_with(PREFIX) || name == REAPER_MINUTES).map(|(name, value)| match value.into_string() {
            Ok(value) => Ok((name, value)),
            Err(_) => Err(BadSettings(vec![format!("{}: the value is not UTF-8", shown(&name, 80))])),
        });
    texts.collect()
}

#[derive(Default)]
struct Found {
    /// By key; a later origin replaces an earlier one.
    values: Vec<(&'static Key, Value)>,
    faults: Vec<String>,
}

impl Found {
    fn file(&mut self, name: &str, text: &str) {
        match toml::from_str::<Map<String, Value>>(text) {
            Ok(table) => self.table(name, "", table),
            Err(e) => {
                let line = e.span().map_or(0, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
                self.faults.push(format!("{name}, line {line}: {}", shown(e.message(), 200)));
            }
        }
    }

    fn table(&mut self, name: &str, section: &str, table: Map<String, Value>) {
        for (short, value) in table {
            let full = if section.is_empty() { short } else { format!("{section}.{short}") };
            let is_section = section.is_empty() && KEYS.iter().any(|key| key.section() == full);
            if let (true, Value::Object(inner)) = (is_section, &value) {
                self.table(name, &full, inner.clone());
                continue;
            }
            match find(&full) {
                Some(key) => self.take(name, key, value),
                None => self.faults.push(unknown(name, &full)),
            }
        }
    }

    fn seeds_variable(&mut self, variable: &str, text: &str) {
        if let Some(key) = find("sessions.reaper_interval_s").filter(|_| variable == REAPER_MINUTES) {
            let seconds = text.parse::<u64>().ok().and_then(|minutes| minutes.checked_mul(60));
            self.take(variable, key, seconds.map_or_else(|| Value::from(text), Value::from));
        }
    }

    fn variable(&mut self, variable: &str, text: &str) {
        if !variable.starts_with(PREFIX) {
            return;
        }
        match KEYS.iter().find(|key| key.variable() == variable) {
            Some(key) => self.text(variable, key, text),
            None if is_service_link(variable) => {}
            None => self.faults.push(format!(
                "{}: there is no such setting; a variable is WHARF_SECTION_KEY, such as WHARF_GATEWAY_URL",
                shown(variable, 80)
            )),
        }
    }

    fn flag(&mut self, set: &str) {
        let origin = "--set";
        match set.split_once('=') {
            Some((name, text)) => match find(name.trim()) {
                Some(key) => self.text(origin, key, text.trim()),
                None => self.faults.push(unknown(origin, name.trim())),
            },
            None => self.faults.push(format!("{origin} {}: section.key=value is needed", shown(set, 80))),
        }
    }

    /// A value as text has it: lists by commas, or as TOML writes them.
    fn text(&mut self, origin: &str, key: &'static Key, text: &str) {
        let value = if let Rule::Number(..) = key.rule {
            text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from)
        } else if key.rule.is_list() {
            list(text, key.rule == Rule::Ports)
        } else {
            Value::from(text)
        };
        self.take(origin, key, value);
    }

    fn take(&mut self, origin: &str, key: &'static Key, value: Value) {
        if key.rule.allows(&value) {
            self.values.retain(|(known, _)| known.name != key.name);
            self.values.push((key, value));
        } else {
            let value = shown(&value.to_string(), 80);
            self.faults.push(format!("{origin}: {} = {value}: {} is needed", key.name, key.rule.words()));
        }
    }

    fn into_settings(self) -> Result<Settings, BadSettings> {
        if !self.faults.is_empty() {
            return Err(BadSettings(self.faults));
        }
        let profile = self.values.iter().find(|(key, _)| key.name == "profile").map(|(_, value)| value.clone());
        let profile = profile.and_then(|value| serde_json::from_value(value).ok()).unwrap_or(Profile::Wharf);
        let mut tree = tree(&Settings::of_profile(profile));
        for (key, value) in self.values {
            set(&mut tree, key, value);
        }
        serde_json::from_value(tree).map_err(|e| BadSettings(vec![e.to_string()]))
    }
}

/// The settings as a tree by section and key.
#[must_use]
pub fn tree(settings: &Settings) -> Value {
    serde_json::to_value(settings).expect("settings are text, numbers and lists under fixed names")
}

/// A setting's value in such a tree.
#[must_use]
pub fn value_of<'a>(tree: &'a Value, key: &Key) -> Option<&'a Value> {
    if key.section().is_empty() { tree.get(key.short()) } else { tree.get(key.section())?.get(key.short()) }
}

fn set(tree: &mut Value, key: &Key, value: Value) {
    let at = if key.section().is_empty() { Some(tree) } else { tree.get_mut(key.section()) };
    if let Some(place) = at.and_then(|at| at.get_mut(key.short())) {
        *place = value;
    }
}

fn list(text: &str, numbers: bool) -> Value {
    if text.starts_with('[') {
        let parsed = toml::from_str::<Value>(&format!("list = {text}")).ok();
        return parsed.and_then(|mut table| table.get_mut("list").map(Value::take)).unwrap_or_else(|| Value::from(text));
    }
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    if numbers {
        items.map(|item| item.parse::<u64>().map_or_else(|_| Value::from(item), Value::from)).collect()
    } else {
        items.map(Value::from).collect()
    }
}

fn unknown(origin: &str, full: &str) -> String {
    let section = full.split_once('.').map_or("", |(section, _)| section);
    let known: Vec<&str> = KEYS.iter().filter(|key| key.section() == section).map(Key::short).collect();
    let (known, within) = if known.is_empty() {
        let mut sections: Vec<&str> = KEYS.iter().map(Key::section).filter(|section| !section.is_empty()).collect();
        sections.dedup();
        (sections, "the sections are".to_owned())
    } else if section.is_empty() {
        (known, "at the top there are".to_owned())
    } else {
        (known, format!("in [{section}] there are"))
    };
    format!("{origin}: {}: there is no such setting; {within} {}", shown(full, 80), known.join(", "))
}

/// A variable that Kubernetes puts into every pod for a Service whose name begins with `wharf`; no setting of ours.
fn is_service_link(variable: &str) -> bool {
    let port = |rest: &str| {
        let end = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        end.len() < rest.len() && ["_TCP", "_UDP", "_SCTP"].iter().any(|protocol| end.starts_with(protocol))
    };
    variable.ends_with("_SERVICE_HOST")
        || variable.ends_with("_PORT")
        || variable.contains("_SERVICE_PORT")
        || variable.split_once("_PORT_").is_some_and(|(_, rest)| port(rest))
}

/// What the process's surroundings say of a cluster: the variables `KUBECONFIG`, `HOME` and `KUBERNETES_SERVICE_HOST`.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub fn cluster_variables() -> (Option<String>, Option<PathBuf>, bool) {
    let kubeconfig = std::env::var_os("KUBECONFIG").map(|named| named.to_string_lossy().into_owned());
    let home = std::env::var_os("HOME").map(PathBuf::from);
    (kubeconfig, home, std::env::var_os("KUBERNETES_SERVICE_HOST").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(file: &str, environment: &[(&str, &str)], sets: &[&str]) -> Result<Settings, BadSettings> {
        Origins {
            file: Some(("wharf.toml".to_owned(), file.to_owned())),
            environment: environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            sets: sets.iter().map(|set| (*set).to_owned()).collect(),
        }
        .settings()
    }

    fn faults(file: &str, environment: &[(&str, &str)], sets: &[&str]) -> String {
        settings(file, environment, sets).expect_err("these settings are bad").0.join("\n")
    }

    #[test]
    fn variables_need_be_text_only_when_they_are_for_us() {
        use std::os::unix::ffi::OsStringExt as _;
        let odd = || OsString::from_vec(vec![b'a', 0xff]);
        let mine = |name: &str, value: OsString| ours([("PATH".into(), odd()), (odd(), odd()), (name.into(), value)].into_iter());
        assert_eq!(mine("WHARF_WORLD", "w".into()).expect("fine"), [("WHARF_WORLD".to_owned(), "w".to_owned())]);
        assert_eq!(mine("WHARF_WORLD", odd()).expect_err("no text").0, ["WHARF_WORLD: the value is not UTF-8"]);
    }

    #[test]
    fn a_flag_goes_over_a_variable_goes_over_the_file() {
        let file = "world = \"one\"\n[kubernetes]\ncalls_per_s = 1\nburst = 1\nqueue = 101\n";
        let found = settings(
            file,
            &[("WHARF_KUBERNETES_CALLS_PER_S", "2"), ("WHARF_KUBERNETES_BURST", "2"), ("PATH", "/bin")],
            &["kubernetes.burst=3", "pod.command=node, server.js", "network.gateway_ports=[443, 8443]"],
        )
        .expect("good settings");
        assert_eq!((found.world.as_str(), found.kubernetes.queue), ("one", 101));
        assert_eq!((found.kubernetes.calls_per_s, found.kubernetes.burst), (2, 3));
        assert_eq!(found.pod.command, ["node", "server.js"]);
        assert_eq!(found.network.gateway_ports, [443, 8443]);
    }

    #[test]
    fn the_seeds_variable_is_read_and_ours_goes_over_it() {
        let seeds = (REAPER_MINUTES, "7");
        assert_eq!(settings("", &[seeds], &[]).expect("good settings").sessions.reaper_interval_s, 420);
        let ours = ("WHARF_SESSIONS_REAPER_INTERVAL_S", "5");
        assert_eq!(settings("", &[ours, seeds], &[]).expect("good settings").sessions.reaper_interval_s, 5);
        assert!(settings("", &[(REAPER_MINUTES, "soon")], &[]).is_err());
    }

    #[test]
    fn an_error_names_key_value_and_what_is_allowed() {
        let text = faults(
            "[gateway]\nbeat = 1\nbeat_ms = 5\nurl = \"http://gw.example.org\"\n[plan]\ncrash_limit = \"five\"\n[plans]\nx = 1\n",
            &[("WHARF_GATEWAY_BEATMS", "1"), ("WHARF_PLAN_DRAIN_S", "-3")],
            &["act=some", "oops", "pod.labels=a"],
        );
        expect_test::expect![[r#"
            wharf.toml: gateway.beat: there is no such setting; in [gateway] there are url, runner, token_file, ca_file, beat_ms, request_s
            wharf.toml: gateway.beat_ms = 5: a whole number from 100 to 60000 is needed
            wharf.toml: gateway.url = "http://gw.example.org": https and a host, or http to a loopback address or to a Service NAME.NAMESPACE.svc is needed
            wharf.toml: plan.crash_limit = "five": a whole number from 0 to 1000 is needed
            wharf.toml: plans: there is no such setting; at the top there are world, instance, data_dir, act, profile
            WHARF_GATEWAY_BEATMS: there is no such setting; a variable is WHARF_SECTION_KEY, such as WHARF_GATEWAY_URL
            WHARF_PLAN_DRAIN_S: plan.drain_s = "-3": a whole number from 0 to 3600 is needed
            --set: act = "some": "all" or "none" is needed
            --set oops: section.key=value is needed
            --set: pod.labels = ["a"]: a list of KEY=VALUE, each a Kubernetes label's is needed"#]].assert_eq(&text);
    }

    #[test]
    fn a_file_that_is_no_toml_is_named_with_its_line() {
        let text = faults("world = \"one\"\n[gateway\n", &[], &[]);
        assert!(text.starts_with("wharf.toml, line 2: "), "{text}");
    }

    #[test]
    fn what_kubernetes_puts_into_a_pod_for_a_service_is_no_setting() {
        let links = [
            "WHARF_SERVICE_HOST",
            "WHARF_SERVICE_PORT",
            "WHARF_SERVICE_PORT_SOURCES",
            "WHARF_PORT",
            "WHARF_PORT_7071_TCP",
            "WHARF_PORT_7071_TCP_ADDR",
            "WHARF_SOURCES_PORT_7071_TCP_PROTO",
        ];
        let environment: Vec<(&str, &str)> = links.iter().map(|name| (*name, "tcp://10.0.0.1:7071")).collect();
        assert!(settings("", &environment, &[]).is_ok());
        assert!(settings("", &[("WHARF_PORTAL", "x")], &[]).is_err());
    }

    #[test]
    fn the_profile_gives_other_defaults_which_are_still_overridden() {
        let found = settings("profile = \"pinecall\"\n[pod]\nlabel_domain = \"example.org\"\n", &[], &[]).expect("good settings");
        assert_eq!(found.pod.environment_dir, "/run/pinecall");
        assert_eq!(found.pod.label_domain, "example.org");
    }
}
