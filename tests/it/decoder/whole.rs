//! Everything that reads stored bytes, given any bytes: the body of the fuzz target in `fuzz/`, and of the test that replays its
//! corpus. The first byte says what the rest is taken for; checksums are made right, so that what is behind them is reached.

use wharfinger::events::block::Block;
use wharfinger::events::codec::decode;
use wharfinger::events::frame::{Frame, FrameBody};
use wharfinger::events::marks::Marks;
use wharfinger::events::packed::unpack;
use wharfinger::events::record::Kind;

/// Reads the bytes; panics only where the decoder breaks a promise.
pub(super) fn read(bytes: &[u8]) {
    let Some((what, rest)) = bytes.split_first() else { return };
    match what % 4 {
        0 => payload(rest),
        1 => frame(&sealed(rest)),
        2 => block(rest),
        _ => {
            let _ = Marks::read(&sealed(rest));
            let _ = Marks::read(rest);
        }
    }
}

/// A kind, a version, and what is to be its payload.
fn payload(bytes: &[u8]) {
    let [kind, version, payload @ ..] = bytes else { return };
    let kind = Kind::ALL[usize::from(*kind) % Kind::ALL.len()];
    if let Ok(event) = decode(kind, u16::from(*version), payload) {
        assert_eq!(event.kind(), kind, "a payload is of its own kind");
    }
}

/// With a checksum of all that follows it.
fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    if let Some((sum, rest)) = sealed.split_first_chunk_mut::<4>() {
        *sum = crc32fast::hash(rest).to_le_bytes();
    }
    sealed
}

fn frame(bytes: &[u8]) {
    let Ok(frame) = Frame::read(bytes) else { return };
    let _ = (frame.decoded(), frame.leaf(), frame.decides());
    if let (Some(kind), FrameBody::Whole { payload, .. }) = (Kind::from_number(frame.kind()), frame.body) {
        let _ = decode(kind, frame.kind_version(), payload);
    }
}

/// A block whose own checksum is right, packed or not, and then those of its frames.
fn block(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if bytes.len() < 8 {
        return;
    }
    let head = usize::from(u16::from_le_bytes([bytes[2], bytes[3]])).clamp(8, bytes.len());
    let mut sum = crc32fast::Hasher::new();
    sum.update(&bytes[..4]);
    sum.update(&bytes[8..head]);
    bytes[4..8].copy_from_slice(&sum.finalize().to_le_bytes());
    let mut unpacked = Vec::new();
    unpack(&bytes, &mut unpacked);
    let bytes = unpacked;
    let Ok(read) = Block::read(&bytes) else { return };
    assert_eq!(read.records().count() as u64, read.count(), "each place of the directory is a record or named damage");
    let _ = read.last();
    let head = usize::from(u16::from_le_bytes([bytes[2], bytes[3]]));
    let mut at = head;
    for length in bytes[80..head].chunks_exact(2).map(|pair| usize::from(u16::from_le_bytes([pair[0], pair[1]]))) {
        frame(&sealed(&bytes[at..at + length]));
        at += length;
    }
}
