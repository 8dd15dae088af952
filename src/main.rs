//! The `wharf` binary: parses the command line and calls the library.

use std::process::ExitCode;

/// The system's allocator stops a thread for 300 ms to tidy a large heap, in the middle of a reaction.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    wharfinger::cli::main()
}
