//! Tests of the commands' words.

mod log;
mod status;

use super::{GROUPS, command};

#[test]
fn every_command_is_in_one_group_and_says_what_it_does() {
    let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
    for command in command().get_subcommands() {
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
