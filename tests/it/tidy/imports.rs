//! Who may name whom: our layers, and the crates of the table in DESIGN.md.

use std::collections::BTreeMap;

use super::files::{is_test, reached};
use super::layers::{EXCEPTIONS, PURE, layer};
use super::source::{code, paths, without_tests};
use super::{none, read, root};

/// A crate and the beginnings of the paths that may name it.
const CRATES: &[(&str, &[&str])] = &[
    ("sled", &["src/events/sled_log.rs"]),
    ("bincode", &["src/events/codec.rs"]),
    ("lz4_flex", &["src/events/packed.rs"]),
    ("kube", &["src/kube/", "src/sim/", "src/run", "src/trial/line.rs"]),
    ("k8s_openapi", &["src/kube/", "src/sim/", "src/run"]),
    ("ractor", &["src/actors/", "src/run"]),
    ("reqwest", &["src/gateway/client.rs", "src/cli/", "src/sim/", "src/run"]),
    ("axum", &["src/http/", "src/sim/"]),
    ("schemars", &["src/http/"]),
    ("clap", &["src/cli/"]),
    ("toml", &["src/config/"]),
    ("anyhow", &["src/main.rs", "src/run", "src/cli/"]),
    ("prometheus_client", &["src/telemetry.rs"]),
    ("tracing_subscriber", &["src/telemetry.rs"]),
    ("getrandom", &["src/clock.rs"]),
    ("ring", &["src/proof/key.rs"]),
    ("jiff", &["src/cli/", "src/events/words.rs", "src/kube/", "src/app/", "src/sim/", "src/run/"]),
    ("rustix", &["src/cli/probe.rs"]),
];

/// The code of every file that is compiled into the program, without tests.
fn sources() -> BTreeMap<String, (Vec<String>, String)> {
    let files = reached(&["src/lib.rs", "src/main.rs"]).into_iter().filter(|(file, _)| !is_test(file));
    files
        .map(|(file, module)| {
            let code = code(&read(&root().join(&file)));
            let code = without_tests(&code).to_owned();
            (file, (module, code))
        })
        .collect()
}

/// The path from the crate's root that a path in a module stands for; `None` when it is not one of ours.
fn ours(module: &[String], path: &[String]) -> Option<Vec<String>> {
    match path.first().map(String::as_str) {
        Some("crate" | "wharfinger") => Some(path[1..].to_vec()),
        Some("self") => Some([module, &path[1..]].concat()),
        Some("super") => {
            let up = path.iter().take_while(|segment| *segment == "super").count();
            let base = module.len().checked_sub(up)?;
            Some([&module[..base], &path[up..]].concat())
        }
        _ => None,
    }
}

#[test]
fn a_file_imports_from_its_own_layer_or_a_lower_one() {
    let sources = sources();
    let files: BTreeMap<&[String], &str> = sources.iter().map(|(file, (module, _))| (module.as_slice(), file.as_str())).collect();
    let mut broken = Vec::new();
    for (file, (module, code)) in &sources {
        let Some(own) = layer(file) else {
            broken.push(format!("{file}: the table of layers does not know it"));
            continue;
        };
        for path in paths(code).iter().filter_map(|path| ours(module, path)) {
            let target = (1..=path.len()).rev().find_map(|length| files.get(&path[..length]));
            let Some((target, other)) = target.and_then(|target| Some((*target, layer(target)?))) else { continue };
            let allowed = EXCEPTIONS.iter().any(|(from, to, _)| from == file && *to == target);
            if other > own && !allowed {
                broken.push(format!("{file} (layer {own}) names {} of {target} (layer {other})", path.join("::")));
            }
        }
    }
    broken.dedup();
    none("a file imports only from its own layer or a lower one", &broken);
}

#[test]
fn a_crate_is_named_where_the_table_allows_it() {
    let mut broken = Vec::new();
    for (file, (_, code)) in sources() {
        for path in paths(&code) {
            let rooted = path.first().is_some_and(String::is_empty);
            let name = if rooted { &path[1] } else { &path[0] };
            if name == "kube" && !rooted {
                broken.push(format!("{file}: {}: write ::kube for the crate and crate::kube for ours", path.join("::")));
            }
            let rule = CRATES.iter().find(|(krate, _)| krate == name);
            if rule.is_some_and(|(_, allowed)| !allowed.iter().any(|begin| file.starts_with(begin))) {
                broken.push(format!("{file}: {}", path.join("::")));
            }
        }
    }
    broken.dedup();
    none("a crate is named only where the table allows it", &broken);
}

#[test]
fn pure_code_neither_waits_nor_hashes_nor_knows_the_runtime() {
    let mut broken = Vec::new();
    for (file, (_, code)) in sources() {
        let Some(own) = layer(&file).filter(|layer| *layer <= PURE) else { continue };
        for (number, line) in (1..).zip(code.lines()) {
            let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            for word in words {
                let forbidden = match word {
                    "HashMap" | "HashSet" => own == PURE,
                    "tokio" | "async" | "await" => file != "src/clock.rs",
                    "Serialize" | "Deserialize" => file.starts_with("src/app/"),
                    _ => false,
                };
                if forbidden {
                    broken.push(format!("{file}:{number}: {word}"));
                }
            }
        }
    }
    none("pure code has no runtime, no hash order, and its types are not the persisted ones", &broken);
}
