//! The environment's file, given to real shells.

use std::collections::BTreeMap;
use std::process::Command;

use proptest::prelude::*;

use crate::kube::environment::{Environment, EnvironmentFault, FILE_BYTES};

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::new(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

/// The shells a pod's image may have. A missing one fails: what is not tried is not known.
const SHELLS: [&[&str]; 4] = [&["dash"], &["bash"], &["bash", "--posix"], &["busybox", "sh"]];

type Given = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a process is given after a shell has read the file, as `app`'s container does it; with and without `set -eu`.
fn sourced(environment: &Environment) -> Vec<(String, Given)> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("env");
    std::fs::write(&file, environment.file().expect("a file")).expect("written");
    let mut all = Vec::new();
    for shell in SHELLS {
        for flags in [&[][..], &["-eu"][..]] {
            let script = crate::kube::install::read_then_run(folder.path().to_str().expect("a path"));
            let output = Command::new(shell[0])
                .args(&shell[1..])
                .args(flags)
                .args(["-c", &script, "sh", "/usr/bin/env", "-0"])
                .current_dir(folder.path())
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .output()
                .unwrap_or_else(|error| {
                    panic!("{} is needed to test the environment's file (apt-get install dash bash busybox): {error}", shell[0])
                });
            assert!(output.status.success() && output.stderr.is_empty(), "{shell:?}: {}", String::from_utf8_lossy(&output.stderr));
            let variables = output.stdout.split(|byte| *byte == 0).filter_map(|entry| {
                let at = entry.iter().position(|byte| *byte == b'=')?;
                Some((entry[..at].to_vec(), entry[at + 1..].to_vec()))
            });
            all.push((format!("{shell:?} {flags:?}"), variables.collect()));
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 1, "nothing was executed");
    all
}

fn comes_through(environment: &Environment) {
    for (shell, got) in sourced(environment) {
        for (name, value) in environment.iter() {
            let got = got.get(name.as_bytes()).map(|bytes| String::from_utf8_lossy(bytes));
            assert_eq!(got.as_deref(), Some(value), "{name} in {shell}");
        }
    }
}

#[test]
fn b35_every_value_comes_through_byte_for_byte() {
    let large = "x'\\\n".repeat(30_000);
    comes_through(&environment(&[
        ("QUOTE", "a'b"),
        ("QUOTES", "'''\"'"),
        ("DOUBLE", "a\"b"),
        ("SUBSTITUTION", "$(touch executed)"),
        ("BACKTICK", "`touch executed`"),
        ("DOLLAR", "$HOME ${HOME} $$"),
        ("BACKSLASH", "a\\"),
        ("BACKSLASHES", "\\\\\\"),
        ("ESCAPED", "\\\""),
        ("HISTORY", "!x !! !$"),
        ("SPACES", "  a  b  "),
        ("TABS", "\ta\tb\t"),
        ("CARRIAGE", "a\r\nb\r"),
        ("NEWLINE", "a\n"),
        ("NEWLINES", "\n\na\n\n"),
        ("STAR", "*"),
        ("TILDE", "~"),
        ("EMOJI", "\u{1f600} \u{202e} \u{0300}"),
        ("EMPTY", ""),
        ("ASSIGN", "A=B=C"),
        ("SEMICOLON", "; touch executed; # & | > executed"),
        ("EXPORT", "x'\nexport EVIL='1"),
        ("CONTROL", "\u{1}\u{7}\u{1b}[31m\u{7f}"),
        ("_UNDER_1", "x"),
        ("lower", "x"),
        ("LARGE", &large),
        ("IFS", "abc"),
        ("PATH", "/usr/bin:/bin:/x y"),
        ("ENV", "/nowhere"),
        ("BASH_ENV", "$(touch executed)"),
        ("PS4", "$(touch executed)"),
        ("PWD", "/"),
    ]));
}

#[test]
fn b35_a_value_of_200_kb_is_read_whole() {
    // No process can be given a variable of more than 128 KiB; the shell itself must have it all the same.
    let value = "0123456789'\\$`\"\n".repeat(12_500);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("env"), environment(&[("LARGE", &value)]).file().expect("a file")).expect("written");
    for shell in SHELLS {
        let output = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-euc", ". ./env; printf %s \"$LARGE\""])
            .current_dir(folder.path())
            .output()
            .unwrap_or_else(|error| panic!("{} is needed to test the environment's file: {error}", shell[0]));
        assert!(output.stdout == value.as_bytes(), "{shell:?}: {} bytes", output.stdout.len());
    }
}

#[test]
fn the_file_is_sorted_and_the_platforms_own_win() {
    let file = environment(&[("B", "2"), ("A", "it's"), ("HOME", "/evil"), ("TMPDIR", "/evil"), ("NO_COLOR", "")]).file();
    assert_eq!(file.expect("a file"), "export A='it'\\''s'\nexport B='2'\n");
    assert_eq!(environment(&[]).file().expect("a file"), "");
}

#[test]
fn what_no_shell_or_process_takes_is_refused_by_name() {
    for name in ["", "1A", "A-B", "A B", "A=B", "É", "A\n", "A;x", "a.b", "$(x)", "-n"] {
        let fault = environment(&[(name, "secret-value")]).file().expect_err(name);
        assert!(matches!(fault, EnvironmentFault::NotAName { .. }), "{name}");
        assert!(!fault.to_string().contains("secret"), "{fault}");
    }
    let fault = environment(&[("KEY", "secret\0value")]).file().expect_err("a NUL");
    assert_eq!(fault.to_string(), "the value of KEY has a NUL");
    for name in ["UID", "PPID", "_", "RANDOM", "OPTIND", "SHLVL"] {
        assert_eq!(environment(&[(name, "1")]).file(), Err(EnvironmentFault::ShellsOwn { name: name.to_owned() }));
    }
    let evil = environment(&[("\u{1b}[31m", "x")]).file().expect_err("no name").to_string();
    assert!(!evil.contains('\u{1b}'), "{evil}");
}

#[test]
fn b37_the_files_own_size_is_what_counts() {
    let around = "export LARGEST=''\nexport A='x'\n".len();
    let of = |bytes: usize| environment(&[("A", "x"), ("LARGEST", &"x".repeat(bytes - around))]);
    assert_eq!(of(FILE_BYTES - 1).file().expect("a file").len(), 1_048_575);
    assert_eq!(of(FILE_BYTES).file().expect("a file").len(), 1_048_576);
    let fault = of(FILE_BYTES + 1).file().expect_err("too large");
    assert_eq!(fault, EnvironmentFault::TooLarge { name: "LARGEST".to_owned(), bytes: 1_048_577 });
    let quotes = environment(&[("QUOTES", &"'".repeat(300_000))]).file().expect_err("quotes make the file longer");
    assert!(matches!(quotes, EnvironmentFault::TooLarge { bytes: 1_200_017, .. }), "{quotes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn b35_any_value_comes_through(values in proptest::collection::vec(any::<String>().prop_map(|text| text.replace('\0', "")), 1..8)) {
        let variables = values.into_iter().enumerate().map(|(index, value)| (format!("V_{index}"), value)).collect();
        comes_through(&Environment::new(variables));
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(variables in proptest::collection::btree_map("[A-Z_][A-Z0-9_]{1,8}X", "[ab'\\\\\n\" =]{0,12}", 0..6)) {
        let environment = Environment::new(variables);
        let file = environment.file().expect("a file");
        prop_assert_eq!(Environment::parse(&file), Some(environment));
    }

    #[test]
    fn reading_never_panics(text in "[exportAB='\\\\ \n]{0,40}") {
        let _ = Environment::parse(&text);
    }
}
