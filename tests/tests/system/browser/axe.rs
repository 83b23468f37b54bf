//! The accessibility checks of axe-core, from the Python package `axe-playwright-python`. Skipped without it,
//! unless `NAPREDUCE_REQUIRE` lists `python`.

use std::process::Command;

use napreduce_tests::skipped;
use serde_json::{Value, json};

use super::driver::Browser;

/// Prints where the package has its script.
const FIND: &str = "import importlib.util, pathlib
print(pathlib.Path(importlib.util.find_spec('axe_playwright_python').origin).parent / 'axe.min.js')";

/// Returns a line per rule that the page breaks, with the elements.
const VIOLATIONS: &str = "
return axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, help, nodes }) =>
  `${id}: ${help}: ${nodes.map((node) => node.html.slice(0, 120)).join(' | ')}`))";

/// The script of axe-core.
pub struct Axe(String);

impl Axe {
    /// Reads the script; returns `None` after reporting a skip.
    pub fn find() -> Option<Axe> {
        let found = Command::new("python3").args(["-c", FIND]).output();
        let path = found
            .ok()
            .filter(|found| found.status.success())
            .map(|found| found.stdout);
        let Some(path) = path.and_then(|path| String::from_utf8(path).ok()) else {
            skipped(
                "python",
                "python3 -m pip install --no-deps axe-playwright-python",
            );
            return None;
        };
        Some(Axe(
            std::fs::read_to_string(path.trim()).expect("the script of axe-core")
        ))
    }

    /// Fails if the page breaks a rule.
    pub fn finds_nothing(&self, browser: &Browser, page: &str) {
        browser.run(&self.0);
        let violations: Value = browser.run(VIOLATIONS);
        assert_eq!(violations, json!([]), "{page}");
    }
}
