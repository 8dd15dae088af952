//! What a heartbeat carries.

use crate::gateway::protocol::{BODY_BYTES, Heartbeat, LINES_BYTES, Report, ReportState};
use crate::gateway::report::{Beat, Outbox};
use crate::ids::{AppId, HostName};

const BEAT_US: i64 = 5_000_000;

fn app(name: &str) -> AppId {
    AppId::new("acme", name).expect("a name")
}

fn report(name: &str, why: &str) -> Report {
    let state = if why.is_empty() { ReportState::Live } else { ReportState::Failed };
    Report { org: "acme".to_owned(), name: name.to_owned(), host: format!("{name}-r1-00000000"), state, why: why.to_owned() }
}

fn outbox(reports: &[(&str, &str)]) -> Outbox {
    let mut outbox = Outbox::new("runner", 5_000);
    for (name, why) in reports {
        outbox.owe(&app(name), report(name, why));
    }
    outbox
}

fn read(beat: &Beat) -> Heartbeat {
    serde_json::from_slice(&beat.body).expect("JSON")
}

fn names(beat: &Beat) -> Vec<String> {
    read(beat).reports.into_iter().map(|report| report.name).collect()
}

#[test]
fn a_beat_is_what_the_protocol_says() {
    let mut outbox = outbox(&[("a", ""), ("b", "exited: 1\n\u{1b}[31m")]);
    outbox.give_lines(&app("a"), &HostName::new("a-r1-00000000").expect("a name"), "one\ntwo\n");
    let text = String::from_utf8(outbox.beat(0).body).expect("UTF-8");
    expect_test::expect![[r#"{"runner":"runner","reports":[{"org":"acme","name":"a","host":"a-r1-00000000","state":"live","why":""},{"org":"acme","name":"b","host":"b-r1-00000000","state":"failed","why":"exited: 1\n\u001b[31m"}],"logs":[{"org":"acme","name":"a","host":"a-r1-00000000","lines":"one\ntwo\n"}]}"#]].assert_eq(&text);
    assert_eq!(read(&outbox.beat(0)).logs, [], "lines are given once");
}

#[test]
fn a_report_is_owed_until_it_is_settled_and_a_2xx_only_spaces_it() {
    let mut outbox = outbox(&[("a", "exited")]);
    let lost = outbox.beat(0);
    assert_eq!(names(&outbox.beat(1)), ["a"], "without a 2xx it goes with the next beat");
    outbox.taken(10, &lost);
    assert_eq!(outbox.due_us(), Some(10 + 3 * BEAT_US));
    assert!(names(&outbox.beat(9 + 3 * BEAT_US)).is_empty());
    assert_eq!(names(&outbox.beat(10 + 3 * BEAT_US)), ["a"]);
    outbox.settle(&app("a"), "a-r1-00000000");
    assert_eq!((outbox.owed(), outbox.due_us()), (0, None));
}

#[test]
fn a_changed_report_is_due_at_once_also_when_the_old_one_is_on_its_way() {
    let mut outbox = outbox(&[("a", "")]);
    let on_its_way = outbox.beat(0);
    outbox.owe(&app("a"), report("a", "exited"));
    outbox.taken(1, &on_its_way);
    assert_eq!(read(&outbox.beat(2)).reports, [report("a", "exited")]);
    let second = outbox.beat(2);
    outbox.taken(2, &second);
    outbox.owe(&app("a"), report("a", "exited"));
    assert!(names(&outbox.beat(3)).is_empty(), "the same again is nothing new");
}

#[test]
fn the_end_of_a_long_why_is_kept_by_characters() {
    let mut outbox = outbox(&[("a", &format!("{}{}", "x".repeat(50), "ü".repeat(2_000)))]);
    assert_eq!(read(&outbox.beat(0)).reports[0].why, "ü".repeat(2_000));
}

#[test]
fn lines_keep_their_end_from_a_whole_line_on() {
    let mut outbox = outbox(&[]);
    let host = HostName::new("h").expect("a name");
    let text = "é line\n".repeat(60_000);
    outbox.give_lines(&app("a"), &host, &text);
    outbox.give_lines(&app("b"), &host, &"é".repeat(200_000));
    let logs = read(&outbox.beat(0)).logs;
    assert!(logs[0].lines.len() <= LINES_BYTES && logs[0].lines.starts_with("é line\n") && text.ends_with(&logs[0].lines));
    assert_eq!(logs[1].lines.len(), LINES_BYTES, "one endless line is cut where a character begins");
}

#[test]
fn what_does_not_fit_goes_with_the_next_beat_longest_unsent_first() {
    let mut outbox = Outbox::new("runner", 5_000);
    let many: Vec<String> = (0..1_000).map(|number| format!("app{number:04}")).collect();
    for name in &many {
        outbox.owe(&app(name), report(name, &"\u{1}".repeat(2_000)));
    }
    let mut sent = Vec::new();
    for at in 0..3 {
        let beat = outbox.beat(at);
        assert!(beat.body.len() <= BODY_BYTES);
        assert_eq!(beat.more, at < 2, "beat {at}");
        sent.extend(names(&beat));
        outbox.taken(at, &beat);
    }
    assert_eq!(sent, many, "each once");
}

#[test]
fn lines_wait_when_reports_fill_the_body() {
    let mut outbox = Outbox::new("runner", 5_000);
    for number in 0..40 {
        outbox.give_lines(&app(&format!("app{number}")), &HostName::new("h").expect("a name"), &"x".repeat(LINES_BYTES));
    }
    let first = outbox.beat(0);
    assert!(first.more && first.body.len() <= BODY_BYTES);
    let given = read(&first).logs.len() + read(&outbox.beat(0)).logs.len();
    assert_eq!(given, 30, "fifteen a beat");
}
