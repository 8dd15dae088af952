//! Inclusion and consistency proofs of RFC 6962, 2.1, made and checked. Knows hashes and positions, not where leaves come from.
//!
//! A proof is a list of roots of subtrees. Which subtrees is a matter of numbers alone, so that is asked first
//! ([`inclusion`], [`consistency`]) and whoever holds the leaves answers with the roots. Checking follows RFC 9162, 2.1.3.2 and
//! 2.1.4.2, whose algorithms are the same trees'.

use std::ops::Range;

use crate::events::tree::{EMPTY_ROOT, Hash, TreeHead, node};

/// No proof is longer: a tree of 2^64 leaves has that many levels, and a consistency proof one hash more.
pub const PROOF_MAX: usize = 65;

/// A proof that does not prove what it is offered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadProof {
    /// The numbers are none of a proof: a leaf outside the tree, or a tree that would have to shrink.
    #[error("no proof can be of these sizes")]
    Sizes,
    /// It has too many or too few hashes.
    #[error("the proof has another length than its sizes ask for")]
    Length,
    /// It leads to another root.
    #[error("the proof leads to another root")]
    Root,
}

/// The subtrees, as ranges of leaves and in the proof's order, whose roots prove that the leaf at `index` is in the tree of the
/// first `size` leaves. `None` when it is outside.
#[must_use]
pub fn inclusion(index: u64, size: u64) -> Option<Vec<Range<u64>>> {
    if index >= size {
        return None;
    }
    let (mut from, mut to) = (0, size);
    let mut path = Vec::new();
    while to - from > 1 {
        let middle = from + split(to - from);
        if index < middle {
            path.push(middle..to);
            to = middle;
        } else {
            path.push(from..middle);
            from = middle;
        }
    }
    path.reverse();
    Some(path)
}

/// The subtrees whose roots prove that the tree of the first `second` leaves begins with that of the first `first`. `None` when
/// it is smaller. Nothing is needed when they are equal, or the first is empty.
#[must_use]
pub fn consistency(first: u64, second: u64) -> Option<Vec<Range<u64>>> {
    if first > second {
        return None;
    }
    if first == 0 || first == second {
        return Some(Vec::new());
    }
    let (mut from, mut to) = (0, second);
    let mut path = Vec::new();
    while to != first {
        let middle = from + split(to - from);
        if first <= middle {
            path.push(middle..to);
            to = middle;
        } else {
            path.push(from..middle);
            from = middle;
        }
    }
    // The old tree itself is known to whoever checks; a subtree of it is not.
    if from > 0 {
        path.push(from..to);
    }
    path.reverse();
    Some(path)
}

/// The greatest power of two below `size`, which is at least 2.
fn split(size: u64) -> u64 {
    1 << (u64::BITS - 1 - (size - 1).leading_zeros())
}

/// Checks that `leaf` is at `index` in the tree of that head.
///
/// # Errors
/// Any [`BadProof`].
pub fn check_inclusion(leaf: &Hash, index: u64, tree: &TreeHead, proof: &[Hash]) -> Result<(), BadProof> {
    if index >= tree.size {
        return Err(BadProof::Sizes);
    }
    let mut edge = Edge { at: index, last: tree.size - 1 };
    let mut root = *leaf;
    for hash in proof {
        root = if edge.is_right()? { node(hash, &root) } else { node(&root, hash) };
        edge.climb();
    }
    if edge.last != 0 {
        return Err(BadProof::Length);
    }
    if root == tree.root { Ok(()) } else { Err(BadProof::Root) }
}

/// Checks that the tree of `second` begins with all leaves of `first`, unchanged and in their places.
///
/// # Errors
/// Any [`BadProof`].
pub fn check_consistency(first: &TreeHead, second: &TreeHead, proof: &[Hash]) -> Result<(), BadProof> {
    if first.size > second.size {
        return Err(BadProof::Sizes);
    }
    if first.size == 0 || first.size == second.size {
        let known = if first.size == 0 { EMPTY_ROOT } else { second.root };
        return match (proof.is_empty(), first.root == known) {
            (false, _) => Err(BadProof::Length),
            (true, false) => Err(BadProof::Root),
            (true, true) => Ok(()),
        };
    }
    let mut edge = Edge { at: first.size - 1, last: second.size - 1 };
    while edge.at & 1 == 1 {
        edge.up();
    }
    // A perfect old tree is its own first subtree, and is left out of the proof.
    let own = if first.size.is_power_of_two() { &[first.root][..] } else { &[] };
    let mut hashes = own.iter().chain(proof);
    let begin = hashes.next().ok_or(BadProof::Length)?;
    let (mut old, mut new) = (*begin, *begin);
    for hash in hashes {
        if edge.is_right()? {
            (old, new) = (node(hash, &old), node(hash, &new));
        } else {
            new = node(&new, hash);
        }
        edge.climb();
    }
    if edge.last != 0 {
        return Err(BadProof::Length);
    }
    if (old, new) == (first.root, second.root) { Ok(()) } else { Err(BadProof::Root) }
}

/// A node and the last node of its level, while a proof climbs from the leaves to the root.
struct Edge {
    at: u64,
    last: u64,
}

impl Edge {
    /// Whether what the proof gives next stands to the left of this node.
    fn is_right(&self) -> Result<bool, BadProof> {
        if self.last == 0 { Err(BadProof::Length) } else { Ok(self.at & 1 == 1 || self.at == self.last) }
    }

    /// To the level of what the proof gives next: a last node without a sibling is its own parent.
    fn climb(&mut self) {
        if self.at == self.last {
            while self.at & 1 == 0 && self.at != 0 {
                self.up();
            }
        }
        self.up();
    }

    fn up(&mut self) {
        self.at >>= 1;
        self.last >>= 1;
    }
}
