//! The log over HTTP: pages of blocks as stored, from the first to the last.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::control::control;
use super::get;
use crate::clock::{Clock, Entropy};
use crate::events::backup::about::About;
use crate::events::backup::entry::{Entries, Next};
use crate::events::kinds::operator::OperatorSaid;
use crate::events::log::{EventLog, LogReader, OpenOptions};
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Reaction};
use crate::http::control::serve_control;
use crate::http::log::LogView;
use crate::ids::{Seq, Subject, Word};

pub(super) struct OneLog(pub(super) Arc<dyn LogReader>);

impl LogView for OneLog {
    fn reader(&self) -> Option<Arc<dyn LogReader>> {
        Some(Arc::clone(&self.0))
    }
}

fn said(subject: &str) -> Reaction {
    let said = Event::OperatorSaid(OperatorSaid { who: Word::new("eve"), why: "x".repeat(9_000) });
    let subject = Subject::parse(subject).expect("a subject");
    Reaction { subject, time_us: 1, rules: 1, settings: Seq::NONE, drafts: vec![Draft::input(said); 20] }
}

async fn pages(address: SocketAddr, query: &str) -> (u32, Vec<(Seq, Vec<u8>)>) {
    let (mut from, mut pages, mut blocks) = (Some("1".to_owned()), 0, Vec::new());
    while let Some(at) = from {
        let answer = get(address, &format!("/v1/log/records?from={at}{query}"), "").await;
        assert_eq!(answer.status, 200, "{}", answer.head);
        let mut entries = Entries::of_page(answer.body.as_slice());
        while let Some(Next::Block { key, bytes, .. }) = entries.step().expect("entries") {
            blocks.push((key, bytes));
        }
        from = answer.head.lines().find_map(|line| line.strip_prefix("wharf-next: ")).map(str::to_owned);
        pages += 1;
    }
    (pages, blocks)
}

#[tokio::test]
async fn a_log_comes_as_it_is_stored_page_by_page() {
    let options = OpenOptions::new(Subject::daemon("world").expect("a name"));
    let (mut log, _) = MemLog::open(&MemDisk::new(), &Clock::simulated(1), Entropy::seeded(1), &options).expect("it opens");
    for at in 0..16 {
        log.append(&[said(["app/acme/bot", "app/acme/bee"][at % 2])]).expect("appended");
    }
    let reader = log.reader();
    let mut all = Vec::new();
    let each = &mut |key, bytes: &[u8]| {
        all.push((key, bytes.to_vec()));
        std::ops::ControlFlow::Continue(())
    };
    reader.blocks(Seq::NONE, each).expect("the store answers");

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(serve_control(listener, control(Arc::new(OneLog(Arc::clone(&reader)))), std::future::pending()));
    let about: About = serde_json::from_slice(&get(address, "/v1/log", "").await.body).expect("what the log is");
    assert_eq!((about.head, about.tree().map(|tree| tree.1)), (reader.head().0, Some(reader.tree())));
    let (count, blocks) = pages(address, "").await;
    assert!(count > 1, "{count} pages");
    assert_eq!(blocks, all);
    let (_, blocks) = pages(address, "&subject=app/acme/bee").await;
    assert!(blocks.len() < all.len() && blocks.len() > all.len() / 3, "{}", blocks.len());
    let (_, blocks) = pages(address, "&to=1").await;
    assert_eq!(blocks, all[..1]);

    // What aged out is said to have, with where the log begins now.
    while log.remove(Seq(60)).expect("removed").is_some() {}
    let kept = reader.removed().expect("some went").kept;
    let gone = get(address, "/v1/log/records?from=1", "").await;
    assert_eq!(gone.status, 410);
    assert!(gone.head.contains(&format!("wharf-minimum: {kept}")), "{}", gone.head);
    assert!(String::from_utf8_lossy(&gone.body).contains("aged_out"));
    for query in [format!("?from={kept}"), String::new()] {
        let there = get(address, &format!("/v1/log/records{query}"), "").await;
        let mut entries = Entries::of_page(there.body.as_slice());
        assert!(matches!(entries.step(), Ok(Some(Next::Block { key, .. })) if key == kept), "{query}");
    }
    let about: About = serde_json::from_slice(&get(address, "/v1/log", "").await.body).expect("what the log is");
    assert_eq!(about.kept, Some(kept.0));
}
