//! `nap` with the store features, for tests of clusters. The name keeps it apart from a `nap` without stores.

fn main() -> std::process::ExitCode {
    napreduce_cli::main()
}
