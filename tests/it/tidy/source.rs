//! Rust source as the rules see it: without comments, text and tests, and as paths. Knows tokens, not grammar: the sources are
//! formatted, which makes that enough.

use std::iter::Peekable;
use std::str::CharIndices;

/// The source with comments and the inside of text blanked out; every line stays where it is.
pub(super) fn code(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest),
            'r' | 'b' if !out.ends_with(is_word) && raw(rest).is_some() => raw(rest).unwrap_or(1),
            '\'' => character(rest),
            _ => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        out.extend(rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[length..];
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of `r"..."`, `r#"..."#` and the like at the beginning.
fn raw(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let begin = rest.len() - after.len() + hashes + 1;
    after[hashes..].starts_with('"').then_some(())?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest[begin..].find(&end).map_or(rest.len(), |at| begin + at + end.len()))
}

/// The length of a character's literal; 1 for a lifetime's quote.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => rest[2..].find('\'').map_or(1, |at| {
            let quote = 2 + at;
            if rest[quote - 1..].starts_with("\\'") && rest[quote + 1..].starts_with('\'') { quote + 2 } else { quote + 1 }
        }),
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(1, |(at, _)| at + 1),
        None => 1,
    }
}

/// Code without its inline test module: what follows a `#[cfg(test)]` that opens one.
pub(super) fn without_tests(code: &str) -> &str {
    match code.find("#[cfg(test)]\nmod ").filter(|at| code[*at..].lines().nth(1).is_some_and(|line| line.ends_with('{'))) {
        Some(at) => &code[..at],
        None => code,
    }
}

/// Every path in the code, as its segments, groups taken apart; a leading `::` is an empty first segment.
pub(super) fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut chars = code.char_indices().peekable();
    let mut before = ' ';
    while let Some(&(at, c)) = chars.peek() {
        let begins_absolute = code[at..].starts_with("::") && !is_word(before) && !matches!(before, '>' | ')' | ']' | '}' | ':');
        if begins_absolute || (is_word(c) && !is_word(before)) {
            let prefix = if begins_absolute { vec![String::new()] } else { Vec::new() };
            if begins_absolute {
                chars.next();
                chars.next();
            }
            path(&mut chars, prefix, &mut found);
            before = 'a';
        } else {
            before = c;
            chars.next();
        }
    }
    found.retain(|path| path.len() > 1);
    found
}

fn path(chars: &mut Peekable<CharIndices<'_>>, mut segments: Vec<String>, found: &mut Vec<Vec<String>>) {
    loop {
        match chars.peek() {
            Some((_, c)) if is_word(*c) => {
                let mut word = String::new();
                while let Some((_, c)) = chars.next_if(|(_, c)| is_word(*c)) {
                    word.push(c);
                }
                segments.push(word);
            }
            Some((_, '{')) if !segments.is_empty() => {
                chars.next();
                group(chars, &segments, found);
                return;
            }
            _ => break,
        }
        let mut ahead = chars.clone();
        if !(ahead.next().is_some_and(|(_, c)| c == ':') && ahead.next().is_some_and(|(_, c)| c == ':')) {
            break;
        }
        chars.nth(1);
    }
    found.push(segments);
}

fn group(chars: &mut Peekable<CharIndices<'_>>, prefix: &[String], found: &mut Vec<Vec<String>>) {
    while let Some(&(_, c)) = chars.peek() {
        if c == '}' {
            chars.next();
            return;
        }
        if is_word(c) {
            path(chars, prefix.to_vec(), found);
        } else {
            chars.next();
        }
    }
}

#[test]
fn the_reader_of_sources_reads_sources() {
    let source = r##"
use crate::a::{b, c::{D, E as F}, self}; // crate::no
use ::kube::Api;
fn f<'a>(x: &'a str) { let _ = ("crate::no", r#"sled::no"#, 'x', '\'', '"', g::<i::J>(), Vec::<u8>::new()); } /* no::no */
"##;
    let shown: Vec<String> = paths(&code(source)).iter().map(|path| path.join("::")).collect();
    let expected = ["crate::a::b", "crate::a::c::D", "crate::a::c::E", "crate::a::self", "::kube::Api", "i::J"];
    for path in expected {
        assert!(shown.iter().any(|shown| shown == path), "{path} in {shown:?}");
    }
    assert!(!shown.iter().any(|path| path.contains("no")), "{shown:?}");
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests {\nb\n}\n"), "a\n");
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod tests;\nb\n"), "a\n#[cfg(test)]\nmod tests;\nb\n");
}
