//! Which modules of one crate import which: an order with a bottom, not a circle.
//!
//! Owns reading the arrows between a crate's top-level modules from what their files name. Files of one
//! folder are one module here: those that share a type may name each other. Which crates may name which is
//! the business of `layers`.

use super::calls::WithoutTests;
use super::files::{SourceFile, Violation};
use super::paths::{in_imports, in_tokens};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use syn::visit_mut::VisitMut;

/// The file of a crate that declares its modules, as a module of its own: what is defined there, others may
/// not import.
const ROOT: &str = "the crate's root";

/// Where a module is named that another one imports.
struct Arrow<'a> {
    file: &'a SourceFile,
    line: usize,
}

/// From each module to those it names.
type Arrows<'a> = BTreeMap<String, BTreeMap<String, Arrow<'a>>>;

/// The files of one binary or library, each with its path of modules, which is empty for the root.
#[derive(Default)]
struct Crate<'a> {
    files: Vec<(Vec<String>, &'a SourceFile, syn::File)>,
    /// Top-level modules.
    modules: BTreeSet<String>,
    /// The module that a name of the root comes from.
    exported: BTreeMap<String, String>,
}

pub fn no_circles(files: &[SourceFile]) -> Vec<Violation> {
    let (crates, mut violations) = crates(files);
    violations.extend(crates.values().flat_map(|one| circles(&one.arrows())));
    violations
}

/// All crates by the folder of their sources, and what could not be parsed.
fn crates(files: &[SourceFile]) -> (BTreeMap<String, Crate<'_>>, Vec<Violation>) {
    let (mut crates, mut violations): (BTreeMap<String, Crate>, _) = (BTreeMap::new(), Vec::new());
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        let Some((folder, modules)) = place(&file.path) else { continue };
        match file.syntax() {
            Ok(syntax) => {
                let mut syntax = syntax.clone();
                let one = crates.entry(folder).or_default();
                WithoutTests.visit_file_mut(&mut syntax);
                one.files.push((modules, file, syntax));
            }
            Err(violation) => violations.push(violation),
        }
    }
    for one in crates.values_mut() {
        one.leave_out_undeclared();
        one.learn_root();
    }
    (crates, violations)
}

/// The crate that a source file belongs to, and its path of modules in it.
fn place(path: &str) -> Option<(String, Vec<String>)> {
    let (folder, within) = path.split_once("/src/")?;
    let mut modules: Vec<&str> = within.strip_suffix(".rs")?.split('/').collect();
    let mut of_crate = folder.to_owned();
    if modules[0] == "bin" && modules.len() > 1 {
        of_crate = format!("{folder}/src/bin/{}", modules[1]);
        modules.drain(..2);
    }
    if modules
        .last()
        .is_some_and(|last| *last == "mod" || (modules.len() == 1 && ["lib", "main"].contains(last)))
    {
        modules.pop();
    }
    Some((of_crate, modules.into_iter().map(str::to_owned).collect()))
}

impl<'a> Crate<'a> {
    /// Leaves out the files of modules that only tests have: nothing that is left declares them.
    fn leave_out_undeclared(&mut self) {
        let mut declared = BTreeSet::from([Vec::new()]);
        for (path, _, syntax) in &self.files {
            declare(path, &syntax.items, &mut declared);
        }
        let is_declared = |path: &[String]| (0..=path.len()).all(|len| declared.contains(&path[..len]));
        self.files.retain(|(path, _, _)| is_declared(path));
        self.files.sort_by(|left, right| left.0.cmp(&right.0));
    }

    fn learn_root(&mut self) {
        for (path, _, syntax) in &self.files {
            self.modules.extend(path.first().cloned());
            let imports = if path.is_empty() { in_imports(syntax) } else { Vec::new() };
            for named in imports {
                let module = named.segments.iter().find(|name| !["crate", "self"].contains(&name.as_str()));
                if let (Some(module), Some(name)) = (module, named.segments.last()) {
                    self.exported.insert(name.clone(), module.clone());
                }
            }
        }
        let modules = &self.modules;
        self.exported.retain(|_, module| modules.contains(module));
    }

    fn arrows(&self) -> Arrows<'a> {
        let mut arrows = Arrows::new();
        for (path, file, syntax) in &self.files {
            self.add(path, file, &syntax.items, &mut arrows);
        }
        arrows
    }

    /// Adds what these items of a module name, and those of the modules that stand inside it.
    fn add(&self, path: &[String], file: &'a SourceFile, items: &[syn::Item], arrows: &mut Arrows<'a>) {
        for item in items {
            if let syn::Item::Mod(syn::ItemMod { ident, content, .. }) = item {
                let items = content.as_ref().map_or(&[][..], |(_, items)| items);
                self.add(&[path, &[ident.to_string()]].concat(), file, items, arrows);
                continue;
            }
            let alone = syn::File { shebang: None, attrs: Vec::new(), items: vec![item.clone()] };
            let from = path.first().map_or(ROOT, String::as_str);
            // A word that stands alone may be a variable's.
            let paths =
                in_tokens(item.to_token_stream()).into_iter().filter(|named| named.segments.len() > 1);
            for named in paths.chain(in_imports(&alone)) {
                let Some(to) = self.target(path, &named.segments).filter(|to| *to != from) else { continue };
                let line = named.line;
                let known = arrows.entry(from.to_owned()).or_default();
                known.entry(to.to_owned()).or_insert(Arrow { file, line });
            }
        }
    }

    /// The top-level module that a name leads to from a module; none for what is not of this crate.
    fn target<'b>(&'b self, path: &[String], segments: &'b [String]) -> Option<&'b str> {
        let ups = segments.iter().take_while(|name| *name == "super").count();
        let (base, rest): (&[String], _) = match segments.first()?.as_str() {
            "crate" => (&[], &segments[1..]),
            "super" => (&path[..path.len().checked_sub(ups)?], &segments[ups..]),
            "self" => (path, &segments[1..]),
            _ if path.is_empty() => (&[], segments),
            _ => return None,
        };
        if !base.is_empty() {
            return None;
        }
        let name = rest.first()?;
        let of_root = if path.is_empty() { None } else { Some(ROOT) };
        self.modules.get(name).or_else(|| self.exported.get(name)).map(String::as_str).or(of_root)
    }
}

/// The modules that items declare, each with its path.
fn declare(path: &[String], items: &[syn::Item], declared: &mut BTreeSet<Vec<String>>) {
    for item in items {
        if let syn::Item::Mod(module) = item {
            let path = [path, &[module.ident.to_string()]].concat();
            if let Some((_, items)) = &module.content {
                declare(&path, items, declared);
            }
            declared.insert(path);
        }
    }
}

/// A shortest circle through each module that is in one, but for those of a circle that was found before.
fn circles(arrows: &Arrows<'_>) -> Vec<Violation> {
    let (mut told, mut violations) = (BTreeSet::new(), Vec::new());
    for from in arrows.keys() {
        let Some(circle) = way(arrows, from).filter(|circle| circle.iter().all(|name| !told.contains(name)))
        else {
            continue;
        };
        let mut said = Vec::new();
        for (at, name) in circle.iter().enumerate() {
            let next = circle[(at + 1) % circle.len()];
            let Arrow { file, line } = &arrows[*name][next];
            said.push(format!("{name} -> {next} ({}:{line})", file.path));
        }
        let Arrow { file, line } = &arrows[circle[0]][circle[1 % circle.len()]];
        violations.push(file.at(*line, format!("modules in a circle: {}", said.join(", "))));
        told.extend(circle);
    }
    violations
}

/// The shortest way from a module back to itself.
fn way<'b>(arrows: &'b Arrows<'_>, start: &'b str) -> Option<Vec<&'b str>> {
    let mut came_from = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        for next in arrows.get(at).into_iter().flat_map(BTreeMap::keys).map(String::as_str) {
            if next == start {
                let mut way = vec![at];
                while let Some(before) = came_from.get(way[way.len() - 1]) {
                    way.push(*before);
                }
                way.reverse();
                return Some(way);
            }
            if !came_from.contains_key(next) {
                came_from.insert(next, at);
                open.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile::sample(&format!("runtime/one/src/{path}"), text))
            .collect();
        no_circles(&files).iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn check_caught(files: &[(&str, &str)], expected: &str) {
        let found = found(files);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }

    #[track_caller]
    fn check_passes(files: &[(&str, &str)]) {
        assert_eq!(found(files), [""; 0]);
    }

    const TWO: (&str, &str) = ("lib.rs", "mod a;\nmod b;");

    #[test]
    fn a_circle_is_told_with_a_file_for_each_arrow() {
        check_caught(
            &[
                TWO,
                ("a/mod.rs", "mod c;"),
                ("a/c.rs", "\nuse crate::b::B;"),
                ("b.rs", "fn f() { crate::a::f() }"),
            ],
            "modules in a circle: a -> b (runtime/one/src/a/c.rs:2), b -> a (runtime/one/src/b.rs:1)",
        );
        let three = [
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "use crate::{b::B, d};"),
            ("b.rs", "use super::c;"),
            ("c.rs", "type C = Vec<super::a::A>;"),
        ];
        check_caught(&three, "a -> b (runtime/one/src/a.rs:1), b -> c (runtime/one/src/b.rs:1), c -> a");
    }

    #[test]
    fn one_way_is_no_circle_nor_is_what_files_of_a_folder_share() {
        check_passes(&[TWO, ("a.rs", "use crate::b::B;"), ("b.rs", "use other::a::A; pub(crate) struct B;")]);
        check_passes(&[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b;\nmod c;"),
            ("a/b.rs", "use super::c::C;"),
            ("a/c.rs", "use crate::a::b::B;"),
        ]);
    }

    #[test]
    fn what_tests_import_does_not_count() {
        check_passes(&[
            TWO,
            ("a.rs", "use crate::b::B; #[cfg(test)] mod tests;"),
            ("a/tests.rs", "use crate::b::B;"),
            ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; } #[cfg(test)] use crate::a::A;"),
        ]);
        check_passes(&[
            ("lib.rs", "#[cfg(test)] mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "struct B;"),
        ]);
    }

    #[test]
    fn a_name_of_the_root_counts_as_where_it_comes_from() {
        check_caught(
            &[
                ("lib.rs", "mod a; mod b; pub use a::{A, f as g};"),
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "use crate::A;"),
            ],
            "a -> b",
        );
        check_caught(
            &[("main.rs", "mod a;\nuse a::A;\npub enum Failed {}"), ("a.rs", "use crate::Failed;")],
            "a -> the crate's root (runtime/one/src/a.rs:1), the crate's root -> a (runtime/one/src/main.rs:2)",
        );
        check_passes(&[("lib.rs", "mod a; mod b; pub use b::B;"), ("a.rs", "use crate::B;"), ("b.rs", "")]);
    }

    #[test]
    fn a_binary_is_a_crate_of_its_own() {
        check_passes(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "use crate::b;"),
            ("bin/b/main.rs", "mod a; use a::A;"),
        ]);
        check_caught(
            &[
                ("bin/b/main.rs", "mod a; mod c;"),
                ("bin/b/a.rs", "use crate::c::C;"),
                ("bin/b/c.rs", "use crate::a::A;"),
            ],
            "a -> c (runtime/one/src/bin/b/a.rs:1)",
        );
    }
}
