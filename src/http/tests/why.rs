//! The chain of causes over HTTP.

use std::sync::Arc;

use serde_json::Value;
use tokio::net::TcpListener;

use super::control::control;
use super::log::OneLog;
use super::{Answer, get};
use crate::clock::{Clock, Entropy};
use crate::events::kinds::operator::OperatorSaid;
use crate::events::kinds::tail::{TailOf, TailText};
use crate::events::log::{EventLog as _, OpenOptions};
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Reaction};
use crate::http::control::serve_control;
use crate::ids::{HostName, Seq, Subject, Uid, Word};

#[tokio::test]
async fn why_is_asked_by_number_and_by_name() {
    let options = OpenOptions::new(Subject::daemon("world").expect("a name"));
    let (mut log, _) = MemLog::open(&MemDisk::new(), &Clock::simulated(1), Entropy::seeded(1), &options).expect("it opens");
    let said = Event::OperatorSaid(OperatorSaid { who: Word::new("eve"), why: "because".to_owned() });
    let of = TailOf {
        host: HostName::new("bot-r1").expect("a name"),
        uid: Uid::new("u").expect("a uid"),
        container: Word::new("app"),
        ended: true,
    };
    let tail = Event::TailText(TailText { of, part: 0, text: "my secret diary".to_owned() });
    for (subject, event) in [("app/acme/bot", said.clone()), ("app/acme/bot2", said), ("app/acme/bee", tail)] {
        let subject = Subject::parse(subject).expect("a subject");
        log.append(&[Reaction { subject, time_us: 1, rules: 1, settings: Seq::NONE, drafts: vec![Draft::input(event)] }])
            .expect("appended");
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve_control(listener, control(Arc::new(OneLog(log.reader()))), std::future::pending()));
    let ask = async |reference: &str| get(address, &format!("/v1/why?ref={reference}"), "").await;
    let chain = |answer: Answer| serde_json::from_slice::<Value>(&answer.body).expect("JSON");
    let answer = chain(ask("2").await);
    assert_eq!((&answer["subject"], &answer["chain"][0]["kind"]), (&"app/acme/bot".into(), &"OperatorSaid".into()));
    assert_eq!(chain(ask("app/acme/bot2").await)["chain"][0]["seq"], 3);
    for (reference, status, code) in
        [("99", 404, "not_found"), ("nothing", 404, "not_found"), ("acme", 409, "ambiguous"), ("", 400, "bad_query")]
    {
        let answer = ask(reference).await;
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{reference}");
    }
    let withheld = ask("4").await;
    assert_eq!(withheld.status, 200);
    assert!(!String::from_utf8_lossy(&withheld.body).contains("diary"), "what tenants wrote is not for who has not the role");
}
