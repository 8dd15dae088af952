//! Every recorded refusal, and those that proxies and webhooks make up, sorted by what to do next.

use std::fmt::Write as _;

use expect_test::{expect, expect_file};
use serde_json::Value;

use super::{recorded, recordings, step};
use crate::events::kinds::step::{Outcome, Refusal};
use crate::kube::answer::{Answer, Reply, Verb, sort};
use crate::kube::call::{audit_id, uuid};

fn reply(status: u16, body: &str) -> Reply {
    Reply { status, body: body.as_bytes().to_vec(), ..Reply::default() }
}

fn words(code: u16, message: &str) -> Reply {
    let body = serde_json::json!({
        "kind": "Status", "status": "Failure", "message": message, "reason": "Forbidden",
        "details": {"name": "q", "kind": "pods"}, "code": code,
    });
    reply(code, &body.to_string())
}

#[test]
fn every_recorded_status_is_sorted() {
    let mut table = String::new();
    for name in recordings(".json").into_iter().filter(|name| name.starts_with("status-")) {
        let recording: Value = serde_json::from_str(&recorded(&name)).expect("JSON");
        let Some(body) = recording.get("body") else { continue };
        let text = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let status = u16::try_from(recording["httpStatus"].as_u64().expect("a status")).expect("a status");
        let header = |name: &str| recording["headers"][name].as_str().map(str::to_owned);
        let reply = Reply { retry_after: header("Retry-After"), date: header("Date"), ..reply(status, &text) };
        let name = name.trim_start_matches("status-").trim_end_matches(".json");
        let object = body.pointer("/details/name").and_then(Value::as_str).unwrap_or("x").to_owned();
        let _ = writeln!(table, "{name}");
        for verb in [Verb::Create, Verb::Delete, Verb::Read] {
            let _ = writeln!(table, "    {verb:?}: {}", short(&sort(verb, &object, &reply)));
        }
        if let Some(said) = reply.explained() {
            let _ = writeln!(table, "    says: {}", said.lines().next().unwrap_or(""));
        }
    }
    expect_file!["data/statuses.txt"].assert_eq(&table);
}

fn short(answer: &Answer) -> String {
    let Answer::RetryLater { after_us, slow_down, doubtful } = answer else { return format!("{answer:?}") };
    let after = after_us.map(|after| format!(" after {} s", after / 1_000_000)).unwrap_or_default();
    let flags = [(*slow_down, " slow-down"), (*doubtful, " doubtful")];
    flags.iter().fold(format!("again{after}"), |out, (set, word)| if *set { out + word } else { out })
}

#[test]
fn b24_the_refusals_of_a_create_are_told_apart() {
    let cases = [
        (403, "pods \"q\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"),
        (403, "pods \"q\" is forbidden: status unknown for quota: q, resources: pods"),
        (403, "pods \"q\" is forbidden: failed quota: q: must specify limits.cpu"),
        (403, "pods is forbidden: User \"x\" cannot create resource \"pods\" in API group \"\" in the namespace \"apps\""),
        (403, "pods \"q\" is forbidden: pod rejected: RuntimeClass \"gvisor\" not found"),
        (403, "pods \"q\" is forbidden: violates PodSecurity \"restricted:latest\": runAsNonRoot != true"),
        (403, "pods \"q\" is forbidden: unable to create new content in namespace t because it is being terminated"),
        (403, "admission webhook \"v.x\" denied the request: exceeded quota: of my own"),
        (403, "pods \"q\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
        (403, "pods \"q\" is forbidden: no PriorityClass with name high was found"),
        (403, "pods \"q\" is forbidden: maximum memory usage per Container is 64Mi, but limit is 256Mi"),
        (403, "pods \"q\" is forbidden: error looking up service account apps/default: serviceaccount \"default\" not found"),
        (403, ""),
        (400, "admission webhook \"v.x\" denied the request: no"),
        (500, "Internal error occurred: failed calling webhook \"v.x\": no endpoints available for service \"x\""),
        (500, "Internal error occurred: etcdserver: request timed out"),
        (503, "the server is currently unable to handle the request"),
        (504, "Timeout: request did not complete within the allotted duration"),
        (422, "Pod \"q\" is invalid: spec"),
        (413, "Request entity too large: limit is 3145728"),
        (401, "Unauthorized"),
    ];
    let mut table = String::new();
    for (code, message) in cases {
        let _ = writeln!(table, "{code} {} <- {message}", short(&sort(Verb::Create, "q", &words(code, message))));
    }
    expect![[r#"
        403 Refused(Quota) <- pods "q" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0
        403 Refused(Quota) <- pods "q" is forbidden: status unknown for quota: q, resources: pods
        403 Refused(Quota) <- pods "q" is forbidden: failed quota: q: must specify limits.cpu
        403 Forbidden <- pods is forbidden: User "x" cannot create resource "pods" in API group "" in the namespace "apps"
        403 Refused(RuntimeClass) <- pods "q" is forbidden: pod rejected: RuntimeClass "gvisor" not found
        403 Refused(Policy) <- pods "q" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true
        403 Refused(Namespace) <- pods "q" is forbidden: unable to create new content in namespace t because it is being terminated
        403 Refused(Webhook) <- admission webhook "v.x" denied the request: exceeded quota: of my own
        403 Refused(Policy) <- pods "q" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no
        403 Refused(Policy) <- pods "q" is forbidden: no PriorityClass with name high was found
        403 Refused(Policy) <- pods "q" is forbidden: maximum memory usage per Container is 64Mi, but limit is 256Mi
        403 Refused(Namespace) <- pods "q" is forbidden: error looking up service account apps/default: serviceaccount "default" not found
        403 Forbidden <- 
        400 Refused(Webhook) <- admission webhook "v.x" denied the request: no
        500 Refused(Webhook) <- Internal error occurred: failed calling webhook "v.x": no endpoints available for service "x"
        500 again doubtful <- Internal error occurred: etcdserver: request timed out
        503 again doubtful <- the server is currently unable to handle the request
        504 Unknown <- Timeout: request did not complete within the allotted duration
        422 Refused(Invalid) <- Pod "q" is invalid: spec
        413 Refused(Invalid) <- Request entity too large: limit is 3145728
        401 Forbidden <- Unauthorized
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_body_that_nobody_can_read_never_proves_anything() {
    let mut table = String::new();
    for code in [200, 301, 400, 401, 403, 404, 409, 410, 413, 418, 422, 429, 500, 502, 503, 504, 520] {
        for verb in [Verb::Create, Verb::Delete, Verb::Read] {
            let answers: Vec<String> =
                ["{}", "<html>no</html>", "[]", ""].iter().map(|body| short(&sort(verb, "q", &reply(code, body)))).collect();
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{code} {verb:?} {answers:?}");
            assert_ne!(answers[0], "Gone", "{code} {verb:?}: a proxy's 404 is not the API server's");
            let _ = writeln!(table, "{code} {verb:?}: {}", answers[0]);
        }
    }
    expect![[r#"
        200 Create: Done
        200 Delete: Done
        200 Read: Done
        301 Create: again
        301 Delete: again
        301 Read: again
        400 Create: again
        400 Delete: again
        400 Read: again
        401 Create: Forbidden
        401 Delete: Forbidden
        401 Read: Forbidden
        403 Create: Forbidden
        403 Delete: Forbidden
        403 Read: Forbidden
        404 Create: again
        404 Delete: again
        404 Read: again
        409 Create: Conflict
        409 Delete: Conflict
        409 Read: Conflict
        410 Create: again
        410 Delete: again
        410 Read: again
        413 Create: Refused(Invalid)
        413 Delete: Refused(Invalid)
        413 Read: Refused(Invalid)
        418 Create: again
        418 Delete: again
        418 Read: again
        422 Create: Refused(Invalid)
        422 Delete: Refused(Invalid)
        422 Read: Refused(Invalid)
        429 Create: again slow-down
        429 Delete: again slow-down
        429 Read: again slow-down
        500 Create: again doubtful
        500 Delete: again doubtful
        500 Read: again
        502 Create: Unknown
        502 Delete: Unknown
        502 Read: again
        503 Create: again doubtful
        503 Delete: again doubtful
        503 Read: again
        504 Create: Unknown
        504 Delete: Unknown
        504 Read: again
        520 Create: again doubtful
        520 Delete: again doubtful
        520 Read: again
    "#]]
    .assert_eq(&table);
    let other = r#"{"kind":"Status","reason":"NotFound","details":{"name":"other","kind":"pods"},"code":404}"#;
    assert_eq!(sort(Verb::Delete, "q", &reply(404, other)), Answer::AGAIN);
}

#[test]
fn b43_a_pause_is_as_told_and_capped() {
    let date = "Mon, 30 Nov 2026 12:00:00 GMT";
    let pause = |header: Option<&str>, body: &str| {
        let header = header.map(str::to_owned);
        Reply { retry_after: header, date: Some(date.to_owned()), ..reply(429, body) }.retry_after_us()
    };
    let second = 1_000_000;
    for (header, wanted) in [
        ("2", Some(2 * second)),
        (" 2 ", Some(2 * second)),
        ("0", Some(0)),
        ("999999", Some(60 * second)),
        ("99999999999999999999999999", Some(60 * second)),
        ("Mon, 30 Nov 2026 12:00:07 GMT", Some(7 * second)),
        ("Tue, 30 Nov 2026 12:00:07 GMT", Some(7 * second)),
        ("Mon, 30 Nov 2026 11:00:00 GMT", Some(0)),
        ("Mon, 30 Nov 2099 12:00:00 GMT", Some(60 * second)),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
    ] {
        assert_eq!(pause(Some(header), ""), wanted, "{header:?}");
    }
    assert_eq!(pause(None, ""), None);
    assert_eq!(pause(None, r#"{"kind":"Status","details":{"retryAfterSeconds":5}}"#), Some(5 * second));
    assert_eq!(pause(Some("soon"), r#"{"details":{"retryAfterSeconds":5}}"#), Some(5 * second));
    let undated = Reply { retry_after: Some(date.to_owned()), ..reply(429, "") };
    assert_eq!(undated.retry_after_us(), None, "without the server's own time a date means nothing");
}

#[test]
fn b09_a_name_that_is_being_freed_is_held() {
    let cases = [
        r#"{"kind":"Status","reason":"AlreadyExists","message":"object is being deleted: pods \"q\" already exists","code":409}"#,
        r#"{"kind":"Status","reason":"AlreadyExists","message":"pods \"q\" already exists","details":{"retryAfterSeconds":1},"code":409}"#,
    ];
    for body in cases {
        assert_eq!(sort(Verb::Create, "q", &reply(409, body)), Answer::NameHeld, "{body}");
    }
    let exists = r#"{"kind":"Status","reason":"AlreadyExists","message":"pods \"q\" already exists","code":409}"#;
    assert_eq!(sort(Verb::Create, "q", &reply(409, exists)), Answer::Conflict);
}

#[test]
fn an_answer_that_is_the_last_word_has_an_outcome() {
    let doubtful = Answer::RetryLater { after_us: None, slow_down: false, doubtful: true };
    for (answer, outcome) in [
        (Answer::Done, Outcome::Done),
        (Answer::AGAIN, Outcome::Unsent),
        (doubtful, Outcome::Unknown),
        (Answer::Unknown, Outcome::Unknown),
        (Answer::Forbidden, Outcome::Refused(Refusal::Forbidden)),
        (Answer::Refused(Refusal::Quota), Outcome::Refused(Refusal::Quota)),
    ] {
        assert_eq!(answer.outcome(), outcome);
    }
}

#[test]
fn what_the_server_says_is_bounded() {
    assert_eq!(reply(500, &"é".repeat(9_000)).explained().expect("words").len(), 4096);
    assert_eq!(
        reply(429, "Too many requests, please try again later.\n").explained().as_deref(),
        Some("Too many requests, please try again later.")
    );
    assert_eq!(reply(200, "{}").explained(), None);
    assert_eq!(reply(500, "").explained(), None);
}

#[test]
fn every_attempt_has_an_audit_id_of_its_own() {
    let id = uuid(&audit_id(step(17), 1));
    expect!["d5436631-1236-8a91-b0d0-1c76935934c2"].assert_eq(&id);
    assert_eq!((&id[14..15], id.len()), ("8", 36));
    assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"));
    let all: std::collections::BTreeSet<_> = (1..=50).flat_map(|seq| (1..=50).map(move |attempt| audit_id(step(seq), attempt))).collect();
    assert_eq!(all.len(), 2_500);
}
