//! A record as a CloudEvent, version 1.0, in its JSON format (CloudEvents specification, feed.md). Pure.

use serde_json::{Map, Value, json};

use crate::events::record::Kind;
use crate::events::stored::{Body, Damage, StoredRecord};
use crate::events::tree::Hash;
use crate::events::words;
use crate::ids::{LogId, RecordId, Seq, hex};

/// The longest event, bytes: what every transport of CloudEvents has to take (CloudEvents specification, "Size Limits").
pub const EVENT_MAX: usize = 64 << 10;

/// What a reader gets of each record, beside the record.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// The world's name: it is part of the source.
    pub world: &'a str,
    /// Whether what tenants wrote is given.
    pub tails: bool,
}

/// Why an event has no data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Withheld {
    /// It is a tenant's free text, which this reader does not get.
    Tails,
    /// It was erased.
    Erased,
    /// A newer build wrote it.
    Newer,
    /// It does not fit an event.
    Size,
}

impl Withheld {
    fn name(self) -> &'static str {
        match self {
            Self::Tails => "tails",
            Self::Erased => "erased",
            Self::Newer => "newer",
            Self::Size => "size",
        }
    }
}

/// The event on one line, without the line's end; of [`EVENT_MAX`] bytes at most.
#[must_use]
pub fn line(record: &StoredRecord, leaf: Option<Hash>, correlation: Option<&str>, around: Around<'_>) -> String {
    let mut event = attributes(record, leaf, correlation, around.world);
    match data(&record.body, around.tails) {
        Ok(data) => drop(event.insert("data".to_owned(), data)),
        Err(why) => withhold(&mut event, why),
    }
    let line = Value::Object(event.clone()).to_string();
    if line.len() <= EVENT_MAX {
        return line;
    }
    event.remove("data");
    withhold(&mut event, Withheld::Size);
    Value::Object(event).to_string()
}

/// What stands for a record, or a block of them, that cannot be read.
#[must_use]
pub fn damaged(log: LogId, damage: &Damage, around: Around<'_>) -> String {
    let event = json!({
        "specversion": "1.0",
        "id": RecordId { log, seq: damage.seq }.to_string(),
        "source": format!("urn:wharfinger:{}:{log}", around.world),
        "type": "dev.wharfinger.damaged.v1",
        "sequence": format!("{:020}", damage.seq.0),
        "datacontenttype": "application/json",
        "data": {"whole_block": damage.whole_block, "why": damage.fault.to_string()},
    });
    event.to_string()
}

/// A kind's name as it stands in an event's type: `PodSeen` is `pod.seen`.
#[must_use]
pub fn dotted(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 3);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !out.is_empty() {
            out.push('.');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

fn attributes(record: &StoredRecord, leaf: Option<Hash>, correlation: Option<&str>, world: &str) -> Map<String, Value> {
    let StoredRecord { log, header, .. } = record;
    let kind = Kind::from_number(header.kind).map_or_else(|| format!("kind.{}", header.kind), |kind| dotted(kind.name()));
    let typed = format!("dev.wharfinger.{kind}.v{}", header.kind_version);
    let mut event = Map::new();
    let mut put = |name: &str, value: Value| drop(event.insert(name.to_owned(), value));
    put("specversion", json!("1.0"));
    put("id", json!(record.id().to_string()));
    put("source", json!(format!("urn:wharfinger:{world}:{log}")));
    put("dataschema", json!(format!("urn:wharfinger:schema:{kind}:v{}", header.kind_version)));
    put("type", Value::from(typed));
    put("subject", json!(header.subject.to_string()));
    put("time", json!(words::moment(header.time_us)));
    put("sequence", json!(format!("{:020}", header.seq.0)));
    put("subjectseq", json!(format!("{:020}", header.subject_seq)));
    put("rules", json!(header.rules));
    put("datacontenttype", json!("application/json"));
    if header.cause != Seq::NONE {
        put("causationid", json!(RecordId { log: *log, seq: header.cause }.to_string()));
    }
    if let Some(correlation) = correlation {
        put("correlationid", json!(correlation));
    }
    if let Some(leaf) = leaf {
        put("leafhash", json!(hex(&leaf)));
    }
    event
}

fn withhold(event: &mut Map<String, Value>, why: Withheld) {
    event.remove("datacontenttype");
    event.remove("dataschema");
    event.insert("withheld".to_owned(), json!(why.name()));
}

fn data(body: &Body, tails: bool) -> Result<Value, Withheld> {
    match body {
        Body::Known(event) if event.kind().is_text() && !tails => Err(Withheld::Tails),
        Body::Known(event) => Ok(words::payload(event)),
        Body::Opaque(_) | Body::NeedsVersion(_) => Err(Withheld::Newer),
        Body::Withheld => Err(Withheld::Erased),
    }
}
