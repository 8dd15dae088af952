//! The lines of `wharf log`.

use expect_test::{Expect, expect};

use crate::cli::log::{Args, Filter, Format, LogFormat, Said, Take, print, the_subject};
use crate::cli::source::Source;
use crate::events::kinds::pod::{Container, ContainerEnd, ContainerState, Phase, PodSeen, Scheduling};
use crate::events::kinds::step::{Outcome, Refusal, StepSettled};
use crate::events::kinds::tail::{MessageText, TailOf};
use crate::events::kinds::verdict::{FailedWhy, Stage, Verdict, VerdictReached};
use crate::events::kinds::want::WantSeen;
use crate::events::record::{Event, Header, Kind};
use crate::ids::{HostName, LogId, PackageDigest, RecordId, Seq, Subject, Uid, Word};

fn subject(text: &str) -> Subject {
    Subject::parse(text).expect("a subject")
}

fn header(seq: u64, kind: u16, cause: u64) -> Header {
    Header {
        kind,
        kind_version: 1,
        rules: 1,
        seq: Seq(seq),
        subject: subject("app/acme/bot"),
        subject_seq: seq,
        time_us: 1_767_225_600_000_000 + i64::try_from(seq).expect("small"),
        reaction: Seq(seq),
        cause: Seq(cause),
        settings: Seq::NONE,
    }
}

fn host() -> HostName {
    HostName::new("bot-r2-3c6ef362").expect("a name")
}

fn check(format: Format, events: &[Event], expected: Expect) {
    let mut out = Vec::new();
    for (at, event) in (1..).zip(events) {
        print(&mut out, format, &header(at, event.kind().number(), at / 2), Said::Event(event)).expect("a vector takes all");
    }
    expected.assert_eq(&String::from_utf8(out).expect("UTF-8"));
}

fn want() -> Event {
    Event::WantSeen(WantSeen {
        answer: 1,
        release: 2,
        sha256: PackageDigest::from_bytes([0xab; 32]),
        host: host(),
        registered: false,
        failed: false,
        live_host: None,
    })
}

#[test]
fn a_line_says_who_when_and_why() {
    let container = |state| Container { state, restarts: 0, last_end: None };
    let ended =
        ContainerEnd { exit_code: 137, signal: 0, reason: Word::new("OOMKilled"), started_us: 1_767_225_600_000_000, finished_us: 0 };
    let events = [
        want(),
        Event::StepSettled(StepSettled {
            step: Seq(2),
            outcome: Outcome::Refused(Refusal::Quota),
            object: None,
            attempts: 1,
            audit_id: [0; 16],
            status: 403,
            took_us: 12_500,
        }),
        Event::PodSeen(PodSeen {
            host: host(),
            uid: Uid::new("0d8b1f6e").expect("a uid"),
            resource_version: 17,
            release: 2,
            sha256: None,
            step: Some(RecordId { log: LogId([1; 16]), seq: Seq(2) }),
            phase: Phase::Running,
            reason: Word::default(),
            deleting: false,
            node: Word::new("node-1"),
            scheduling: Scheduling::Done,
            disruption: None,
            ready: false,
            created_us: 1_767_225_600_000_000,
            install: container(ContainerState::Waiting { reason: Word::new("ImagePullBackOff") }),
            app: container(ContainerState::Ended(ended)),
        }),
        Event::VerdictReached(VerdictReached {
            host: host(),
            uid: None,
            verdict: Verdict::Failed(FailedWhy::Stuck(Stage::Pull)),
            rule: Word::new("stuck"),
        }),
    ];
    check(
        Format::Text,
        &events,
        expect![[r#"
            1        2026-01-01T00:00:00.000001Z app/acme/bot WantSeen host=bot-r2-3c6ef362 answer=1 failed=false registered=false release=2 sha256=abababababab
            2        2026-01-01T00:00:00.000002Z app/acme/bot StepSettled attempts=1 outcome=Refused(Quota) status=403 step=2 took=12.5ms <- 1
            3        2026-01-01T00:00:00.000003Z app/acme/bot PodSeen host=bot-r2-3c6ef362 app={restarts=0 state=Ended{exit_code=137 reason=OOMKilled signal=0 started=2026-01-01T00:00:00.000000Z}} created=2026-01-01T00:00:00.000000Z deleting=false install={restarts=0 state=Waiting{reason=ImagePullBackOff}} node=node-1 phase=Running ready=false release=2 resource_version=17 scheduling=Done step={log=01010101010101010101010101010101 seq=2} uid=0d8b1f6e <- 1
            4        2026-01-01T00:00:00.000004Z app/acme/bot VerdictReached host=bot-r2-3c6ef362 rule=stuck verdict=Failed(Stuck(Pull)) <- 2
        "#]],
    );
}

#[test]
fn what_a_tenant_wrote_is_shown_escaped() {
    let of = TailOf { host: host(), uid: Uid::new("u").expect("a uid"), container: Word::new("app"), ended: true };
    let text = "a \"b\"\n\u{1b}]0;owned\u{7}\u{202e}".to_owned();
    check(
        Format::Text,
        &[Event::MessageText(MessageText { of, text })],
        expect![[r#"
            1        2026-01-01T00:00:00.000001Z app/acme/bot MessageText of={host=bot-r2-3c6ef362 container=app ended=true uid=u} text="a \"b\"\u{a}\u{1b}]0;owned\u{7}\u{202e}"
        "#]],
    );
}

#[test]
fn json_is_a_document_a_line() {
    check(
        Format::Json,
        &[want()],
        expect![[r#"
        {"cause":null,"kind":"WantSeen","kind_version":1,"payload":{"answer":1,"failed":false,"host":"bot-r2-3c6ef362","live_host":null,"registered":false,"release":2,"sha256":"abababababab"},"reaction":1,"role":"input","rules":1,"seq":1,"settings":null,"state":"known","subject":"app/acme/bot","subject_seq":1,"time":"2026-01-01T00:00:00.000001Z"}
    "#]],
    );
}

#[test]
fn what_cannot_be_read_is_still_a_line() {
    let mut out = Vec::new();
    for said in [Said::Newer, Said::NeedsVersion, Said::Withheld] {
        print(&mut out, Format::Text, &header(1, 999, 0), said).expect("a vector takes all");
    }
    expect![[r#"
        1        2026-01-01T00:00:00.000001Z app/acme/bot kind-999 (written by a newer version)
        1        2026-01-01T00:00:00.000001Z app/acme/bot kind-999 (decides; a newer version is needed to read it)
        1        2026-01-01T00:00:00.000001Z app/acme/bot kind-999 (left out)
    "#]]
    .assert_eq(&String::from_utf8(out).expect("UTF-8"));
}

#[test]
fn a_part_of_a_subject_is_enough_when_only_one_has_it() {
    let subjects: Vec<Subject> = ["app/acme/bot", "app/acme/bot2", "app/other/tool", "daemon/prod"].map(subject).into();
    let ask = |part: &str| the_subject(part, &subjects).map(|subject| subject.to_string()).map_err(|e| e.line());
    assert_eq!(ask("tool"), Ok("app/other/tool".to_owned()));
    assert_eq!(ask("app/acme/bot"), Ok("app/acme/bot".to_owned()), "the whole name is that one");
    assert_eq!(ask("bot"), Err("wharf: \"bot\" may be app/acme/bot, app/acme/bot2; name one of them".to_owned()));
    assert!(ask("none").is_err_and(|line| line.contains("no subject")));
}

#[test]
fn records_are_taken_by_number_time_and_kind() {
    let args = |after: Option<u64>, until: Option<&str>, kind: Option<&str>| Args {
        subject: None,
        source: Source::default(),
        follow: false,
        after,
        until: until.map(str::to_owned),
        kind: kind.map(str::to_owned),
        format: LogFormat::Text,
    };
    let now_us = 1_767_225_600_000_000 + 60_000_003;
    let taken = |args: &Args| {
        let filter = Filter::of(args, &[], now_us).map_err(|e| e.line())?;
        let kinds = [Kind::WantSeen, Kind::PodSeen, Kind::WantSeen, Kind::PodSeen, Kind::WantSeen];
        let takes = (1..).zip(kinds).map(|(seq, kind)| filter.take(&header(seq, kind.number(), 0)));
        Ok::<Vec<u64>, String>(
            (1..).zip(takes.take_while(|take| *take != Take::End)).filter(|(_, take)| *take == Take::Yes).map(|(seq, _)| seq).collect(),
        )
    };
    assert_eq!(taken(&args(None, None, None)), Ok(vec![1, 2, 3, 4, 5]));
    assert_eq!(taken(&args(Some(1), Some("4"), None)), Ok(vec![2, 3, 4]));
    assert_eq!(taken(&args(None, Some("-1m"), None)), Ok(vec![1, 2, 3]));
    assert_eq!(taken(&args(None, Some("2026-01-01T00:00:00.000002Z"), None)), Ok(vec![1, 2]));
    assert_eq!(taken(&args(None, None, Some("PodSeen"))), Ok(vec![2, 4]));
    for bad in ["yesterday", "-15", "-m", "-x5m", ""] {
        assert!(taken(&args(None, Some(bad), None)).is_err(), "{bad}");
    }
    assert!(taken(&args(None, None, Some("podseen"))).is_err_and(|line| line.contains("PodSeen")));
}
