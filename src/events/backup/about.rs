//! What a backup says of itself before its blocks: which log, by which build, under which settings, which part.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::events::carried::DaemonParts;
use crate::events::log::{LogReader, ReadError};
use crate::events::record::Event;
use crate::events::stored::Body;
use crate::events::tree::{Hash, TreeHead};
use crate::ids::{LogId, Seq, Subject, hex, unhex};

/// The document in a backup's head, and the answer of `/v1/log`. A field that a reader does not know is for another version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The build that made it.
    pub made_by: String,
    /// When it was made, microseconds since 1970 UTC by the wall clock.
    pub made_us: i64,
    /// The build that last wrote the log, when the log says so.
    pub build: Option<String>,
    /// The settings in force, as the log last told them. No setting is a secret.
    pub settings: BTreeMap<String, String>,
    /// The log that was being written, in hex.
    pub log: String,
    /// Its last acknowledged record.
    pub head: u64,
    /// How many leaves its tree has.
    pub size: u64,
    /// The tree's root, in hex.
    pub root: String,
    /// The first record asked for.
    pub from: u64,
    /// The last record asked for.
    pub to: u64,
    /// The subject asked for; `None` for all.
    pub subject: Option<String>,
    /// The first record that is left, when those before it aged out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<u64>,
    /// A segment of an archive: all of the log from `from` to `to`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub segment: bool,
}

impl About {
    /// Of all that a reader shows.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn of(reader: &dyn LogReader, made_us: i64) -> Result<Self, ReadError> {
        let acknowledged = reader.acknowledged();
        let mut told = Told::default();
        for subject in reader.subjects().into_iter().filter(|subject| matches!(subject, Subject::Daemon(_))) {
            reader.subject(&subject, Seq(1), &mut |item| {
                if let Ok(record) = item
                    && let Body::Known(event) = record.body
                {
                    told.take(record.header.seq, event);
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok(Self {
            made_by: env!("CARGO_PKG_VERSION").to_owned(),
            made_us,
            build: told.build.1,
            settings: told.settings.1,
            log: acknowledged.log.to_string(),
            head: acknowledged.head.0,
            size: acknowledged.tree.size,
            root: hex(&acknowledged.tree.root),
            from: 1,
            to: acknowledged.head.0,
            subject: None,
            kept: reader.removed().map(|removed| removed.kept.0),
            segment: false,
        })
    }

    /// Whether all of the log up to `to` is asked for.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.from <= 1 && self.subject.is_none()
    }

    /// Whether every block can be followed from the first one on.
    #[must_use]
    pub(super) fn is_followed(&self) -> bool {
        self.is_whole() || self.segment
    }

    /// The log's id and its tree; `None` when they do not read.
    #[must_use]
    pub fn tree(&self) -> Option<(LogId, TreeHead)> {
        let root = Hash::try_from(unhex(&self.root)?).ok()?;
        Some((LogId::parse(&self.log)?, TreeHead { size: self.size, root }))
    }
}

/// What the daemon last said of itself, each with the record that says it.
#[derive(Default)]
struct Told {
    build: (Seq, Option<String>),
    settings: (Seq, BTreeMap<String, String>),
    parts: DaemonParts,
}

impl Told {
    fn take(&mut self, seq: Seq, event: Event) {
        if let Event::SubjectCarried(part) = &event {
            if let Some(daemon) = self.parts.take(part).filter(|_| seq > self.build.0) {
                self.build = (seq, Some(daemon.started.version));
            }
        } else if let Event::IncarnationStarted(started) = event {
            if seq > self.build.0 {
                self.build = (seq, Some(started.version));
            }
        } else if let Event::SettingsTold(told) = event
            && seq > self.settings.0
        {
            self.settings = (seq, told.all.into_iter().map(|setting| (setting.key, setting.value)).collect());
        }
    }
}
