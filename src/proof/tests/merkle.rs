//! Proofs against Certificate Transparency's own vectors and against another program's, and what is changed in one.

use ct_merkle::mem_backed_tree::MemoryBackedTree;
use ct_merkle::{ConsistencyProof, InclusionProof, RootHash};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::events::tree::{Hash, Tree, TreeHead, node};
use crate::ids::unhex;
use crate::proof::merkle::{BadProof, PROOF_MAX, check_consistency, check_inclusion, consistency, inclusion};

fn hash(hex: &str) -> Hash {
    unhex(hex).expect("hex").try_into().expect("32 bytes")
}

fn leaf_of(item: &[u8]) -> Hash {
    Sha256::new().chain_update([0x00]).chain_update(item).finalize().into()
}

fn head(leaves: &[Hash]) -> TreeHead {
    let mut tree = Tree::default();
    leaves.iter().for_each(|leaf| tree.push(*leaf));
    tree.head()
}

fn roots(leaves: &[Hash], ranges: Vec<std::ops::Range<u64>>) -> Vec<Hash> {
    let root = |range: std::ops::Range<u64>| head(&leaves[range.start as usize..range.end as usize]).root;
    ranges.into_iter().map(root).collect()
}

/// The eight leaves of the reference tree.
fn reference() -> Vec<Hash> {
    ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
        .map(|item| leaf_of(&unhex(item).expect("hex")))
        .to_vec()
}

const L0_0: &str = "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";
const L0_1: &str = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
const L0_4: &str = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
const L1_0: &str = "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125";
const L1_1: &str = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
const L1_2: &str = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";
const L1_3: &str = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";
const L2_0: &str = "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7";
const L2_1: &str = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";

#[test]
fn the_reference_proofs_of_certificate_transparency_hold() {
    let leaves = reference();
    let paths: [(u64, u64, &[&str]); 5] =
        [(0, 1, &[]), (0, 8, &[L0_1, L1_1, L2_1]), (5, 8, &[L0_4, L1_3, L2_0]), (2, 3, &[L1_0]), (1, 5, &[L0_0, L1_1, L0_4])];
    for (index, size, expected) in paths {
        let expected: Vec<Hash> = expected.iter().map(|text| hash(text)).collect();
        assert_eq!(roots(&leaves, inclusion(index, size).expect("inside")), expected, "{index} in {size}");
        assert_eq!(check_inclusion(&leaves[index as usize], index, &head(&leaves[..size as usize]), &expected), Ok(()));
    }
    let extended: [(u64, u64, &[&str]); 4] = [(1, 1, &[]), (1, 8, &[L0_1, L1_1, L2_1]), (6, 8, &[L1_2, L1_3, L2_0]), (2, 5, &[L1_1, L0_4])];
    for (first, second, expected) in extended {
        let expected: Vec<Hash> = expected.iter().map(|text| hash(text)).collect();
        assert_eq!(roots(&leaves, consistency(first, second).expect("grown")), expected, "{first} to {second}");
        let heads = (head(&leaves[..first as usize]), head(&leaves[..second as usize]));
        assert_eq!(check_consistency(&heads.0, &heads.1, &expected), Ok(()));
    }
}

#[test]
fn every_proof_is_another_programs_and_holds_in_both() {
    let items: Vec<Vec<u8>> = (0..130_u32).map(|number| number.to_le_bytes().repeat(number as usize % 5)).collect();
    let leaves: Vec<Hash> = items.iter().map(|item| leaf_of(item)).collect();
    let mut other = MemoryBackedTree::<Sha256, Vec<u8>>::new();
    for size in 1..=items.len() {
        other.push(items[size - 1].clone());
        let ours = head(&leaves[..size]);
        let theirs = RootHash::<Sha256>::new(ours.root.into(), ours.size);
        for index in (0..size).filter(|index| index % 7 == 0 || index + 3 > size) {
            let proof = roots(&leaves, inclusion(index as u64, size as u64).expect("inside"));
            assert_eq!(proof.concat(), other.prove_inclusion(index).as_bytes(), "{index} in {size}");
            assert_eq!(check_inclusion(&leaves[index], index as u64, &ours, &proof), Ok(()));
            let proof = InclusionProof::<Sha256>::try_from_bytes(proof.concat()).expect("hashes");
            assert!(theirs.verify_inclusion(&items[index], index as u64, &proof).is_ok());
        }
        for first in (1..=size).filter(|first| first % 5 == 0 || first.is_power_of_two() || first + 3 > size) {
            let proof = roots(&leaves, consistency(first as u64, size as u64).expect("grown"));
            let old = head(&leaves[..first]);
            assert_eq!(check_consistency(&old, &ours, &proof), Ok(()), "{first} to {size}");
            if first < size {
                assert_eq!(proof.concat(), other.prove_consistency(size - first).as_bytes(), "{first} to {size}");
                let proof = ConsistencyProof::<Sha256>::try_from_bytes(proof.concat()).expect("hashes");
                let old = RootHash::<Sha256>::new(old.root.into(), old.size);
                assert!(theirs.verify_consistency(&old, &proof).is_ok());
            }
        }
    }
}

#[test]
fn sizes_that_are_none_are_said() {
    let leaves = reference();
    let (three, eight) = (head(&leaves[..3]), head(&leaves));
    assert_eq!((inclusion(8, 8), inclusion(0, 0), consistency(9, 8)), (None, None, None));
    assert_eq!(check_inclusion(&leaves[0], 8, &eight, &[]), Err(BadProof::Sizes));
    assert_eq!(check_consistency(&eight, &three, &[]), Err(BadProof::Sizes));
    assert_eq!(check_consistency(&head(&[]), &eight, &[]), Ok(()), "everything extends nothing");
    assert_eq!(check_consistency(&head(&[]), &eight, &[leaves[0]]), Err(BadProof::Length));
    assert_eq!(check_consistency(&TreeHead { size: 0, root: [1; 32] }, &eight, &[]), Err(BadProof::Root));
    assert_eq!(check_consistency(&three, &TreeHead { size: 3, root: [1; 32] }, &[]), Err(BadProof::Root));
    let longest = [inclusion(u64::MAX - 1, u64::MAX), inclusion(0, u64::MAX), consistency((1 << 62) + 1, u64::MAX)];
    assert!(longest.iter().flatten().all(|path| path.len() <= PROOF_MAX));
    let too_many = vec![[0; 32]; PROOF_MAX + 9];
    assert_eq!(check_inclusion(&leaves[0], 0, &eight, &too_many), Err(BadProof::Length));
}

proptest! {
    /// A proof of anything else than what it was made for is no proof.
    #[test]
    fn what_is_changed_in_a_proof_is_seen(
        size in 1..200_u64, first in 0..200_u64, at in any::<prop::sample::Index>(), bit in 0..256_usize, shift in 1..5_u64
    ) {
        let leaves: Vec<Hash> = (0..size).map(|number| leaf_of(&number.to_le_bytes())).collect();
        let (first, new) = (first % size + 1, head(&leaves));
        let (index, old) = (first - 1, head(&leaves[..first as usize]));
        let path = roots(&leaves, inclusion(index, size).expect("inside"));
        let growth = roots(&leaves, consistency(first, size).expect("grown"));
        prop_assert_eq!(check_inclusion(&leaves[index as usize], index, &new, &path), Ok(()));
        prop_assert_eq!(check_consistency(&old, &new, &growth), Ok(()));

        let flipped = |hash: &Hash| {
            let mut hash = *hash;
            hash[bit / 8] ^= 1 << (bit % 8);
            hash
        };
        prop_assert!(check_inclusion(&flipped(&leaves[index as usize]), index, &new, &path).is_err());
        prop_assert!(check_inclusion(&leaves[index as usize], index + shift, &new, &path).is_err());
        let (old_else, new_else) = (TreeHead { root: flipped(&old.root), ..old }, TreeHead { root: flipped(&new.root), ..new });
        prop_assert!(check_consistency(&old_else, &new, &growth).is_err());
        prop_assert!(check_consistency(&old, &new_else, &growth).is_err());
        for (proof, holds) in [
            (&path, &(|proof: &[Hash]| check_inclusion(&leaves[index as usize], index, &new, proof).is_ok()) as &dyn Fn(&[Hash]) -> bool),
            (&growth, &|proof: &[Hash]| check_consistency(&old, &new, proof).is_ok()),
        ] {
            prop_assert!(!holds(&[proof.as_slice(), &[[7; 32]]].concat()), "longer");
            if !proof.is_empty() {
                prop_assert!(!holds(&proof[1..]) && !holds(&proof[..proof.len() - 1]), "shorter");
                let mut changed = proof.clone();
                let at = at.index(changed.len());
                changed[at] = flipped(&changed[at]);
                prop_assert!(!holds(&changed), "flipped");
            }
        }
    }
}

#[test]
fn an_inner_node_is_no_leaf() {
    // Two leaves' parent, offered as a leaf of a tree with half as many: the prefixes of RFC 6962 keep them apart.
    let leaves = reference();
    let parent = node(&leaves[0], &leaves[1]);
    let as_item = leaf_of(&[leaves[0], leaves[1]].concat());
    assert_ne!(parent, as_item);
    let path = roots(&leaves, inclusion(0, 8).expect("inside"));
    assert_eq!(check_inclusion(&parent, 0, &head(&leaves), &path[1..]), Err(BadProof::Length));
}
