//! A record's payload in words: `key=value` for people, JSON for programs. Pure; what tenants wrote is shown escaped, and of a
//! package's digest only what recognises it.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Map, Value};

use super::record::{Event, Header, Kind};
use crate::ids::{hex, shown};

/// The longest piece of free text in a line, characters.
const TEXT_CHARS: usize = 300;

/// A list longer than this is counted in a line, not told.
const LIST_ITEMS: usize = 8;

/// Fields that hold a moment in log time; every other `_us` is a duration.
const MOMENTS: [&str; 5] = ["at_us", "created_us", "started_us", "finished_us", "since_us"];

macro_rules! payload {
    ($event:expr, $($name:ident)*) => {
        match $event { $(Event::$name(payload) => to_value(payload),)* }
    };
}

fn to_value(payload: &impl Serialize) -> Value {
    serde_json::to_value(payload).unwrap_or(Value::Null)
}

/// The payload as JSON: bytes as hex, a package's digest by its first 12 digits.
#[must_use]
pub fn payload(event: &Event) -> Value {
    let value = payload!(event,
        LogRestarted IncarnationStarted IncarnationStopped SettingsInForce ClockStepped WatchLost Listed NodeSeen PodSeen PodGone
        SecretSeen SecretGone WantSeen WantConfirmed WantMissing WantRefused VerdictReached PodEnded AlarmRaised AlarmCleared
        StepIssued StepSettled StepRevoked StepWithheld ApiCalled StepExplained TailAsked TailKept TailUnavailable TailText
        MessageText Frozen Thawed RetryAsked StopAsked Quarantined EnvironmentFetched SourceKept SettingsTold OperatorSaid
        RecordErased SubjectCarried CallRefused SessionSettingsInForce SessionAsked SessionDeleteAsked SessionTouched SessionCallRefused SessionPolicyRepairIssued SessionPolicyWidened
        ClaimSeen ClaimGone ServiceSeen ServiceGone SessionStepIssued SessionFailed SessionRemoved
    );
    readable("", value)
}

/// The payload as `key=value`, without what is not there.
#[must_use]
pub fn line(event: &Event) -> String {
    let payload = payload(event);
    payload.as_object().map_or_else(|| value_in_words(&payload), fields_in_words)
}

/// The kind of a record, by its number when a newer version wrote it.
#[must_use]
pub fn kind_name(header: &Header) -> String {
    Kind::from_number(header.kind).map_or_else(|| format!("kind-{}", header.kind), |kind| kind.name().to_owned())
}

/// A moment of log time in UTC with microseconds.
#[must_use]
pub fn moment(us: i64) -> String {
    jiff::Timestamp::from_microsecond(us).map_or_else(|_| format!("{us} us"), |time| format!("{time:.6}"))
}

/// A document as people read it: bytes as hex, a package's digest by its first 12 digits. `key` is the name it stands under.
#[must_use]
pub fn readable(key: &str, value: Value) -> Value {
    match value {
        Value::Array(items) => match bytes_of(&items) {
            _ if key == "bytes" => Value::from(items.iter().map(|item| format!("{:02x}", item.as_u64().unwrap_or(0))).collect::<String>()),
            Some(bytes) if key == "sha256" => Value::from(hex(&bytes[..6])),
            Some(bytes) => Value::from(hex(&bytes)),
            None => items.into_iter().map(|item| readable(key, item)).collect(),
        },
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| {
                let value = readable(&key, value);
                (key, value)
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Ids, digests and roots are arrays of 16 or 32 bytes; nothing else is a list of numbers that long.
fn bytes_of(items: &[Value]) -> Option<Vec<u8>> {
    if !matches!(items.len(), 16 | 32) {
        return None;
    }
    items.iter().map(|item| item.as_u64().and_then(|byte| u8::try_from(byte).ok())).collect()
}

fn fields_in_words(fields: &Map<String, Value>) -> String {
    let mut out = String::new();
    // Whom it is about comes first.
    let (first, rest): (Vec<_>, Vec<_>) = fields.iter().partition(|(key, _)| *key == "host");
    for (key, value) in first.into_iter().chain(rest) {
        let (key, words) = match (key.strip_suffix("_us"), value.as_i64()) {
            (Some(short), Some(us)) if MOMENTS.contains(&key.as_str()) => (short, if us == 0 { String::new() } else { moment(us) }),
            (Some(short), Some(us)) => (short, duration(us)),
            // A count of bytes is a number.
            _ if key == "bytes" && value.is_string() => (key.as_str(), format!("{}B", value.as_str().map_or(0, str::len) / 2)),
            _ => (key.as_str(), value_in_words(value)),
        };
        if !words.is_empty() {
            let gap = if out.is_empty() { "" } else { " " };
            let _ = write!(out, "{gap}{key}={words}");
        }
    }
    out
}

/// Empty when there is nothing to say.
fn value_in_words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) if !text.is_empty() && text.bytes().all(|b| b == b'0') && text.len() >= 32 => String::new(),
        Value::String(text) => text_in_words(text),
        Value::Array(items) if items.len() > LIST_ITEMS => format!("[{} items]", items.len()),
        Value::Array(items) if items.is_empty() => String::new(),
        Value::Array(items) => format!("[{}]", items.iter().map(value_in_words).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => match one_variant(fields) {
            Some((name, inside)) => match inside.as_object().filter(|inner| one_variant(inner).is_none()) {
                Some(inner) => format!("{name}{{{}}}", fields_in_words(inner)),
                None => format!("{name}({})", value_in_words(inside)),
            },
            None => format!("{{{}}}", fields_in_words(fields)),
        },
    }
}

/// An enum's variant with something inside: one field whose name begins with a capital.
fn one_variant(fields: &Map<String, Value>) -> Option<(&String, &Value)> {
    let only = fields.iter().next().filter(|_| fields.len() == 1)?;
    only.0.starts_with(|c: char| c.is_ascii_uppercase()).then_some(only)
}

fn text_in_words(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:@+".contains(&b));
    let shown = shown(text, TEXT_CHARS);
    if plain { shown } else { format!("\"{}\"", shown.replace('"', "\\\"")) }
}

fn duration(us: i64) -> String {
    let trimmed = |text: String| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    match us.unsigned_abs() {
        0..1_000 => format!("{us}us"),
        1_000..1_000_000 => format!("{}ms", trimmed(format!("{:.3}", us as f64 / 1_000.0))),
        _ => format!("{}s", trimmed(format!("{:.6}", us as f64 / 1_000_000.0))),
    }
}
