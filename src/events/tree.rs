//! The Merkle tree of a log id, as RFC 6962 defines it, kept as its frontier: it grows by one leaf at a time and forgets the
//! leaves. Knows nothing of records beyond the two hashes that make a leaf.

use sha2::{Digest as _, Sha256};

/// A SHA-256 value: a leaf, a node or a root.
pub type Hash = [u8; 32];

/// The root of a tree without leaves: SHA-256 of nothing.
pub const EMPTY_ROOT: Hash = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b,
    0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// How many leaves a tree has, and its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeHead {
    /// Leaves.
    pub size: u64,
    /// The root; [`EMPTY_ROOT`] without leaves.
    pub root: Hash,
}

/// What of a record is secret and can be erased: SHA-256 of the salt and the payload.
#[must_use]
pub fn body_digest(salt: &[u8; 16], payload: &[u8]) -> Hash {
    Sha256::new().chain_update(salt).chain_update(payload).finalize().into()
}

/// The same of both, one behind the other.
#[must_use]
pub fn digest(salted: &[u8]) -> Hash {
    Sha256::digest(salted).into()
}

/// A record's leaf: SHA-256 of 0x00, the header's bytes, and the body's digest.
#[must_use]
pub fn leaf(header: &[u8], body: &Hash) -> Hash {
    Sha256::new().chain_update([0x00]).chain_update(header).chain_update(body).finalize().into()
}

/// An inner node: SHA-256 of 0x01 and its two children.
#[must_use]
pub fn node(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([0x01]).chain_update(left).chain_update(right).finalize().into()
}

/// A tree that can still grow. At most 64 hashes, whatever its size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    size: u64,
    /// The roots of the perfect subtrees that the size's set bits stand for, the largest first.
    frontier: Vec<Hash>,
}

impl Tree {
    /// From a stored frontier; `None` when it is not one of a tree of that size.
    #[must_use]
    pub fn from_frontier(size: u64, frontier: Vec<Hash>) -> Option<Self> {
        (usize::try_from(size.count_ones()) == Ok(frontier.len())).then_some(Self { size, frontier })
    }

    /// Leaves so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The roots of its perfect subtrees, the largest first: all that is needed to go on.
    #[must_use]
    pub fn frontier(&self) -> &[Hash] {
        &self.frontier
    }

    /// Adds a leaf at the right.
    pub fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        for _ in 0..self.size.trailing_ones() {
            let left = self.frontier.pop().expect("a set bit of the size has its subtree in the frontier");
            hash = node(&left, &hash);
        }
        self.frontier.push(hash);
        self.size += 1;
    }

    /// The root over all leaves.
    #[must_use]
    pub fn root(&self) -> Hash {
        self.frontier.iter().rev().copied().reduce(|right, left| node(&left, &right)).unwrap_or(EMPTY_ROOT)
    }

    /// Size and root.
    #[must_use]
    pub fn head(&self) -> TreeHead {
        TreeHead { size: self.size, root: self.root() }
    }
}

#[cfg(test)]
mod tests {
    use ct_merkle::mem_backed_tree::MemoryBackedTree;

    use super::*;
    use crate::ids::hex;

    /// The definition in RFC 6962, 2.1, word for word.
    fn recursive(leaves: &[Hash]) -> Hash {
        match leaves {
            [] => Sha256::digest([]).into(),
            [one] => *one,
            _ => {
                let split = leaves.len().next_power_of_two() / 2;
                node(&recursive(&leaves[..split]), &recursive(&leaves[split..]))
            }
        }
    }

    #[test]
    fn every_root_is_the_one_of_the_definition_and_of_another_program() {
        let mut tree = Tree::default();
        let mut leaves = Vec::new();
        let mut other = MemoryBackedTree::<Sha256, Vec<u8>>::new();
        assert_eq!(tree.root(), recursive(&leaves));
        for number in 0..300_u32 {
            let item = number.to_le_bytes().repeat(number as usize % 7);
            let hash = leaf(&item, &[7; 32]);
            tree.push(hash);
            leaves.push(hash);
            other.push([item.as_slice(), &[7; 32]].concat());
            assert_eq!(tree.root(), recursive(&leaves), "{number}");
            assert_eq!(tree.root().as_slice(), other.root().as_bytes().as_slice(), "{number}");
            let again = Tree::from_frontier(tree.size(), tree.frontier().to_vec()).expect("its own frontier");
            assert_eq!(again, tree);
        }
        assert_eq!(Tree::from_frontier(3, vec![[0; 32]]), None);
    }

    #[test]
    fn the_reference_roots_of_certificate_transparency_hold() {
        let inputs: [&[u8]; 8] = [
            &[],
            &[0x00],
            &[0x10],
            &[0x20, 0x21],
            &[0x30, 0x31],
            &[0x40, 0x41, 0x42, 0x43],
            &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
            &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
        ];
        let roots = [
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        let mut tree = Tree::default();
        for (input, root) in inputs.iter().zip(roots) {
            tree.push(Sha256::new().chain_update([0x00]).chain_update(input).finalize().into());
            assert_eq!(hex(&tree.root()), root);
        }
    }
}
