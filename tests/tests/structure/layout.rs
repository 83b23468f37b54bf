//! Where things are and what they are called: the top level, names of modules, where dependencies come from.
//! What stands inside source files is other modules' business.

use super::files::{SourceFile, Violation};
use std::collections::BTreeSet;
use syn::visit::{self, Visit};

/// Names that say nothing about a role.
const EMPTY_NAMES: [&str; 8] = ["util", "utils", "helper", "helpers", "common", "manager", "misc", "stuff"];

/// Everything the top level holds, and nothing else.
const TOP_LEVEL: [&str; 20] = [
    ".ci",
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "clippy.toml",
    "datagen",
    "docs",
    "examples",
    "framework",
    "lab",
    "python",
    "runtime",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "tests",
];

const PUBLIC_REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub fn role_names(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let parts = file.path.trim_end_matches(".rs").split('/');
        let empty = parts.filter(|part| EMPTY_NAMES.contains(part));
        violations.extend(empty.map(|name| file.at(0, format!("{name} names no role"))));
        match file.syntax() {
            Ok(syntax) => InlineModules { file, violations: &mut violations }.visit_file(syntax),
            Err(violation) => violations.push(violation),
        }
    }
    violations
}

/// Modules with a body in the same file; others have a file whose name is looked at.
struct InlineModules<'a> {
    file: &'a SourceFile,
    violations: &'a mut Vec<Violation>,
}

impl<'ast> Visit<'ast> for InlineModules<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        if module.content.is_some() && EMPTY_NAMES.contains(&name.as_str()) {
            let line = module.ident.span().start().line;
            self.violations.push(self.file.at(line, format!("{name} names no role")));
        }
        visit::visit_item_mod(self, module);
    }
}

pub fn top_level(files: &[SourceFile]) -> Vec<Violation> {
    let found: BTreeSet<&str> = files.iter().filter_map(|file| file.path.split('/').next()).collect();
    let expected = BTreeSet::from(TOP_LEVEL);
    let says =
        |name: &&str, what: &str| Violation { path: (*name).to_owned(), line: 0, what: what.to_owned() };
    let unexpected = found.difference(&expected).map(|name| says(name, "does not belong at the top level"));
    let missing = expected.difference(&found).map(|name| says(name, "is missing"));
    unexpected.chain(missing).collect()
}

pub fn public_registry(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.path == "Cargo.lock") {
        for (index, line) in file.text.lines().enumerate() {
            let Some(source) = line.strip_prefix("source = ") else { continue };
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

    #[test]
    fn a_name_without_a_role_is_refused() {
        check_caught(role_names, SourceFile::sample("runtime/data/src/utils.rs", ""), "utils names no role");
        check_caught(role_names, SourceFile::sample("tests/tests/common/mod.rs", ""), "common names no role");
        check_caught(
            role_names,
            SourceFile::sample("runtime/a.rs", "\nmod helpers {}"),
            "a.rs:2: helpers names no role",
        );
        check_passes(
            role_names,
            SourceFile::sample("runtime/data/src/merge.rs", "mod heap { struct Manager; }"),
        );
    }

    #[test]
    fn the_top_level_is_complete_and_has_nothing_more() {
        let exact: Vec<SourceFile> = TOP_LEVEL.iter().map(|name| SourceFile::sample(name, "")).collect();
        assert!(top_level(&exact).is_empty());
        let missing = top_level(&exact[1..]);
        assert_eq!(missing[0].to_string(), ".ci: is missing");
        let more = top_level(
            &[exact, vec![SourceFile::sample("scripts/run.sh", "")]]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>(),
        );
        assert_eq!(more[0].to_string(), "scripts: does not belong at the top level");
    }

    #[test]
    fn a_private_registry_is_refused() {
        let lock =
            |source: &str| SourceFile::sample("Cargo.lock", &format!("[[package]]\nsource = \"{source}\"\n"));
        check_passes(public_registry, lock(PUBLIC_REGISTRY));
        check_caught(
            public_registry,
            lock("registry+https://mirror.example/index"),
            "Cargo.lock:2: comes from",
        );
    }
}
