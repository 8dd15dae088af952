//! Keys, notes and checkpoints against the vectors that C2SP and Go's `note` package publish, and bytes that are none.

use proptest::prelude::*;

use crate::events::tree::{EMPTY_ROOT, TreeHead};
use crate::ids::{LogId, hex};
use crate::proof::checkpoint::{BadCheckpoint, Checkpoint, key_name};
use crate::proof::key::{BadKey, SigningKey, VerifierKey};
use crate::proof::note::{BadNote, NOTE_MAX, NotSigned, Note, SIGNATURES_MAX, sign};

/// Go, golang.org/x/mod/sumdb/note, the documentation's example.
const PETER_PRIVATE: &str = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const ENOCH: &str = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop";
const TEXT: &str = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const PETER_LINE: &str =
    "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const ENOCH_LINE: &str =
    "\u{2014} EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n";

/// C2SP, signed-note.
const EXAMPLE: &str = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k";
const EXAMPLE_NOTE: &str = "This is an example message.\n\n\u{2014} example.com/foo \
    Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n";

/// C2SP, tlog-checkpoint.
const BEHIND_THE_SOFA: &str = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";

fn key(text: &str) -> VerifierKey {
    VerifierKey::parse(text).expect("a key")
}

#[test]
fn the_published_keys_and_notes_are_ours_byte_for_byte() {
    let private = SigningKey::parse(PETER_PRIVATE).expect("a key");
    assert_eq!((private.verifier().to_string().as_str(), private.secret_text().as_str()), (PETER, PETER_PRIVATE));
    assert_eq!(sign(TEXT, &private), format!("{TEXT}\n{PETER_LINE}"));
    assert_eq!((key(PETER).to_string().as_str(), hex(&key(PETER).id())), (PETER, "c74f20a3".to_owned()));
    assert!(!format!("{private:?}").contains("AYEKFALV"), "the seed is never shown");

    let both = format!("{TEXT}\n{PETER_LINE}{ENOCH_LINE}");
    let note = Note::parse(both.as_bytes()).expect("a note");
    assert_eq!((note.text, note.verify(&key(PETER)), note.verify(&key(ENOCH))), (TEXT, Ok(()), Ok(())));
    assert_eq!(note.verify(&key(EXAMPLE)), Err(NotSigned::Unknown));
    assert_eq!(note.signers().map(|(name, _)| name).collect::<Vec<_>>(), ["PeterNeumann", "EnochRoot"]);
    assert_eq!(Note::parse(EXAMPLE_NOTE.as_bytes()).expect("a note").verify(&key(EXAMPLE)), Ok(()));
    assert_eq!(key("sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8").name(), "sum.golang.org");
}

#[test]
fn a_key_is_read_whole_or_not_at_all() {
    for (text, error) in [
        ("", BadKey::Form),
        ("PeterNeumann", BadKey::Form),
        ("+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", BadKey::Name),
        ("Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", BadKey::Name),
        ("PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", BadKey::Form),
        ("PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==", BadKey::Form),
        ("PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", BadKey::Type),
        ("PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", BadKey::Id),
        ("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW\n", BadKey::Form),
    ] {
        assert_eq!(VerifierKey::parse(text), Err(error), "{text}");
    }
    for text in [PETER, PETER_PRIVATE] {
        let parses = |text: &str| VerifierKey::parse(text).is_ok() || SigningKey::parse(text).is_ok();
        assert!((0..text.len()).all(|end| !parses(&text[..end])), "cut");
        for at in 0..text.len() {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = bytes[at].wrapping_add(1) & 0x7f;
            assert!(!String::from_utf8(bytes).is_ok_and(|text| parses(&text)), "changed at {at}");
        }
    }
}

#[test]
fn a_signature_that_does_not_hold_is_told_from_one_that_is_not_there() {
    let note = |text: &str, lines: &str| format!("{text}\n{lines}");
    let verify = |note: &str| Note::parse(note.as_bytes()).expect("a note").verify(&key(PETER));
    assert_eq!(verify(&note("Something else.\n", PETER_LINE)), Err(NotSigned::Broken));
    assert_eq!(verify(&note(TEXT, ENOCH_LINE)), Err(NotSigned::Unknown));
    let of_another = SigningKey::new("PeterNeumann", [7; 32]).expect("a name");
    assert_eq!(verify(&sign(TEXT, &of_another)), Err(NotSigned::Unknown), "the same name, another key");
    let flipped = PETER_LINE.replace("x08go/ZJ", "x08go/ZK");
    assert_eq!(verify(&note(TEXT, &flipped)), Err(NotSigned::Broken));
    assert_eq!(verify(&note(TEXT, &format!("{PETER_LINE}{flipped}"))), Err(NotSigned::Broken), "one that holds does not excuse it");
    assert_eq!(verify(&note("In two parts.\n\nBoth signed.\n", PETER_LINE)), Err(NotSigned::Broken));
}

#[test]
fn what_is_no_note_is_refused_with_its_reason() {
    let long = format!("{}\n\n{PETER_LINE}", "x".repeat(NOTE_MAX));
    let many = format!("{TEXT}\n{}", PETER_LINE.repeat(SIGNATURES_MAX + 1));
    for (bytes, error) in [
        (b"".as_slice(), BadNote::Form),
        (b"text\n", BadNote::Form),
        (b"text\n\n", BadNote::Form),
        (TEXT.as_bytes(), BadNote::Form),
        (b"text\r\n\n", BadNote::Text),
        (b"\xff\n\n", BadNote::Text),
        (b"text\n\nnot a signature\n", BadNote::Signature(1)),
        ("text\n\n\u{2014} name AAAA\n".as_bytes(), BadNote::Signature(1)),
        ("text\n\n\u{2014} a+b AAAAAAA=\n".as_bytes(), BadNote::Signature(1)),
        ("text\n\n\u{2014} name  AAAAAAA=\n".as_bytes(), BadNote::Signature(1)),
        ("text\n\n- name AAAAAAA=\n".as_bytes(), BadNote::Signature(1)),
        (long.as_bytes(), BadNote::TooLong),
        (many.as_bytes(), BadNote::TooLong),
    ] {
        assert_eq!(Note::parse(bytes), Err(error), "{}", String::from_utf8_lossy(&bytes[..bytes.len().min(80)]));
    }
    let sixteen = format!("{TEXT}\n{}", PETER_LINE.repeat(16));
    assert_eq!(Note::parse(sixteen.as_bytes()).map(|note| note.verify(&key(PETER))), Ok(Ok(())), "as many as everybody must read");
    let unended = format!("{TEXT}\n{}", PETER_LINE.trim_end());
    assert_eq!(Note::parse(unended.as_bytes()), Err(BadNote::Form));
}

#[test]
fn a_checkpoint_is_three_lines_and_names_its_log() {
    let published = Checkpoint::parse(BEHIND_THE_SOFA).expect("a checkpoint");
    assert_eq!((published.text().as_str(), published.tree.size, published.named()), (BEHIND_THE_SOFA, 20_852_163, None));
    let log = LogId([0xab; 16]);
    let ours = Checkpoint::new(&key_name("prod", "eu"), log, TreeHead { size: 0, root: EMPTY_ROOT });
    assert_eq!(ours.origin, "wharfinger/prod/eu/abababababababababababababababab");
    assert_eq!((Checkpoint::parse(&ours.text()), ours.named()), (Ok(ours.clone()), Some(("wharfinger/prod/eu", log))));
    let extended = format!("{}more\n", ours.text());
    assert_eq!(Checkpoint::parse(&extended), Ok(ours.clone()));
    let signer = SigningKey::new("wharfinger/prod/eu", [1; 32]).expect("a name");
    let signed = ours.signed(&signer);
    let note = Note::parse(signed.as_bytes()).expect("a note");
    assert_eq!((note.verify(signer.verifier()), Checkpoint::parse(note.text)), (Ok(()), Ok(ours)));

    let root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
    for (text, error) in [
        (String::new(), BadCheckpoint::Lines),
        (format!("a\n1\n{root}"), BadCheckpoint::Lines),
        ("a\n1\n".to_owned(), BadCheckpoint::Lines),
        (format!("\n1\n{root}\n"), BadCheckpoint::Lines),
        (format!("a\n1\n{root}\n\n"), BadCheckpoint::Lines),
        (format!("a\n01\n{root}\n"), BadCheckpoint::Size),
        (format!("a\n+1\n{root}\n"), BadCheckpoint::Size),
        (format!("a\n-1\n{root}\n"), BadCheckpoint::Size),
        (format!("a\n18446744073709551616\n{root}\n"), BadCheckpoint::Size),
        ("a\n1\nCsUY\n".to_owned(), BadCheckpoint::Root),
        (format!("a\n1\n{}\n", root.trim_end_matches('=')), BadCheckpoint::Root),
    ] {
        assert_eq!(Checkpoint::parse(&text), Err(error), "{text:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), text in "[a-z+/\u{2014} \n=]{0,80}") {
        let _ = Note::parse(&bytes);
        let _ = Note::parse(text.as_bytes()).map(|note| note.verify(&key(PETER)));
        let _ = (Checkpoint::parse(&text), VerifierKey::parse(&text).is_ok(), SigningKey::parse(&text).is_ok());
    }

    #[test]
    fn no_flip_in_a_note_goes_unseen(at in any::<prop::sample::Index>(), flip in 1..=255_u8) {
        let mut bytes = format!("{TEXT}\n{PETER_LINE}").into_bytes();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(Note::parse(&bytes).map(|note| note.verify(&key(PETER))) != Ok(Ok(())));
    }
}
