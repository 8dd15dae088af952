//! The feed over real connections, beside a log that grows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::Feed;
use crate::clock::{Clock, Entropy};
use crate::events::kinds::operator::OperatorSaid;
use crate::events::kinds::tail::{TailOf, TailText};
use crate::events::log::{EventLog, LogReader, OpenOptions};
use crate::events::mem_log::{MemDisk, MemLog};
use crate::events::record::{Draft, Event, Reaction};
use crate::http::control::{Control, serve_control};
use crate::http::log::LogView;
use crate::http::tests::control::control;
use crate::http::tests::{Answer, get};
use crate::ids::{HostName, LogId, RecordId, Seq, Subject, Uid, Word, hex};

struct Growing {
    reader: Arc<dyn LogReader>,
    heads: watch::Receiver<Seq>,
}

impl LogView for Growing {
    fn reader(&self) -> Option<Arc<dyn LogReader>> {
        Some(Arc::clone(&self.reader))
    }

    fn heads(&self) -> Option<watch::Receiver<Seq>> {
        Some(self.heads.clone())
    }
}

/// A served log, and its writer.
struct Served {
    log: MemLog,
    heads: watch::Sender<Seq>,
    address: SocketAddr,
    readers: Arc<Semaphore>,
}

impl Served {
    async fn new() -> Self {
        let options = OpenOptions::new(Subject::daemon("world").expect("a name"));
        let (log, _) = MemLog::open(&MemDisk::new(), &Clock::simulated(1), Entropy::seeded(1), &options).expect("it opens");
        let (heads, watched) = watch::channel(log.reader().head());
        let view: Arc<dyn LogView> = Arc::new(Growing { reader: log.reader(), heads: watched });
        let feed = Feed::new(Arc::clone(&view), "world");
        let readers = Arc::clone(&feed.readers);
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("an address");
        tokio::spawn(serve_control(listener, Control { feed, ..control(view) }, std::future::pending()));
        Self { log, heads, address, readers }
    }

    /// Appends a record each; gives the last one's number.
    fn say(&mut self, subjects: &[&str]) -> Seq {
        for subject in subjects {
            let said = Event::OperatorSaid(OperatorSaid { who: Word::new("eve"), why: "because".to_owned() });
            self.append(subject, said);
        }
        self.log.reader().head()
    }

    fn append(&mut self, subject: &str, event: Event) {
        let subject = Subject::parse(subject).expect("a subject");
        let drafts = vec![Draft::input(event)];
        self.log.append(&[Reaction { subject, time_us: 1, rules: 1, settings: Seq::NONE, drafts }]).expect("appended");
        self.heads.send_replace(self.log.reader().head());
    }

    fn id(&self, seq: u64) -> String {
        RecordId { log: self.log.reader().id(), seq: Seq(seq) }.to_string()
    }
}

/// Connects and reads up to the body.
async fn open(address: SocketAddr, path: &str, headers: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).await.expect("a listener");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("written");
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("a status");
    assert!(line.contains(" 200 "), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await.expect("a header");
    }
    stream
}

/// The next chunk; `None` at the end.
async fn chunk(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut size = String::new();
    stream.read_line(&mut size).await.expect("a size");
    let size = usize::from_str_radix(size.trim(), 16).expect("hexadecimal");
    let mut bytes = vec![0; size + 2];
    stream.read_exact(&mut bytes).await.expect("a chunk");
    bytes.truncate(size);
    (size > 0).then(|| String::from_utf8(bytes).expect("text"))
}

async fn whole(address: SocketAddr, path: &str, headers: &str) -> String {
    let (mut stream, mut all) = (open(address, path, headers).await, String::new());
    while let Some(text) = chunk(&mut stream).await {
        all += &text;
    }
    all
}

fn events(lines: &str) -> Vec<Value> {
    lines.lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn sequences(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["sequence"].as_str().expect("text").parse().expect("a number")).collect()
}

#[tokio::test]
async fn every_record_is_an_event_with_its_position_and_its_leaf() {
    let mut served = Served::new().await;
    served.say(&["app/acme/bot", "app/acme/bee", "session/one"]);
    let all = events(&whole(served.address, "/v1/events", "").await);
    assert_eq!(sequences(&all), [1, 2, 3, 4]);
    let event = &all[1];
    let log = served.log.reader().id();
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["id"], served.id(2));
    assert_eq!(event["source"], format!("urn:wharfinger:world:{log}"));
    assert_eq!((&event["type"], &event["subject"]), (&"dev.wharfinger.operator.said.v1".into(), &"app/acme/bot".into()));
    assert_eq!((&event["sequence"], &event["subjectseq"]), (&"00000000000000000002".into(), &"00000000000000000001".into()));
    assert_eq!(event["data"]["why"], "because");
    let mut leaves = Vec::new();
    let each = &mut |_: LogId, leaf: crate::events::tree::Hash| {
        leaves.push(hex(&leaf));
        std::ops::ControlFlow::Continue(())
    };
    served.log.reader().leaves(Seq(1), each).expect("readable");
    assert_eq!(all.iter().map(|event| event["leafhash"].as_str().expect("text").to_owned()).collect::<Vec<_>>(), leaves);
}

#[tokio::test]
async fn a_filter_takes_a_subject_and_kinds() {
    let mut served = Served::new().await;
    served.say(&["app/acme/bot", "app/acme/bee", "app/acme/bot"]);
    let of = async |query: &str| sequences(&events(&whole(served.address, &format!("/v1/events?{query}"), "").await));
    assert_eq!(of("subject=app/acme/bot").await, [2, 4]);
    assert_eq!(of("kind=operator.said").await, [2, 3, 4]);
    assert_eq!(of("kind=LogRestarted,PodSeen").await, [1]);
    assert_eq!(of("limit=2").await, [1, 2]);
    assert_eq!(of(&format!("after={}", served.id(2))).await, [3, 4]);
}

fn member(answer: &Answer, name: &str) -> String {
    let problem: Value = serde_json::from_slice(&answer.body).expect("JSON");
    problem[name].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn each_cursor_has_its_answer() {
    let mut served = Served::new().await;
    served.say(&["app/acme/bot"; 4]);
    let other = RecordId { log: LogId([7; 16]), seq: Seq(3) };
    let ask = async |cursor: &str| get(served.address, &format!("/v1/events?after={cursor}"), "").await;
    for bad in ["-1", "words", "18446744073709551616", &format!("{}:18446744073709551616", other.log), &format!("{}:-1", other.log)] {
        let answer = ask(bad).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_cursor"), "{bad}");
    }
    assert_eq!(events(&whole(served.address, &format!("/v1/events?after={}", served.id(5)), "").await).len(), 0, "at the head");
    let answer = ask(&served.id(6)).await;
    assert_eq!((answer.status, answer.code().as_str(), member(&answer, "head")), (409, "ahead", served.id(5)));
    let answer = ask(&other.to_string()).await;
    assert_eq!((answer.status, answer.code().as_str(), member(&answer, "start")), (409, "other_log", served.id(0)));
    for query in ["limit=0", "limit=x", "follow=2", "include=all", "kind=Nothing", "subject=x", "what=1", "limit=1&limit=2"] {
        let answer = get(served.address, &format!("/v1/events?{query}"), "").await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_query"), "{query}");
    }
    let answer = get(served.address, "/v1/events", "Accept: text/html\r\n").await;
    assert_eq!((answer.status, answer.code().as_str()), (406, "not_acceptable"));
}

#[tokio::test]
async fn what_aged_out_is_told_in_each_form() {
    let mut served = Served::new().await;
    for _ in 0..40 {
        served.say(&["app/acme/bot"]);
    }
    while served.log.remove(Seq(20)).expect("removed").is_some() {}
    let kept = served.log.reader().removed().expect("some are gone").kept.0;
    let (before, minimum) = (served.id(3), served.id(kept - 1));
    for accept in ["application/x-ndjson", "application/cloudevents-batch+json"] {
        let answer = get(served.address, &format!("/v1/events?after={before}"), &format!("Accept: {accept}\r\n")).await;
        assert_eq!((answer.status, answer.code().as_str()), (410, "aged_out"));
        assert_eq!((member(&answer, "requested"), member(&answer, "minimum")), (before.clone(), minimum.clone()));
    }
    let all = events(&whole(served.address, "/v1/events", "").await);
    assert_eq!(sequences(&all)[0], kept, "who asks for all gets what is left");
    let mut stream = open(served.address, &format!("/v1/events?after={before}"), "Accept: text/event-stream\r\n").await;
    let mut text = chunk(&mut stream).await.expect("the gap");
    text += &chunk(&mut stream).await.expect("a page");
    let gap = format!("event: gap\ndata: {{\"minimum\":\"{minimum}\",\"requested\":\"{before}\"}}\n\nid: {}\n", served.id(kept));
    assert!(text.contains(&gap), "{text}");
}

#[tokio::test]
async fn a_browser_that_comes_again_goes_on_where_it_was() {
    let mut served = Served::new().await;
    served.say(&["app/acme/bot"; 5]);
    let (first, last) = (served.id(1), served.id(4));
    let headers = format!("Accept: text/event-stream\r\nLast-Event-ID: {last}\r\n");
    let mut stream = open(served.address, &format!("/v1/events?lastEventId={first}"), &headers).await;
    assert_eq!(chunk(&mut stream).await.as_deref(), Some(":\n\n"));
    let page = chunk(&mut stream).await.expect("a page");
    assert!(page.starts_with(&format!("id: {}\ndata: {{", served.id(5))), "{page}");
    served.say(&["app/acme/bot"]);
    let page = chunk(&mut stream).await.expect("what came since");
    assert!(page.starts_with(&format!("id: {}\ndata: {{", served.id(7))), "{page}");
}

#[tokio::test]
async fn a_filtered_stream_tells_its_position() {
    let mut served = Served::new().await;
    served.say(&["app/acme/bot"; 3]);
    let mut stream = open(served.address, "/v1/events?kind=PodSeen", "Accept: text/event-stream\r\n").await;
    assert_eq!(chunk(&mut stream).await.as_deref(), Some(":\n\n"));
    assert_eq!(chunk(&mut stream).await, Some(format!("id: {}\n\n", served.id(4))));
}

#[tokio::test]
async fn a_batch_is_waited_for_and_then_empty() {
    let mut served = Served::new().await;
    served.say(&["app/acme/bot"; 3]);
    let accept = "Accept: application/cloudevents-batch+json\r\n";
    let answer = get(served.address, "/v1/events?limit=2", accept).await;
    assert!(answer.head.contains("content-type: application/cloudevents-batch+json"), "{}", answer.head);
    let batch: Vec<Value> = serde_json::from_slice(&answer.body).expect("an array");
    assert_eq!(sequences(&batch), [1, 2]);
    assert!(answer.head.contains(&format!("wharf-position: {}", served.id(2))), "{}", answer.head);
    let answer = get(served.address, &format!("/v1/events?after={}&timeout=1", served.id(4)), accept).await;
    assert_eq!(answer.body, b"[]");
    let path = format!("/v1/events?after={}&timeout=60000", served.id(4));
    let (address, waiting) = (served.address, Arc::clone(&served.readers));
    let asked = tokio::spawn(async move { get(address, &path, accept).await });
    let all = waiting.available_permits();
    while waiting.available_permits() == all {
        tokio::task::yield_now().await;
    }
    served.say(&["app/acme/bot"]);
    let batch: Vec<Value> = serde_json::from_slice(&asked.await.expect("answered").body).expect("an array");
    assert_eq!(sequences(&batch), [5]);
}

#[tokio::test]
async fn what_tenants_wrote_is_delivered_without_it() {
    let mut served = Served::new().await;
    let of = TailOf {
        host: HostName::new("bot-r1").expect("a name"),
        uid: Uid::new("u").expect("a uid"),
        container: Word::new("app"),
        ended: true,
    };
    served.append("app/acme/bot", Event::TailText(TailText { of, part: 0, text: "my secret diary".to_owned() }));
    let text = whole(served.address, "/v1/events", "").await;
    assert!(!text.contains("diary"), "{text}");
    let event = &events(&text)[1];
    assert_eq!((&event["withheld"], event.get("data"), &event["correlationid"]), (&"tails".into(), None, &"bot-r1".into()));
    let answer = get(served.address, "/v1/events?include=tails", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (403, "forbidden"));
}

#[tokio::test]
async fn past_the_limit_a_reader_is_told_to_come_again() {
    let served = Served::new().await;
    let all = served.readers.clone().try_acquire_many_owned(u32::try_from(super::READERS).expect("small")).expect("free");
    let answer = get(served.address, "/v1/events", "").await;
    assert_eq!((answer.status, answer.code().as_str()), (503, "too_many_readers"));
    assert!(answer.head.contains("retry-after: "), "{}", answer.head);
    drop(all);
    assert_eq!(events(&whole(served.address, "/v1/events", "").await).len(), 1);
    assert_eq!(served.readers.available_permits(), super::READERS, "a place is given back");
}

/// What a reader has that is cut off again and again, and goes on from what it has, until the log is `last` long.
async fn cut_off_again_and_again(
    address: SocketAddr,
    form: &'static str,
    query: &'static str,
    entropy: Entropy,
    last: String,
) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), String::new());
    while after != last {
        let path = if after.is_empty() { format!("/v1/events?{query}") } else { format!("/v1/events?after={after}&{query}") };
        let mut stream = open(address, &path, &format!("Accept: {form}\r\n")).await;
        let chunks = entropy.bytes::<1>()[0] % 3 + 1;
        for _ in 0..chunks {
            let Ok(Some(text)) = tokio::time::timeout(Duration::from_secs(20), chunk(&mut stream)).await else { break };
            for line in text.lines() {
                if let Some(id) = line.strip_prefix("id: ") {
                    after = id.to_owned();
                } else if let Some(event) = line.strip_prefix("data: ").or(line.starts_with('{').then_some(line)) {
                    let event: Value = serde_json::from_str(event).expect("JSON");
                    after = event["id"].as_str().expect("text").to_owned();
                    ids.push(after.clone());
                }
            }
        }
    }
    ids
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_union_of_what_cut_off_readers_have_is_the_log() {
    const RECORDS: u64 = 3_000;
    let mut served = Served::new().await;
    let (address, last) = (served.address, served.id(RECORDS + 1));
    let forms = ["application/x-ndjson", "text/event-stream"];
    let reader = |form, query, seed| tokio::spawn(cut_off_again_and_again(address, form, query, Entropy::seeded(seed), last.clone()));
    let all: Vec<_> = (0..4).map(|seed| reader(forms[seed as usize % 2], "follow=1", seed)).collect();
    let filtered = reader(forms[1], "kind=OperatorSaid", 9);
    for _ in 0..RECORDS {
        served.say(&["app/acme/bot"]);
        tokio::task::yield_now().await;
    }
    let expected: Vec<String> = (1..=RECORDS + 1).map(|seq| served.id(seq)).collect();
    for reader in all {
        assert_eq!(reader.await.expect("it read on"), expected);
    }
    assert_eq!(filtered.await.expect("it read on"), expected[1..]);
}
