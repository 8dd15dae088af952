//! The `wharf` binary: parses the command line and calls the library.

fn main() -> std::process::ExitCode {
    wharfinger::cli::main()
}
