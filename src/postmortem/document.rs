//! A state whole, as JSON: what the fold holds, field by field. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::app;
use crate::app::state::App;
use crate::events::kinds::carried::CarriedTail;
use crate::events::kinds::tail::TailOf;
use crate::events::words::readable;
use crate::session;
use crate::session::state::Session;
use crate::subject::stored::Stored;

/// A state that can be shown whole.
pub trait Documented: Stored {
    /// As JSON; what has no name of its own is named by what it is about.
    fn document(&self) -> Value;
}

impl Documented for App {
    fn document(&self) -> Value {
        let mut state = app::carry::carried(self);
        let tails: Vec<_> = state.hosts.iter_mut().map(|(host, known)| (host.clone(), std::mem::take(&mut known.tails))).collect();
        let mut document = whole(&state);
        for (host, tails) in tails {
            document["hosts"][host.as_str()]["tails"] = named(tails);
        }
        readable("", document)
    }
}

impl Documented for Session {
    fn document(&self) -> Value {
        let mut state = session::carry::carried(self);
        let (tails, hindrances) = (std::mem::take(&mut state.tails), std::mem::take(&mut state.hindrances));
        let mut document = whole(&state);
        document["tails"] = named(tails);
        let hindrance = |((object, doing), hindrance)| (format!("{doing:?} {object:?}"), whole(&hindrance));
        document["hindrances"] = hindrances.into_iter().map(hindrance).collect();
        readable("", document)
    }
}

fn whole<T: Serialize>(state: &T) -> Value {
    serde_json::to_value(state).expect("every other key is a name or a number")
}

/// What is known of containers' lines, by the container's and the pod's name.
fn named(tails: BTreeMap<TailOf, CarriedTail>) -> Value {
    let named = tails.into_iter().map(|(of, tail)| {
        let last = if of.ended { "last" } else { "running" };
        (format!("{} of {} ({last})", of.container, of.uid.as_str()), whole(&tail))
    });
    named.collect()
}
