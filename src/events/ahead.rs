//! Reading ahead on a thread of its own: what a walk costs the store is paid beside what its visitor computes. Knows no store.

use std::io;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// How many things are handed over at once: a thread that waits is woken for all of them together.
const TOGETHER: usize = 8;

/// How many such lots are ready at most.
const READY: usize = 4;

/// Writes one thing into a place that may hold an earlier one.
pub(super) type Put<'a, T> = dyn FnMut(&mut T) + 'a;

/// Takes what is read, one after the other, and may end it.
pub(super) type Take<'a, T> = dyn FnMut(&mut Put<'_, T>) -> ControlFlow<()> + 'a;

/// Visits what `read` gives, in its order, while `read` is already further on a thread of its own; without one when none can be made.
///
/// # Errors
/// Those of `read`, after everything that it gave before was visited. What panics in `read` panics here.
pub(super) fn read_ahead<T: Default + Send>(
    read: impl Fn(&mut Take<'_, T>) -> io::Result<()> + Sync,
    visit: &mut dyn FnMut(&T) -> ControlFlow<()>,
) -> io::Result<()> {
    let (ready, lots) = sync_channel(READY);
    // Places go back and are used again: they are large, and new memory has to be zeroed.
    let (give_back, used) = sync_channel(READY + 2);
    let read = &read;
    thread::scope(|scope| {
        let reading = thread::Builder::new().name("read ahead".to_owned());
        let reading = reading.spawn_scoped(scope, move || hand_over(read, &ready, &used));
        let Ok(reading) = reading else {
            let mut place = T::default();
            return read(&mut |put| {
                put(&mut place);
                visit(&place)
            });
        };
        take(lots, &give_back, visit);
        reading.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    })
}

/// Places, the first of which hold something.
struct Lot<T> {
    places: Vec<T>,
    held: usize,
}

impl<T: Default> Lot<T> {
    fn of(used: &Receiver<Self>) -> Self {
        used.try_recv().map_or_else(|_| Self { places: Vec::with_capacity(TOGETHER), held: 0 }, |lot| Self { held: 0, ..lot })
    }

    fn next_place(&mut self) -> &mut T {
        if self.held == self.places.len() {
            self.places.push(T::default());
        }
        self.held += 1;
        &mut self.places[self.held - 1]
    }
}

/// Until all is read, or nobody takes it any more.
fn hand_over<T: Default>(
    read: impl Fn(&mut Take<'_, T>) -> io::Result<()>,
    ready: &SyncSender<Lot<T>>,
    used: &Receiver<Lot<T>>,
) -> io::Result<()> {
    let mut lot = Lot::of(used);
    let ended = read(&mut |put| {
        put(lot.next_place());
        let taken = lot.held < TOGETHER || ready.send(std::mem::replace(&mut lot, Lot::of(used))).is_ok();
        if taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    // Where nobody takes it, nobody misses it.
    let _ = ready.send(lot);
    ended
}

/// Until the visitor has had enough: then the channel is closed.
fn take<T>(lots: Receiver<Lot<T>>, give_back: &SyncSender<Lot<T>>, visit: &mut dyn FnMut(&T) -> ControlFlow<()>) {
    for lot in lots {
        if lot.places[..lot.held].iter().try_for_each(&mut *visit).is_break() {
            return;
        }
        // One too many is dropped.
        let _ = give_back.try_send(lot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers up to that one, then an error.
    fn numbers(end: u64) -> impl Fn(&mut Take<'_, u64>) -> io::Result<()> + Sync {
        move |take| {
            for number in 0..end {
                if take(&mut |place| *place = number).is_break() {
                    return Ok(());
                }
            }
            Err(io::Error::from(io::ErrorKind::UnexpectedEof))
        }
    }

    #[test]
    fn all_of_it_comes_in_order_and_then_the_error() {
        for end in [0, 1, 8, 9, 1_000] {
            let mut seen = Vec::new();
            let read = read_ahead(numbers(end), &mut |number| {
                seen.push(*number);
                ControlFlow::Continue(())
            });
            assert_eq!(seen, (0..end).collect::<Vec<_>>());
            assert_eq!(read.map_err(|error| error.kind()), Err(io::ErrorKind::UnexpectedEof));
        }
    }

    #[test]
    fn it_ends_where_the_visitor_ends_it() {
        let mut seen = 0;
        let read = read_ahead(numbers(u64::MAX), &mut |number| {
            seen = *number;
            if *number < 20 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        assert_eq!((seen, read.is_ok()), (20, true));
    }

    #[test]
    fn what_panics_while_it_reads_panics_where_it_is_read() {
        let read = |take: &mut Take<'_, u64>| {
            let _ = take(&mut |place| *place = 1);
            std::panic::panic_any("no store");
        };
        let panicked = std::panic::catch_unwind(|| read_ahead(read, &mut |_| ControlFlow::Continue(())));
        assert!(panicked.is_err());
    }
}
