//! What an operator has a running daemon erase.

use super::support::Town;
use crate::events::erase::NotErased;
use crate::events::kinds::operator::RecordErased;
use crate::events::record::Event;
use crate::events::stored::Body;
use crate::http::erase::{Refused, Wanted};
use crate::http::log::LogView as _;
use crate::ids::{Seq, Word};
use crate::run::Window;

#[tokio::test(start_paused = true)]
async fn the_daemon_goes_on_behind_what_it_erases_and_after_its_end_nothing_is_erased() {
    let mut town = Town::new().await;
    town.start().await;
    let window = Window::new(&town.outside.settings, town.outside.clock.clone(), town.outside.metrics.clone());
    let host = town.live_app("acme/bot").await;
    let records = town.records_of("acme/bot");
    let seq = records.iter().find(|record| matches!(record.event, Event::ApiCalled(_))).expect("it was called").header.seq;
    let wanted = Wanted { seq, who: Word::new("on-call"), why: "asked for".to_owned() };
    assert!(matches!(window.erase(wanted.clone()).await, Err(Refused::NoLog)), "nothing runs behind the window yet");

    window.show_committer(town.live().committer());
    let erased = window.erase(wanted.clone()).await.expect("erased");
    let reader = town.live().reader().clone();
    let body = |seq| reader.record(Seq(seq)).expect("read").expect("there").expect("sound").body;
    assert_eq!(body(seq.0), Body::Withheld);
    let Body::Known(Event::RecordErased(RecordErased { record, who, .. })) = body(erased.recorded) else { panic!("it is recorded") };
    assert_eq!((record.seq, who.as_str(), erased.archived.len()), (seq, "on-call", 0));
    assert!(matches!(window.erase(wanted.clone()).await, Err(Refused::Log(NotErased::Already(_)))));
    town.world.nodes.kill_app(&host, 1);
    town.run(60).await;
    assert!(town.is_live("acme/bot", &host), "it is revived");

    drop(reader);
    town.stop().await;
    assert!(matches!(window.erase(wanted).await, Err(Refused::NoLog)));
}
