//! Full blocks become what is stored: their records' leaves, their place in the tree, their checksum, and the form in which the store
//! keeps them. Where a commit has several, that is done on a thread of its own while the next one is filled. Knows no store and no
//! payload; what comes out is the same with and without that thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::block::BlockWriter;
use super::frame;
use super::tree::{Hash, Tree};
use crate::ids::Seq;

/// What a store makes of a block before it keeps it.
pub(super) type Pack = fn(Vec<u8>) -> Vec<u8>;

/// Blocks that may wait for the thread. Past it whoever fills the blocks hashes their leaves too, instead of waiting at the end.
const BEHIND: usize = 1;

/// A block that is ready to be stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    /// Its first record, and its key.
    pub(super) key: Seq,
    /// What is stored.
    pub(super) value: Vec<u8>,
    /// The length of the block as it is, bytes.
    pub(super) length: usize,
}

/// A block that is full, and its leaves where they are known already.
struct Full {
    block: BlockWriter,
    leaves: Option<Vec<Hash>>,
}

fn leaves(block: &BlockWriter) -> Vec<Hash> {
    block.frames().map(frame::leaf_of_whole).collect()
}

impl Full {
    fn seal(self, tree: &mut Tree, pack: Pack) -> Sealed {
        let Self { block, leaves: known } = self;
        let before = tree.head();
        known.unwrap_or_else(|| leaves(&block)).into_iter().for_each(|leaf| tree.push(leaf));
        let (key, bytes) = (block.first(), block.finish_behind(before));
        let length = bytes.len();
        Sealed { key, value: pack(bytes), length }
    }
}

/// Seals the blocks of one commit after the other.
pub(super) struct Sealer {
    pack: Pack,
    /// Made when it is needed for the first time, ended with this.
    worker: Option<Worker>,
}

impl Sealer {
    /// For a store that keeps blocks so.
    pub(super) fn new(pack: Pack) -> Self {
        Self { pack, worker: None }
    }

    /// Begins a commit, behind that tree.
    pub(super) fn begin(&mut self, tree: Tree) -> Sealing<'_> {
        Sealing { sealer: self, tree: Some(tree), sealed: Vec::new(), waiting: None }
    }
}

/// The blocks of a commit. One that is dropped unended leaves nothing behind.
pub(super) struct Sealing<'a> {
    sealer: &'a mut Sealer,
    /// `None`: the thread has it.
    tree: Option<Tree>,
    /// Where there is no thread.
    sealed: Vec<Sealed>,
    /// Kept until it is known whether another one follows: for one alone no thread is woken.
    waiting: Option<BlockWriter>,
}

impl Sealing<'_> {
    /// Adds the next block.
    pub(super) fn add(&mut self, block: BlockWriter) {
        if let Some(before) = self.waiting.replace(block) {
            self.hand_over(before);
        }
    }

    fn hand_over(&mut self, block: BlockWriter) {
        if self.sealer.worker.is_none() {
            self.sealer.worker = Worker::start(self.sealer.pack);
        }
        let Some(worker) = &self.sealer.worker else { return self.seal_here(block) };
        if let Some(tree) = self.tree.take() {
            worker.send(Job::Begin(tree));
        }
        let behind = worker.behind.fetch_add(1, Ordering::Relaxed);
        let leaves = (behind > BEHIND).then(|| leaves(&block));
        worker.send(Job::Seal(Full { block, leaves }));
    }

    fn seal_here(&mut self, block: BlockWriter) {
        let tree = self.tree.as_mut().expect("the thread has it, and there is none");
        self.sealed.push(Full { block, leaves: None }.seal(tree, self.sealer.pack));
    }

    /// All of them in their order, and the tree behind them.
    pub(super) fn end(mut self) -> (Tree, Vec<Sealed>) {
        if let Some(last) = self.waiting.take() {
            if self.tree.is_some() { self.seal_here(last) } else { self.hand_over(last) }
        }
        match self.tree {
            Some(tree) => (tree, self.sealed),
            None => self.sealer.worker.as_ref().expect("it has the tree").end(),
        }
    }
}

enum Job {
    Begin(Tree),
    Seal(Full),
    End,
}

struct Worker {
    jobs: Sender<Job>,
    ended: Receiver<(Tree, Vec<Sealed>)>,
    /// Blocks that are not sealed yet.
    behind: Arc<AtomicUsize>,
}

const GONE: &str = "it ends when nobody asks it any more";

impl Worker {
    /// `None` when no thread can be made.
    fn start(pack: Pack) -> Option<Self> {
        let ((jobs, asked), (answer, ended)) = (channel(), channel());
        let behind = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&behind);
        let thread = thread::Builder::new().name("sealer".to_owned());
        thread.spawn(move || work(pack, &asked, &answer, &counted)).ok()?;
        Some(Self { jobs, ended, behind })
    }

    fn send(&self, job: Job) {
        self.jobs.send(job).expect(GONE);
    }

    fn end(&self) -> (Tree, Vec<Sealed>) {
        self.send(Job::End);
        self.ended.recv().expect(GONE)
    }
}

fn work(pack: Pack, jobs: &Receiver<Job>, ended: &Sender<(Tree, Vec<Sealed>)>, behind: &AtomicUsize) {
    let (mut tree, mut sealed) = (Tree::default(), Vec::new());
    for job in jobs {
        match job {
            // What is left of one that was given up goes.
            Job::Begin(before) => (tree, sealed) = (before, Vec::new()),
            Job::Seal(full) => {
                sealed.push(full.seal(&mut tree, pack));
                behind.fetch_sub(1, Ordering::Relaxed);
            }
            Job::End => {
                if ended.send((std::mem::take(&mut tree), std::mem::take(&mut sealed))).is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::block::{Block, BlockHead};
    use crate::events::record::{Header, Kind};
    use crate::ids::{LogId, Subject};

    /// Blocks of so many records each, and what their leaves are.
    fn blocks(records: &[u64]) -> (Vec<BlockWriter>, Vec<Hash>) {
        let (mut blocks, mut leaves, mut next) = (Vec::new(), Vec::new(), 1);
        for count in records {
            let before = Tree::default().head();
            let mut block = BlockWriter::new(BlockHead { log: LogId([7; 16]), first: Seq(next), previous: Seq(next - 1), before });
            for seq in next..next + count {
                let header = Header {
                    kind: Kind::OperatorSaid.number(),
                    kind_version: 1,
                    rules: 1,
                    seq: Seq(seq),
                    subject: Subject::daemon("prod").expect("a name"),
                    subject_seq: seq,
                    time_us: 1,
                    reaction: Seq(seq),
                    cause: Seq::NONE,
                    settings: Seq::NONE,
                };
                leaves.push(block.push_written(|out| frame::write(&header, "daemon/prod", 0, &[9; 16], &seq.to_le_bytes(), out)));
            }
            next += count;
            blocks.push(block);
        }
        (blocks, leaves)
    }

    #[test]
    fn with_and_without_a_thread_blocks_are_in_their_order_and_place() {
        let mut sealer = Sealer::new(|block| block);
        let mut tree = Tree::default();
        for counts in [&[][..], &[3], &[1, 2], &[5, 1, 40, 2, 2, 2, 7, 100], &[1]] {
            let (given, leaves) = blocks(counts);
            let mut sealing = sealer.begin(tree.clone());
            given.into_iter().for_each(|block| sealing.add(block));
            let (after, sealed) = sealing.end();
            let mut at = 0;
            for (sealed, count) in sealed.iter().zip(counts) {
                let block = Block::read(&sealed.value).expect("sound");
                assert_eq!((block.head.first, block.head.before, block.count()), (sealed.key, tree.head(), *count));
                assert_eq!(sealed.length, sealed.value.len());
                leaves[at..at + *count as usize].iter().for_each(|leaf| tree.push(*leaf));
                at += *count as usize;
            }
            assert_eq!((sealed.len(), &after), (counts.len(), &tree));
        }
    }

    #[test]
    fn what_was_given_up_is_in_no_later_commit() {
        let mut sealer = Sealer::new(|block| block);
        let mut sealing = sealer.begin(Tree::default());
        blocks(&[4, 4, 4]).0.into_iter().for_each(|block| sealing.add(block));
        drop(sealing);
        let mut sealing = sealer.begin(Tree::default());
        let (given, leaves) = blocks(&[2, 2]);
        given.into_iter().for_each(|block| sealing.add(block));
        let (tree, sealed) = sealing.end();
        let mut expected = Tree::default();
        leaves.into_iter().for_each(|leaf| expected.push(leaf));
        assert_eq!((tree, sealed.len()), (expected, 2));
    }
}
