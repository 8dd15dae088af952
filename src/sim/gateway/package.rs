//! Packages: a gzipped tarball made in memory, the same bytes for the same files. Pure.

use std::io::Write as _;

/// A block of a tarball.
const BLOCK: usize = 512;
/// The most a stored block of deflate holds.
const STORED_MAX: usize = 65_535;

/// A `.tar.gz` of these files; not compressed, all times zero.
#[must_use]
pub fn package(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, content) in files {
        tar.extend_from_slice(&header(name, content.len()));
        tar.extend_from_slice(content);
        tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    }
    tar.resize(tar.len() + 2 * BLOCK, 0);
    gzip(&tar)
}

fn header(name: &str, size: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| {
        if let Some(mut field) = header.get_mut(at..) {
            // The fields are shorter than the block; a name of more than 100 bytes would be cut by the next field.
            let _ = field.write(text.as_bytes());
        }
    };
    put(0, name);
    put(100, "0000644\0");
    put(108, "0001750\0");
    put(116, "0001750\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\0");
    put(263, "00");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    if let Some(mut field) = header.get_mut(148..156) {
        let _ = field.write(format!("{sum:06o}\0 ").as_bytes());
    }
    header
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut chunks = bytes.chunks(STORED_MAX).peekable();
    while let Some(chunk) = chunks.next() {
        let length = u16::try_from(chunk.len()).unwrap_or(u16::MAX);
        out.push(u8::from(chunks.peek().is_none()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(chunk);
    }
    out.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out
}
