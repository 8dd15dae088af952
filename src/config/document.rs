//! The settings as a TOML file: with every comment for `config default`, bare for `config print`. Pure.

use std::fmt::Write as _;

use serde_json::Value;

use super::Settings;
use super::keys::{KEYS, Key};
use super::load::{tree, value_of};

/// The commented file of the given settings: every key with its meaning, its unit and what is allowed.
#[must_use]
pub fn commented(settings: &Settings) -> String {
    let head = "# wharf.toml: every setting with its default. A setting is overridden by the variable WHARF_SECTION_KEY, and that\n\
                # by the flag --set section.key=value.\n\n";
    head.to_owned() + &document(settings, true)
}

/// The same without comments.
#[must_use]
pub fn plain(settings: &Settings) -> String {
    document(settings, false)
}

fn document(settings: &Settings, comments: bool) -> String {
    let tree = tree(settings);
    let (mut out, mut section) = (String::new(), "");
    for key in KEYS {
        if key.section() != section {
            section = key.section();
            let _ = write!(out, "\n[{section}]\n");
        }
        if comments {
            let _ = writeln!(out, "# {}\n#   {}", key.doc, key.rule.words());
        }
        let _ = writeln!(out, "{} = {}", key.short(), value_of(&tree, key).map(literal).unwrap_or_default());
    }
    out
}

/// A setting's value as TOML writes it.
#[must_use]
pub fn written(settings: &Value, key: &Key) -> String {
    value_of(settings, key).map(literal).unwrap_or_default()
}

/// JSON's text, numbers and lists are TOML's but for one character that TOML wants escaped.
fn literal(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            value.to_string().replace('\u{7f}', "\\u007f")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;
    use crate::config::load::Origins;

    fn read(text: String) -> Settings {
        Origins { file: Some(("wharf.toml".to_owned(), text)), ..Origins::default() }.settings().expect("a printed file can be read")
    }

    #[test]
    fn the_printed_defaults_are_the_defaults_and_name_every_key() {
        let text = commented(&Settings::default());
        assert_eq!(read(text.clone()), Settings::default());
        let table: toml::Table = toml::from_str(&text).expect("TOML");
        for key in KEYS {
            let within = if key.section().is_empty() { Some(&table) } else { table.get(key.section()).and_then(toml::Value::as_table) };
            assert!(within.is_some_and(|table| table.contains_key(key.short())), "{}", key.name);
        }
    }

    #[test]
    fn what_is_printed_is_what_was_set() {
        let mut settings = Settings::of_profile(Profile::Pinecall);
        settings.pod.command = vec!["sh".to_owned(), "-c".to_owned(), "echo \"$X\\n\" 'ü\u{7f}\t'".to_owned()];
        settings.gateway.token_file = "C:\\no\\where".to_owned();
        assert_eq!(read(plain(&settings)), settings);
    }
}
