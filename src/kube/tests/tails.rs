//! Log bytes as they really are, and values that must not get out (case B39).

use std::collections::BTreeMap;

use expect_test::expect;
use proptest::prelude::*;

use crate::kube::environment::Environment;
use crate::kube::redact::{Cut, Redactor};
use crate::kube::tail::{self, LINE_BYTES, PART_BYTES, TAIL_BYTES, Tail, tail};

const WHOLE: Cut = Cut { begin: false, end: false };

fn redactor(values: &[(&str, &str)]) -> Redactor {
    let variables: BTreeMap<String, String> = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Redactor::new(&Environment::new(variables))
}

fn plain(raw: &[u8]) -> Tail {
    tail(raw, WHOLE, &redactor(&[]))
}

#[test]
fn b39_any_bytes_become_text() {
    let text = |raw: &[u8]| plain(raw).parts.concat();
    assert_eq!(text(b"\xff\xfe\x00\n"), "\u{fffd}\u{fffd}\0\n");
    assert_eq!(text(b"caf\xc3"), "caf\u{fffd}\n");
    assert_eq!(text(b"10%\r20%\r100%\r\n"), "10%\r20%\r100%\n");
    assert_eq!(text(b"a\n\n\nb"), "a\n\n\nb\n");
    assert_eq!(text(b"\x1b[31mred\x1b[0m\n"), "\x1b[31mred\x1b[0m\n");
    assert_eq!(plain(b""), Tail::default());
    assert_eq!(plain(b"\n").lines, 0);
}

#[test]
fn b39_a_line_without_an_end_is_cut() {
    let kept = plain(&vec![b'x'; 1 << 20]);
    assert_eq!((kept.lines, kept.bytes, kept.cut), (1, 2048 + 7, true));
    assert!(kept.parts[0].ends_with("x [cut]\n"));
    let wide = plain("é".repeat(2_000).as_bytes());
    assert!(wide.parts[0].ends_with("é [cut]\n"));
}

#[test]
fn b39_the_last_lines_are_kept_within_all_bounds() {
    let many: String = (0..1_000).map(|number| format!("line {number}\n")).collect();
    let kept = plain(many.as_bytes());
    assert_eq!((kept.lines, kept.cut), (300, true));
    assert!(kept.parts.concat().starts_with("line 700\n") && kept.parts.concat().ends_with("line 999\n"));
    let long: String = (0..300).map(|number| format!("{number} {}\n", "é".repeat(1_000))).collect();
    let kept = plain(long.as_bytes());
    assert!(kept.cut && kept.bytes as usize <= TAIL_BYTES && kept.lines < 60, "{} {}", kept.bytes, kept.lines);
    assert!(kept.parts.iter().all(|part| part.len() <= PART_BYTES) && kept.parts.len() == 7, "{}", kept.parts.len());
    assert!(kept.parts.concat().ends_with(&format!("299 {}\n", "é".repeat(1_000))));
    assert!(!plain(b"one\ntwo\n").cut);
}

#[test]
fn values_are_taken_out_before_anything_is_cut() {
    let redactor = redactor(&[("TOKEN", "abcdefgh-secret"), ("SHORT", "8080"), ("PIN", "1234567")]);
    let kept = |text: &str| tail(text.as_bytes(), WHOLE, &redactor).parts.concat();
    assert_eq!(kept("a abcdefgh-secret b 8080 1234567"), "a [TOKEN] b 8080 1234567\n");
    for before in LINE_BYTES - 20..LINE_BYTES + 5 {
        let line = format!("{}abcdefgh-secret tail", "x".repeat(before));
        assert!(!kept(&line).contains("abcd"), "{before}: a value over the line's cut");
    }
    assert!(!kept("abcdefgh-secretabcdefgh-secret").contains("secret"));
}

#[test]
fn values_of_several_lines_are_taken_out_whole_and_by_line() {
    let key = "-----BEGIN-----\nMIIEvAIBADANBgkq\r\nhkiG9w0BAQEFAASC\n-----END-----\n";
    let redactor = redactor(&[("KEY", key)]);
    assert_eq!(redactor.redact(&format!("k={key};"), WHOLE), "k=[KEY];");
    assert_eq!(redactor.redact("MIIEvAIBADANBgkq\n", WHOLE), "[KEY]\n");
    let kept = tail(b"9w0BAQEFAASC\n-----END-----\nok\n", Cut { begin: true, end: false }, &redactor);
    assert_eq!(kept.parts.concat(), "[KEY]ok\n", "the tail begins within a value");
}

#[test]
fn values_at_a_cut_end_are_taken_out() {
    let redactor = redactor(&[("TOKEN", "abcdefgh-secret-ü-value")]);
    let both = Cut { begin: true, end: true };
    assert_eq!(redactor.redact("log abcdefgh-sec", both), "log [TOKEN]");
    assert_eq!(redactor.redact("log abcdefgh-sec", WHOLE), "log abcdefgh-sec");
    assert_eq!(redactor.redact("secret-ü-value and on", both), "[TOKEN] and on");
    assert_eq!(redactor.redact("\u{fffd}-value and on", both), "\u{fffd}[TOKEN] and on", "the cut is within a character");
    assert_eq!(redactor.redact("on abcdefgh-secret-\u{fffd}", both), "on [TOKEN]\u{fffd}");
    assert_eq!(redactor.redact("\u{fffd}\u{fffd}", both), "\u{fffd}\u{fffd}");
    assert_eq!(redactor.redact("ab", both), "ab", "too little to tell anything");
    assert_eq!(redactor.redact("cret-ü-value abcdefg", both), "[TOKEN] [TOKEN]");
}

#[test]
fn values_that_overlap_leave_nothing_between_them() {
    let redactor = redactor(&[("A", "aaaaaaaabbbb"), ("B", "bbbbcccccccc"), ("LONG", "xxaaaaaaaabbbbyy")]);
    assert_eq!(redactor.redact(">aaaaaaaabbbbcccccccc<", WHOLE), ">[B]<");
    assert_eq!(redactor.redact(">xxaaaaaaaabbbbyy<", WHOLE), ">[LONG]<");
    assert_eq!(redactor.redact("aaaaaaaabbbb aaaaaaaabbbb", WHOLE), "[A] [A]");
}

#[test]
fn an_environment_made_to_be_slow_is_not() {
    let mut variables = BTreeMap::new();
    for number in 0..900 {
        variables.insert(format!("A{number:04}"), "a".repeat(8 + number));
        variables.insert(format!("B{number:04}"), format!("{}b", "a".repeat(8 + number)));
    }
    let redactor = Redactor::new(&Environment::new(variables));
    let text = "a".repeat(1 << 20);
    let begun = crate::clock::now();
    assert_eq!(redactor.redact(&text, Cut { begin: true, end: true }), "[A0899]");
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn which_ends_are_cut_is_known() {
    assert_eq!(tail::ends(b"a\nb\n", 3, 100), WHOLE);
    assert_eq!(tail::ends(b"a\nb\nc\n", 3, 100), Cut { begin: true, end: false });
    assert_eq!(tail::ends(&[b'x'; 100], 3, 100), Cut { begin: false, end: true });
}

#[test]
fn nothing_shows_a_value() {
    let environment = Environment::new(BTreeMap::from([("TOKEN".to_owned(), "abcdefgh-secret".to_owned())]));
    expect![[r#"{"TOKEN"}"#]].assert_eq(&format!("{environment:?}"));
    expect![[r#"Redactor { names: ["TOKEN"], .. }"#]].assert_eq(&format!("{:?}", Redactor::new(&environment)));
}

proptest! {
    #[test]
    fn no_value_survives(
        values in proptest::collection::vec("[ab\n]{8,14}", 1..6),
        pieces in proptest::collection::vec((0_usize..8, "[ab\n ]{0,9}"), 0..12),
    ) {
        let variables = values.iter().enumerate().map(|(index, value)| (format!("V{index}"), value.clone())).collect();
        let redactor = Redactor::new(&Environment::new(variables));
        let text: String = pieces.iter().map(|(index, other)| format!("{other}{}", values.get(*index).map_or("", |value| value))).collect();
        let out = redactor.redact(&text, WHOLE);
        for value in &values {
            prop_assert!(!out.contains(value.as_str()), "{value:?} in {out:?} of {text:?}");
        }
        // What remains outside the brackets is the text without what a simple search covers.
        let mut covered = vec![false; text.len()];
        let needles = values.iter().flat_map(|value| std::iter::once(value.as_str()).chain(value.split('\n'))).filter(|needle| needle.len() >= 8);
        for needle in needles {
            for at in 0..text.len() {
                if text[at..].starts_with(needle) {
                    covered[at..at + needle.len()].fill(true);
                }
            }
        }
        let wanted: String = text.bytes().zip(&covered).filter(|(_, covered)| !**covered).map(|(byte, _)| char::from(byte)).collect();
        let mut rest = String::new();
        let mut inside = false;
        for c in out.chars() {
            match c {
                '[' => inside = true,
                ']' => inside = false,
                other if !inside => rest.push(other),
                _ => {}
            }
        }
        prop_assert_eq!(rest, wanted);
    }

    #[test]
    fn a_tail_is_within_its_bounds(raw in proptest::collection::vec(any::<u8>(), 0..5_000), begin: bool, end: bool) {
        let kept = tail(&raw, Cut { begin, end }, &redactor(&[("A", "abcdefgh")]));
        let text = kept.parts.concat();
        prop_assert!(kept.parts.iter().all(|part| part.len() <= PART_BYTES));
        prop_assert_eq!(text.len(), kept.bytes as usize);
        prop_assert_eq!(text.lines().count() as u32, kept.lines);
    }
}
