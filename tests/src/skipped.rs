//! Tests that some machines cannot run are skipped, unless `NAPREDUCE_REQUIRE` lists their name; names are
//! separated by commas.

/// Whether `NAPREDUCE_REQUIRE` names this.
pub fn is_required(name: &str) -> bool {
    std::env::var("NAPREDUCE_REQUIRE").unwrap_or_default().split(',').any(|one| one == name)
}

/// Says that something is not tested, and why; panics where it is required.
pub fn skipped(name: &str, why: &str) {
    assert!(!is_required(name), "{name} cannot be tested: {why}");
    eprintln!("skipped: {name}: {why}");
}
