//! Tests of the commands' words.

mod erase;
mod forgeries;
mod keep;
mod log;
mod probing;
mod status;

use std::io;
use std::process::ExitCode;

use super::error::CliError;
use super::{GROUPS, command};

#[test]
fn every_command_is_in_one_group_and_says_what_it_does() {
    let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    for command in command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let name = command.get_name();
        assert_eq!(listed.iter().filter(|listed| **listed == name).count(), 1, "{name}");
        assert!(command.get_about().is_some(), "{name} says what it does");
    }
    command().debug_assert();
}

#[test]
fn the_help_is_in_groups() {
    let help = command().render_help().to_string();
    let run = help.find("\nRun:\n").expect("a group");
    let look = help.find("\nLook:\n").expect("a group");
    assert!(run < help.find("  config ").expect("listed") && help.find("  status ").expect("listed") > look, "{help}");
}

#[test]
fn an_error_is_one_line_and_a_code_and_a_broken_pipe_is_neither() {
    let refused = CliError::refused("the folder d is held by a running daemon", "use --server or a backup");
    assert_eq!(refused.line(), "wharf: the folder d is held by a running daemon; use --server or a backup");
    assert_eq!(refused.exit_code(), ExitCode::from(3));
    assert_eq!(CliError::input("x", "y").exit_code(), ExitCode::from(2));
    assert_eq!(CliError::from(io::Error::from(io::ErrorKind::BrokenPipe)).exit_code(), ExitCode::SUCCESS);
    assert_eq!(CliError::from(io::Error::from(io::ErrorKind::StorageFull)).exit_code(), ExitCode::from(3));
}
