//! How a kind gets a second version: a struct of its own beside the first, and a pure conversion. Told with a version of `PodGone`
//! that no build has, on the bytes that this build's goldens hold.

use serde::{Deserialize, Serialize};

use crate::events::codec::{CodecError, read, write_into};
use crate::events::frame::{Frame, FrameBody};
use crate::events::kinds::pod::{GoneHow, PodGone};
use crate::events::record::Kind;
use crate::ids::{HostName, Uid, Word, unhex};

/// `PodGone` as a later build might know it: where it was is said too, and what a first version did not say is empty.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct PodGoneV2 {
    host: HostName,
    node: Word,
    uid: Uid,
    resource_version: u64,
    how: GoneHow,
}

impl From<PodGone> for PodGoneV2 {
    fn from(old: PodGone) -> Self {
        let PodGone { host, uid, resource_version, how } = old;
        Self { host, node: Word::new(""), uid, resource_version, how }
    }
}

/// That build's arms of the codec.
fn decode(version: u16, bytes: &[u8]) -> Result<PodGoneV2, CodecError> {
    match version {
        1 => read::<PodGone>(Kind::PodGone, bytes).map(PodGoneV2::from),
        2 => read::<PodGoneV2>(Kind::PodGone, bytes),
        version => Err(CodecError::NewerVersion { kind: Kind::PodGone.name(), version }),
    }
}

/// The payloads that the first version's goldens hold.
fn stored() -> Vec<Vec<u8>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format/v1/PodGone.hex");
    let text = std::fs::read_to_string(path).expect("goldens");
    let frames = text.lines().map(|line| unhex(line.split(' ').nth(1).expect("a frame")).expect("hex"));
    frames
        .map(|bytes| match Frame::read(&bytes).expect("sound").body {
            FrameBody::Whole { payload, .. } => payload.to_vec(),
            FrameBody::Withheld(_) => panic!("a golden is whole"),
        })
        .collect()
}

fn written<T: serde::Serialize>(payload: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_into(payload, &mut bytes).expect("it can be encoded");
    bytes
}

#[test]
fn b60_a_second_version_reads_what_the_first_wrote_and_says_the_same() {
    for bytes in stored() {
        let old = read::<PodGone>(Kind::PodGone, &bytes).expect("the first version");
        let new = decode(1, &bytes).expect("read by a later build");
        assert_eq!(decode(1, &bytes), Ok(new.clone()), "the same bytes give the same, always");
        let back = PodGone { host: new.host, uid: new.uid, resource_version: new.resource_version, how: new.how };
        assert_eq!((&back, new.node.as_str()), (&old, ""), "nothing is lost and nothing made up");
        assert_eq!(written(&old), bytes, "what is stored stays what it was");
    }
}

#[test]
fn b60_neither_version_is_taken_for_the_other() {
    for bytes in stored() {
        let new = PodGoneV2 { node: Word::new("node1"), ..decode(1, &bytes).expect("read by a later build") };
        let second = written(&new);
        assert_eq!(decode(2, &second), Ok(new));
        // Were a version not said, one would be read as the other: field by field, until something does not fit.
        assert!(decode(1, &second).is_err() && decode(2, &bytes).is_err());
        assert_eq!(decode(3, &second), Err(CodecError::NewerVersion { kind: "PodGone", version: 3 }));
    }
}
