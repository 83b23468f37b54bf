//! Tests that cannot run on some machines are skipped, unless `NAPREDUCE_REQUIRE` lists their name; names are
//! separated by commas.

/// Returns whether `NAPREDUCE_REQUIRE` lists this name.
pub fn is_required(name: &str) -> bool {
    std::env::var("NAPREDUCE_REQUIRE")
        .unwrap_or_default()
        .split(',')
        .any(|one| one == name)
}

/// Prints that a test is skipped and why; panics if it is required.
pub fn skipped(name: &str, why: &str) {
    assert!(!is_required(name), "{name} cannot be tested: {why}");
    eprintln!("skipped: {name}: {why}");
}
