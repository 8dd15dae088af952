//! The log of a running daemon, or a part of it, into a backup file: block by block, as it is stored.

use std::path::Path;

use super::error::CliError;
use super::output;
use super::remote::Remote;
use super::source::Source;
use crate::events::backup::BackupError;
use crate::events::backup::about::About;
use crate::events::backup::entry::{End, Entries, Next};
use crate::events::backup::select::{PAGE_MAX, Select};
use crate::events::backup::write::NewBackup;
use crate::ids::{Seq, shown};

/// The most bytes of what a daemon says of its log.
const ABOUT_MAX: usize = 1 << 20;

/// Where the next page begins; as the daemon sends it.
const NEXT: &str = "wharf-next";

/// What a backup of that much says of itself; a selection that goes beyond the last record ends there.
pub(super) fn selected(about: About, select: &mut Select) -> About {
    select.to = select.to.min(Seq(about.head));
    About { from: select.from.0, to: select.to.0, subject: select.subject.as_ref().map(ToString::to_string), ..about }
}

/// Writes what is selected of the daemon's log to a file.
///
/// # Errors
/// When the daemon does not give it, or the file cannot be written.
pub(super) async fn download(file: &Path, source: &Source, server: &str, select: &Select) -> Result<End, CliError> {
    let mut select = select.clone();
    let remote = Remote::new(server, source.token())?;
    let foreign = |what: &str| CliError::refused(format!("{} {what}", shown(server, 80)), "is it a daemon of this version?");
    let about = remote.get("/v1/log", &[], ABOUT_MAX).await?.body;
    let about: About = serde_json::from_slice(&about).map_err(|error| foreign("does not say what its log is").because(error))?;
    let kept = about.kept.unwrap_or(1);
    let mut about = selected(about, &mut select);
    if select.from < Seq(kept) {
        output::note(&format!(
            "wharf: history is from record {kept}; the leaves of what aged out are in a backup of the folder alone, and this one is a part"
        ));
        (select.from, about.from) = (Seq(kept), kept);
    }
    if !source.tails() {
        output::note("wharf: messages and last lines of containers are left out; --tails, with the role for them, keeps them");
    }
    let mut new = NewBackup::begin(file, about).map_err(|error| failed(file, error))?;
    loop {
        let mut query = vec![("from", select.from.to_string()), ("to", select.to.to_string())];
        query.extend(source.tails().then(|| ("include", "tails".to_owned())));
        query.extend(select.subject.as_ref().map(|subject| ("subject", subject.to_string())));
        let answer = remote.get("/v1/log/records", &query, PAGE_MAX).await?;
        let mut entries = Entries::of_page(answer.body.as_slice());
        while let Some(next) = entries.step().map_err(|error| foreign("sends no blocks").because(error))? {
            match next {
                Next::Block { key, bytes, .. } => new.block(key, &bytes).map_err(|error| failed(file, error))?,
                Next::Removed { .. } | Next::Numbers { .. } | Next::Base(_) | Next::End(_) => {
                    return Err(foreign("sends a file instead of blocks"));
                }
            }
        }
        let next = answer.headers.get(NEXT).map(|next| next.to_str().ok().and_then(|next| next.parse().ok()).map(Seq));
        match next {
            Some(Some(next)) if next > select.from => select.from = next,
            Some(_) => return Err(foreign("names no next page")),
            None => return new.finish().map_err(|error| failed(file, error)),
        }
    }
}

/// What is wrong with a backup, in words.
pub(super) fn failed(file: &Path, error: BackupError) -> CliError {
    let advice = match &error {
        BackupError::Source { .. } => "wharf verify says what holds; --to keeps what is before it",
        BackupError::Nothing => "wharf log shows what there is",
        BackupError::Io(_) => "look at the disk",
        BackupError::NotOne | BackupError::Newer(_) | BackupError::Damaged { .. } | BackupError::Part => "",
    };
    CliError::refused(format!("{}: {error}", shown(&file.display().to_string(), 200)), advice).because(error)
}
