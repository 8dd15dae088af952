//! `wharf log --follow`: the audit feed of a running daemon, printed as it comes. Cut off, it goes on behind the last record it has.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;

use super::error::CliError;
use super::log::{Args, LogFormat};
use super::output;
use super::remote::Remote;
use crate::events::backup::about::About;
use crate::events::record::Kind;
use crate::events::words;
use crate::feed::cloudevent::{EVENT_MAX, dotted};
use crate::ids::{Subject, shown};

/// The most bytes of an answer that is no stream.
const ANSWER_MAX: usize = 1 << 20;

/// A stream shows every 15 s that it lives.
const SILENCE: Duration = Duration::from_secs(60);

/// The pause before a stream that was cut off is opened again.
const AGAIN: Duration = Duration::from_secs(1);

/// How often in a row it is opened again before the daemon is taken for gone.
const TRIES: u32 = 60;

/// Prints what the daemon's log has after `--after`, and what comes, until the output is closed.
///
/// # Errors
/// When the daemon refuses, or does not answer any more.
pub(super) fn follow(args: &Args, server: &str) -> Result<ExitCode, CliError> {
    if args.format == LogFormat::Json {
        return Err(CliError::input("--follow has the feed's events", "--format text or cloudevents"));
    }
    let subject = args.subject.as_deref().map(Subject::parse).transpose();
    let subject = subject.map_err(|bad| CliError::input(bad.to_string(), "with --follow it is the whole name: app/ORG/NAME"))?;
    super::wait_for(async {
        let remote = Remote::new(server, args.source.token())?;
        let about = remote.get("/v1/log", &[], ANSWER_MAX).await?.body;
        let no_log = |error| CliError::refused(format!("{} does not say what its log is", shown(server, 80)), "").because(error);
        let about: About = serde_json::from_slice(&about).map_err(no_log)?;
        let after = args.after.unwrap_or(0).max(about.kept.map_or(0, |kept| kept.saturating_sub(1)));
        let mut query = vec![("follow", "1".to_owned())];
        query.extend(subject.map(|subject| ("subject", subject.to_string())));
        query.extend(args.kind.clone().map(|kind| ("kind", kind)));
        query.extend(args.source.tails().then(|| ("include", "tails".to_owned())));
        let mut reader = Reader { after: format!("{}:{after}", about.log), format: args.format, out: output::stdout() };
        let mut tries = 0;
        loop {
            let before = reader.after.clone();
            let cut_off = reader.read(&remote, &query).await?;
            tries = if reader.after == before { tries + 1 } else { 0 };
            if tries >= TRIES {
                return Err(cut_off);
            }
            tokio::time::sleep(AGAIN).await;
        }
    })
}

struct Reader<W> {
    /// The last record that was printed.
    after: String,
    format: LogFormat,
    out: W,
}

impl<W: Write> Reader<W> {
    /// Reads until it is cut off: by what.
    ///
    /// # Errors
    /// When asking again would not help.
    async fn read(&mut self, remote: &Remote, query: &[(&str, String)]) -> Result<CliError, CliError> {
        let query = [query, &[("after", self.after.clone())]].concat();
        let mut stream = match remote.stream("/v1/events", &query).await? {
            Ok(stream) => stream,
            Err(cut_off) => return Ok(cut_off),
        };
        let mut buffer = Vec::new();
        loop {
            let chunk = match tokio::time::timeout(SILENCE, stream.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(CliError::refused("the stream ended", "is the daemon running?")),
                Ok(Err(error)) => return Ok(CliError::refused("the stream was cut off", "is the daemon running?").because(error)),
                Err(_) => return Ok(CliError::refused("the stream is silent", "is the daemon running?")),
            };
            buffer.extend_from_slice(&chunk);
            let whole = buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let lines: Vec<u8> = buffer.drain(..whole).collect();
            for line in String::from_utf8_lossy(&lines).lines() {
                self.event(line)?;
            }
            self.out.flush()?;
            if buffer.len() > EVENT_MAX {
                return Err(CliError::refused("the stream has a line of more than 64 KiB", "is it a daemon of this version?"));
            }
        }
    }

    fn event(&mut self, line: &str) -> Result<(), CliError> {
        if line.is_empty() {
            return Ok(());
        }
        let no_event = || CliError::refused(format!("{} is no event", shown(line, 80)), "is it a daemon of this version?");
        let event: Value = serde_json::from_str(line).map_err(|_| no_event())?;
        self.after = event["id"].as_str().ok_or_else(no_event)?.to_owned();
        match self.format {
            LogFormat::Cloudevents | LogFormat::Json => writeln!(self.out, "{line}")?,
            LogFormat::Text => writeln!(self.out, "{}", in_words(&event))?,
        }
        Ok(())
    }
}

/// An event as `wharf log` prints its record.
fn in_words(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let seq = text("sequence").trim_start_matches('0');
    let typed = text("type").strip_prefix("dev.wharfinger.").unwrap_or_default();
    let kind = typed.rsplit_once('.').map_or(typed, |(kind, _)| kind);
    let kind = Kind::ALL.iter().map(|kind| kind.name()).find(|name| dotted(name) == kind).unwrap_or(kind);
    let said = match event.get("data") {
        Some(data) => words::said(data),
        None => format!("(left out: {})", shown(text("withheld"), 40)),
    };
    let cause = text("causationid").rsplit_once(':').map_or_else(String::new, |(_, seq)| format!(" <- {}", shown(seq, 20)));
    let gap = if said.is_empty() { "" } else { " " };
    format!("{:<8} {} {} {}{gap}{said}{cause}", shown(seq, 20), shown(text("time"), 40), shown(text("subject"), 300), shown(kind, 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reads_as_its_record_does() {
        let event = serde_json::json!({
            "id": "00112233445566778899aabbccddeeff:17", "type": "dev.wharfinger.operator.said.v1", "subject": "app/acme/bot",
            "time": "2026-01-01T00:00:00.000001Z", "sequence": "00000000000000000017", "causationid": "00112233445566778899aabbccddeeff:3",
            "data": {"who": "eve", "why": "because \u{1b}[31m"},
        });
        let expected = r#"17       2026-01-01T00:00:00.000001Z app/acme/bot OperatorSaid who=eve why="because \u{1b}[31m" <- 3"#;
        assert_eq!(in_words(&event), expected);
        let left_out = serde_json::json!({"type": "dev.wharfinger.tail.text.v1", "sequence": "8", "withheld": "tails"});
        assert!(in_words(&left_out).ends_with("TailText (left out: tails)"), "{}", in_words(&left_out));
    }
}
