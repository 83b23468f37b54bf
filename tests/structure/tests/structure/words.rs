//! Forbids machine-specific paths and registry mirrors in tracked files. This file builds them from halves so
//! that it passes its own rule.

use super::files::{SourceFile, Violation};

const MACHINE_PATHS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/fa", "rm/"),
    concat!("/tmp/", "target"),
];
const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub fn machine_paths(files: &[SourceFile]) -> Vec<Violation> {
    // A match inside a longer path is allowed: `data/work/` is a relative folder.
    let goes_on = |before: char| before.is_alphanumeric() || "/._-~}>)$*".contains(before);
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path != "Cargo.lock") {
        for (index, line) in file.text.lines().enumerate() {
            for path in MACHINE_PATHS {
                let places = line.match_indices(path);
                let begins =
                    places.filter(|(at, _)| !line[..*at].chars().next_back().is_some_and(goes_on));
                violations.extend(
                    begins.map(|_| file.at(index + 1, format!("{path} in: {}", line.trim()))),
                );
            }
        }
    }
    violations
}

pub fn public_registry(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path == "Cargo.lock") {
        for (index, line) in file.text.lines().enumerate() {
            let Some(source) = line.strip_prefix("source = ") else {
                continue;
            };
            if source.trim_matches('"') != PUBLIC_REGISTRY {
                violations.push(file.at(index + 1, format!("comes from {source}")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

    fn page(text: &str) -> SourceFile {
        SourceFile::sample("docs/page.md", text)
    }

    #[test]
    fn machine_paths_are_found() {
        for path in MACHINE_PATHS {
            check_caught(
                machine_paths,
                page(&format!("first\nsee `{path}x`")),
                "docs/page.md:2",
            );
            check_passes(
                machine_paths,
                page(&format!("see data{path}x and ${{WORK}}{path}x")),
            );
        }
    }

    #[test]
    fn private_registry_is_refused() {
        let lock = |source: &str| {
            SourceFile::sample(
                "Cargo.lock",
                &format!("[[package]]\nsource = \"{source}\"\n"),
            )
        };
        check_passes(public_registry, lock(PUBLIC_REGISTRY));
        check_caught(
            public_registry,
            lock("registry+https://mirror.example/index"),
            "Cargo.lock:2: comes from",
        );
    }
}
