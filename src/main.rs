//! The `wharf` binary: parses the command line and calls the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    wharfinger::cli::main()
}
