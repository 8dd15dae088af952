//! Label and field selectors. Pure.

use serde_json::Value;

use super::refusal::Refusal;
use super::rules::at;

/// One requirement on the labels.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// What a list or watch selects: all requirements hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Selector {
    labels: Vec<Requirement>,
    fields: Vec<(Vec<String>, bool, String)>,
}

impl Selector {
    /// From the two query parameters.
    ///
    /// # Errors
    /// 400 when either cannot be parsed.
    pub(super) fn parse(labels: Option<&str>, fields: Option<&str>) -> Result<Self, Refusal> {
        let labels = pieces(labels.unwrap_or_default()).iter().map(|piece| requirement(piece)).collect::<Result<_, _>>()?;
        let fields = pieces(fields.unwrap_or_default()).iter().map(|piece| field(piece)).collect::<Result<_, _>>()?;
        Ok(Self { labels, fields })
    }

    /// Whether it selects everything.
    #[must_use]
    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// Whether it selects an object.
    #[must_use]
    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = at(object, &["metadata", "labels"]);
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        self.labels.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|value| values.iter().any(|known| known == value)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|value| !values.iter().any(|known| known == value)),
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        }) && self.fields.iter().all(|(path, equal, wanted)| {
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            (at(object, &path).as_str().unwrap_or_default() == wanted) == *equal
        })
    }
}

/// Splits at commas outside parentheses.
fn pieces(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (mut depth, mut piece) = (0_u32, String::new());
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(std::mem::take(&mut piece));
                continue;
            }
            _ => {}
        }
        piece.push(c);
    }
    out.push(piece);
    out.into_iter().map(|piece| piece.trim().to_owned()).filter(|piece| !piece.is_empty()).collect()
}

fn requirement(piece: &str) -> Result<Requirement, Refusal> {
    let bad = || Refusal::bad_request(&format!("unable to parse requirement: {piece:?}"));
    if let Some((head, values)) = piece.split_once('(') {
        let values = values.strip_suffix(')').ok_or_else(bad)?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => Ok(Requirement::In(key.to_owned(), values)),
            (Some(key), Some("notin"), None) => Ok(Requirement::NotIn(key.to_owned(), values)),
            _ => Err(bad()),
        };
    }
    let pair = |split: (&str, &str)| (split.0.trim().to_owned(), vec![split.1.trim().to_owned()]);
    if let Some(split) = piece.split_once("!=") {
        let (key, values) = pair(split);
        Ok(Requirement::NotIn(key, values))
    } else if let Some(split) = piece.split_once("==").or_else(|| piece.split_once('=')) {
        let (key, values) = pair(split);
        Ok(Requirement::In(key, values))
    } else if let Some(key) = piece.strip_prefix('!') {
        Ok(Requirement::Absent(key.trim().to_owned()))
    } else if piece.contains(char::is_whitespace) {
        Err(bad())
    } else {
        Ok(Requirement::Exists(piece.to_owned()))
    }
}

fn field(piece: &str) -> Result<(Vec<String>, bool, String), Refusal> {
    const KNOWN: [&str; 7] =
        ["metadata.name", "metadata.namespace", "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase", "type"];
    let split = piece.split_once("!=").map(|(path, value)| (path, false, value));
    let split = split.or_else(|| piece.split_once("==").or_else(|| piece.split_once('=')).map(|(path, value)| (path, true, value)));
    let Some((path, equal, value)) = split else {
        return Err(Refusal::bad_request(&format!("invalid selector: {piece:?}; can't understand {piece:?}")));
    };
    if !KNOWN.contains(&path) {
        return Err(Refusal::bad_request(&format!("field label not supported: {path}")));
    }
    Ok((path.split('.').map(str::to_owned).collect(), equal, value.to_owned()))
}
