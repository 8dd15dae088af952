//! Erasing over HTTP, and what tenants wrote: for whom, and what is answered.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::net::TcpListener;

use super::access::{Guarded, token};
use super::{Answer, raw};
use crate::actors::{Committer, CommitterThread};
use crate::clock::{Clock, Entropy};
use crate::events::backup::entry::{Entries, Next};
use crate::events::block::Block;
use crate::events::erase::Erasure;
use crate::events::frame::FrameBody;
use crate::events::kinds::step::StepIssued;
use crate::events::kinds::step::{Purpose, Step};
use crate::events::kinds::tail::{MessageText, TailOf};
use crate::events::log::{LogReader, OpenOptions};
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Reaction};
use crate::events::stored::Body;
use crate::http::erase::{Erased, Refused, Wanted};
use crate::http::log::LogView;
use crate::ids::{HostName, Seq, Subject, Uid, Word};
use crate::telemetry::Metrics;

const TEXT: &str = "what the tenant printed";

/// A log that is written, with a step in record 2 and a tenant's message in record 3.
struct Written(Arc<dyn LogReader>, Committer);

impl Written {
    async fn new() -> Self {
        let options = OpenOptions::new(Subject::daemon("world").expect("a name"));
        let (log, _) = MemLog::open(&MemDisk::new(), &Clock::simulated(1), Entropy::seeded(1), &options).expect("it opens");
        let (committer, thread) = CommitterThread::start_inline(Box::new(log), Metrics::default());
        let host = HostName::new("bot-1").expect("a name");
        let step = Step::ReadPod { host: host.clone() };
        let issued = Event::StepIssued(StepIssued { step, purpose: Purpose::Start, rule: Word::default() });
        let uid = Uid::new("9d1c4c5e-8f0a").expect("a uid");
        let of = TailOf { host, uid, container: Word::new("app"), ended: true };
        let said = Event::MessageText(MessageText { of, text: TEXT.to_owned() });
        let drafts = vec![Draft::input(issued), Draft::input(said)];
        let subject = Subject::parse("app/acme/bot").expect("a subject");
        let reaction = Reaction { subject, time_us: 1, rules: 1, settings: Seq::NONE, drafts };
        committer.append(reaction).await.expect("appended");
        Self(thread.reader(), committer)
    }
}

impl LogView for Written {
    fn reader(&self) -> Option<Arc<dyn LogReader>> {
        Some(Arc::clone(&self.0))
    }

    fn erase(&self, Wanted { seq, who, why }: Wanted) -> BoxFuture<'_, Result<Erased, Refused>> {
        let daemon = Subject::daemon("world").expect("a name");
        async move {
            let record = self.1.erase(Erasure { seq, daemon, time_us: 2, who, why }).await?;
            Ok(Erased { seq: seq.0, recorded: record.header.seq.0, archived: vec!["old.wharf-log".to_owned()] })
        }
        .boxed()
    }
}

/// What a file of the access says: each role alone, and an auditor who may read texts.
fn access() -> String {
    let alone = ["auditor", "tails", "operator"].map(|role| token(role, &format!("\"{role}\""))).concat();
    alone + &token("reader", "\"auditor\", \"tails\"")
}

async fn erase(guarded: &Guarded, caller: &str, body: &str) -> Answer {
    let head = format!("POST /v1/log/erase HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {caller}");
    let request = format!("{head}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    raw(guarded.address, &request).await
}

#[tokio::test]
async fn an_operator_erases_and_nobody_else() {
    let log = Arc::new(Written::new().await);
    let guarded = Guarded::start_with(&access(), true, log.clone()).await;
    let asked = r#"{"seq": 3, "reason": "a password"}"#;
    for caller in ["auditor", "tails", "reader"] {
        assert_eq!(erase(&guarded, caller, asked).await.code(), "forbidden", "{caller}");
    }
    for (body, status, code) in [
        (r#"{"seq": 2, "reason": "x"}"#, 409, "decides"),
        (r#"{"seq": 9, "reason": "x"}"#, 404, "not_found"),
        (r#"{"seq": 3, "reason": ""}"#, 400, "bad_reason"),
        (r#"{"seq": -3, "reason": "x"}"#, 400, "bad_erasure"),
        (r#"{"seq": 3"#, 400, "bad_erasure"),
    ] {
        let answer = erase(&guarded, "operator", body).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{body}");
    }
    let long = format!(r#"{{"seq": 3, "reason": "{}"}}"#, "x".repeat(20_000));
    assert_eq!(erase(&guarded, "operator", &long).await.status, 413);
    let before = log.0.acknowledged();
    assert_eq!(before.head, Seq(3), "nothing was erased so far");

    let answer = erase(&guarded, "operator", asked).await;
    let erased: Erased = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!((answer.status, erased.seq, erased.recorded, erased.archived.len()), (200, 3, 4, 1));
    assert_eq!(erase(&guarded, "operator", asked).await.code(), "erased_already");
    let body = |seq| log.0.record(Seq(seq)).expect("read").expect("there").expect("sound").body;
    assert_eq!(body(3), Body::Withheld);
    let Body::Known(Event::RecordErased(recorded)) = body(4) else { panic!("the erasure is recorded") };
    assert_eq!((recorded.record.seq, recorded.who.as_str(), recorded.why.as_str()), (Seq(3), "operator", "a password"));
    assert!(crate::events::check::check(log.0.as_ref()).expect("read").difference.is_none());
}

#[tokio::test]
async fn what_tenants_wrote_is_for_who_has_the_role_and_asks_for_it() {
    let log = Arc::new(Written::new().await);
    let guarded = Guarded::start_with(&access(), true, log).await;
    let records = async |caller: &str, include: &str| guarded.ask("GET", &format!("/v1/log/records?from=1{include}"), Some(caller)).await;
    let text_is_in = |answer: &Answer| answer.body.windows(TEXT.len()).any(|window| window == TEXT.as_bytes());
    let mut leaves = Vec::new();
    for (caller, include, whole) in
        [("auditor", "", false), ("operator", "", false), ("reader", "", false), ("reader", "&include=tails", true)]
    {
        let answer = records(caller, include).await;
        assert_eq!((answer.status, text_is_in(&answer)), (200, whole), "{caller} {include}");
        let mut entries = Entries::of_page(answer.body.as_slice());
        let (mut all, mut withheld) = (Vec::new(), 0);
        while let Some(Next::Block { bytes, .. }) = entries.step().expect("entries") {
            for (_, found) in Block::read(&bytes).expect("sound").records() {
                let found = found.expect("sound");
                withheld += usize::from(matches!(found.body, FrameBody::Withheld(_)));
                all.push(found.leaf());
            }
        }
        assert_eq!(withheld, usize::from(!whole), "{caller} {include}");
        leaves.push(all);
    }
    assert!(leaves[0].len() == 3 && leaves.iter().all(|all| *all == leaves[0]), "every leaf can be computed all the same");
    for caller in ["auditor", "operator"] {
        assert_eq!(records(caller, "&include=tails").await.code(), "forbidden");
    }
    assert_eq!(guarded.refusals.take().len(), 2);
    assert_eq!(records("reader", "&include=everything").await.code(), "bad_query");

    // On a listener that asks for no token nobody has the role.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    let control = super::control::control(Arc::new(Written::new().await));
    tokio::spawn(crate::http::control::serve_control(listener, control, std::future::pending()));
    assert!(!text_is_in(&super::get(address, "/v1/log/records", "").await));
}
