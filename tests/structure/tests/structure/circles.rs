//! Forbids import cycles between the top-level modules of a crate. Inside such a module, two files may import
//! each other, but longer cycles are forbidden: those files should be merged, or their common part moved to a
//! lower module. Files in deeper folders count as the module of their folder. `layers` checks dependencies
//! between crates.

use super::calls::WithoutTests;
use super::files::{SourceFile, Violation};
use super::paths::{in_imports, in_tokens};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use syn::visit_mut::VisitMut;

/// Modules with larger cycles than allowed that existed before this rule. These numbers may only shrink.
const KNOWN: [(&str, usize); 3] = [
    ("runtime/cli/src/sim", 4),
    ("runtime/sim/src/workload", 3),
    ("runtime/web/src/routes", 5),
];

/// The maximum number of modules in a cycle inside another module.
const INSIDE: usize = 2;

/// The file that declares the modules, as one of them; modules must not import its items.
const ROOT: &str = "the file above";

/// The place where one module imports another.
struct Arrow<'a> {
    file: &'a SourceFile,
    line: usize,
}

/// From each module to the modules that it imports.
type Arrows<'a> = BTreeMap<String, BTreeMap<String, Arrow<'a>>>;

/// The names of a module and its ancestors; empty for the root of a crate.
type Path = Vec<String>;

/// The modules of one binary or library, with their files.
#[derive(Default)]
struct Crate<'a> {
    files: Vec<(Path, &'a SourceFile, syn::File)>,
    modules: BTreeSet<Path>,
    /// The module that defines an imported name, by the importing module and the name.
    imported: BTreeMap<(Path, String), Path>,
}

pub fn no_circles(files: &[SourceFile]) -> Vec<Violation> {
    circles_but(&KNOWN, files)
}

fn circles_but(known: &[(&str, usize)], files: &[SourceFile]) -> Vec<Violation> {
    let (crates, mut violations) = crates(files);
    for (folder, one) in &crates {
        violations.extend(circles(&one.arrows(&[])));
        for module in one.modules.iter().filter(|module| module.len() == 1) {
            let path = format!("{folder}/{}", module[0]);
            let arrows = one.arrows(module);
            let bound = bound_together(&arrows);
            let allowed = known
                .iter()
                .find(|(known, _)| *known == path)
                .map_or(INSIDE, |(_, count)| *count);
            let said = match bound.len() {
                count if count > allowed => format!("in a circle: {}", bound.join(", ")),
                count if count < allowed && allowed > INSIDE => "fewer than on the list".to_owned(),
                _ => continue,
            };
            let what = format!("{} modules {said}", bound.len());
            violations.push(Violation {
                path,
                line: 0,
                what,
            });
        }
    }
    violations
}

/// Returns all crates by the folder of their sources, and the files that cannot be parsed.
fn crates(files: &[SourceFile]) -> (BTreeMap<String, Crate<'_>>, Vec<Violation>) {
    let (mut crates, mut violations): (BTreeMap<String, Crate>, _) = (BTreeMap::new(), Vec::new());
    for file in files
        .iter()
        .filter(|file| file.is_rust() && !file.is_test())
    {
        let Some((folder, module)) = place(&file.path) else {
            continue;
        };
        match file.syntax() {
            Ok(syntax) => {
                let mut syntax = syntax.clone();
                WithoutTests.visit_file_mut(&mut syntax);
                crates
                    .entry(folder)
                    .or_default()
                    .files
                    .push((module, file, syntax));
            }
            Err(violation) => violations.push(violation),
        }
    }
    for one in crates.values_mut() {
        one.learn_modules();
        one.learn_imports();
    }
    (crates, violations)
}

/// Returns the folder of the crate that a source file belongs to, and its module.
fn place(path: &str) -> Option<(String, Path)> {
    let (folder, within) = path.split_once("/src/")?;
    let mut modules: Vec<&str> = within.strip_suffix(".rs")?.split('/').collect();
    let mut of_crate = format!("{folder}/src");
    if modules[0] == "bin" && modules.len() > 1 {
        of_crate = format!("{folder}/src/bin/{}", modules[1]);
        modules.drain(..2);
    }
    if modules.last().is_some_and(|last| {
        *last == "mod" || (modules.len() == 1 && ["lib", "main"].contains(last))
    }) {
        modules.pop();
    }
    Some((of_crate, modules.into_iter().map(str::to_owned).collect()))
}

impl<'a> Crate<'a> {
    /// Removes the files of test-only modules, which no remaining file declares.
    fn learn_modules(&mut self) {
        self.modules.insert(Vec::new());
        for (module, _, syntax) in &self.files {
            declare(module, &syntax.items, &mut self.modules);
        }
        let declared = self.modules.clone();
        let is_declared =
            |module: &[String]| (0..=module.len()).all(|len| declared.contains(&module[..len]));
        self.modules.retain(|module| is_declared(module));
        self.files.retain(|(module, _, _)| is_declared(module));
        self.files.sort_by(|left, right| left.0.cmp(&right.0));
    }

    fn learn_imports(&mut self) {
        let mut imported = BTreeMap::new();
        for (module, _, syntax) in &self.files {
            for named in in_imports(syntax) {
                let from = self.target(module, &named.segments);
                let inside =
                    from.filter(|from| from.len() > module.len() && from.starts_with(module));
                if let (Some(from), Some(name)) = (inside, named.segments.last()) {
                    imported.insert((module.clone(), name.clone()), from);
                }
            }
        }
        self.imported = imported;
    }

    /// Returns the imports between the modules inside this one.
    fn arrows(&self, within: &[String]) -> Arrows<'a> {
        let mut arrows = Arrows::new();
        for (module, file, syntax) in self
            .files
            .iter()
            .filter(|(module, _, _)| module.starts_with(within))
        {
            self.add(within, module, file, &syntax.items, &mut arrows);
        }
        arrows
    }

    /// Adds the imports of these items and of nested modules.
    fn add(
        &self,
        within: &[String],
        module: &[String],
        file: &'a SourceFile,
        items: &[syn::Item],
        arrows: &mut Arrows<'a>,
    ) {
        let inner = |module: &[String]| {
            module
                .get(within.len())
                .map_or(ROOT, String::as_str)
                .to_owned()
        };
        let from = inner(module);
        for item in items {
            if let syn::Item::Mod(syn::ItemMod { ident, content, .. }) = item {
                let items = content.as_ref().map_or(&[][..], |(_, items)| items);
                self.add(
                    within,
                    &[module, &[ident.to_string()]].concat(),
                    file,
                    items,
                    arrows,
                );
                continue;
            }
            let alone = syn::File {
                shebang: None,
                frontmatter: None,
                attrs: Vec::new(),
                items: vec![item.clone()],
            };
            // A single word may be a variable.
            let paths = in_tokens(item.to_token_stream())
                .into_iter()
                .filter(|named| named.segments.len() > 1);
            for named in paths.chain(in_imports(&alone)) {
                let target = self
                    .target(module, &named.segments)
                    .filter(|to| to.starts_with(within));
                let Some(to) = target.map(|to| inner(&to)).filter(|to| *to != from) else {
                    continue;
                };
                let known = arrows.entry(from.clone()).or_default();
                known.entry(to).or_insert(Arrow {
                    file,
                    line: named.line,
                });
            }
        }
    }

    /// Returns the module that defines a name; `None` if it is from another crate.
    fn target(&self, module: &[String], segments: &[String]) -> Option<Path> {
        let ups = segments.iter().take_while(|name| *name == "super").count();
        let (from, names) = match segments.first()?.as_str() {
            "crate" => (&[][..], &segments[1..]),
            "super" => (&module[..module.len().checked_sub(ups)?], &segments[ups..]),
            "self" => (module, &segments[1..]),
            _ => (module, segments),
        };
        let mut target = from.to_vec();
        for (at, name) in names.iter().enumerate() {
            let inner = loop {
                let inner = [&target[..], std::slice::from_ref(name)].concat();
                if self.modules.contains(&inner) {
                    break Some(inner);
                }
                match self.imported.get(&(target.clone(), name.clone())) {
                    Some(from) => target.clone_from(from),
                    None => break None,
                }
            };
            match inner {
                Some(inner) => target = inner,
                // A name without a prefix that this module does not define.
                None if at == 0 && names.len() == segments.len() && target == from => return None,
                None => return Some(target),
            }
        }
        (!names.is_empty()).then_some(target)
    }
}

/// Returns the modules that items declare.
fn declare(module: &[String], items: &[syn::Item], declared: &mut BTreeSet<Path>) {
    for item in items {
        if let syn::Item::Mod(inner) = item {
            let path = [module, &[inner.ident.to_string()]].concat();
            if let Some((_, items)) = &inner.content {
                declare(&path, items, declared);
            }
            declared.insert(path);
        }
    }
}

/// Returns the largest set of modules that all reach each other, without the file above.
fn bound_together<'b>(arrows: &'b Arrows<'_>) -> Vec<&'b str> {
    let reached = |from: &'b str| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            let next = arrows
                .get(at)
                .into_iter()
                .flat_map(BTreeMap::keys)
                .map(String::as_str);
            open.extend(next.filter(|next| *next != ROOT && reached.insert(*next)));
        }
        reached
    };
    let names = arrows
        .keys()
        .map(String::as_str)
        .filter(|name| *name != ROOT);
    let reach: BTreeMap<&str, BTreeSet<&str>> = names.map(|name| (name, reached(name))).collect();
    let bound = |name: &&str| {
        let both = |other: &&&str| reach.get(**other).is_some_and(|back| back.contains(name));
        reach[name]
            .iter()
            .filter(both)
            .copied()
            .collect::<Vec<&str>>()
    };
    reach
        .keys()
        .map(bound)
        .max_by_key(Vec::len)
        .unwrap_or_default()
}

/// Returns a shortest cycle through each module that is in one, without modules of cycles that were already
/// found.
fn circles(arrows: &Arrows<'_>) -> Vec<Violation> {
    let mut told = BTreeSet::new();
    let mut violations = Vec::new();
    for from in arrows.keys() {
        let Some(circle) =
            way(arrows, from).filter(|circle| circle.iter().all(|name| !told.contains(name)))
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

/// Returns the shortest path from a module back to itself.
fn way<'b>(arrows: &'b Arrows<'_>, start: &'b str) -> Option<Vec<&'b str>> {
    let mut came_from = BTreeMap::new();
    let mut open = VecDeque::from([start]);
    while let Some(at) = open.pop_front() {
        for next in arrows
            .get(at)
            .into_iter()
            .flat_map(BTreeMap::keys)
            .map(String::as_str)
        {
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

    fn found_but(known: &[(&str, usize)], files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> = files
            .iter()
            .map(|(path, text)| SourceFile::sample(&format!("runtime/one/src/{path}"), text))
            .collect();
        circles_but(known, &files)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        found_but(&[], files)
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
    fn circle_is_reported_with_file_of_each_edge() {
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
        check_caught(
            &three,
            "a -> b (runtime/one/src/a.rs:1), b -> c (runtime/one/src/b.rs:1), c -> a",
        );
    }

    #[test]
    fn one_way_imports_are_accepted() {
        check_passes(&[
            TWO,
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use other::a::A; pub(crate) struct B;"),
        ]);
        check_passes(&[
            ("lib.rs", "mod a;"),
            ("a/mod.rs", "mod b;"),
            ("a/b/mod.rs", "mod c;\nmod d;"),
            ("a/b/c.rs", "use super::d::D;"),
            ("a/b/d.rs", "use crate::a::b::c::C;"),
        ]);
    }

    #[test]
    fn unlisted_circle_inside_module_is_found() {
        let inside = [
            ("lib.rs", "mod a; pub use a::c::C;"),
            (
                "a/mod.rs",
                "mod b;\nmod c;\nmod d;\nuse b::B; pub struct A;",
            ),
            ("a/b.rs", "use crate::C;"),
            ("a/c.rs", "use super::d::D;"),
            ("a/d.rs", "use super::{A, B};"),
        ];
        check_caught(&inside, "runtime/one/src/a: 3 modules in a circle: b, c, d");
        assert_eq!(found_but(&[("runtime/one/src/a", 3)], &inside), [""; 0]);
        let fewer = "runtime/one/src/a: 3 modules fewer than on the list";
        assert_eq!(found_but(&[("runtime/one/src/a", 4)], &inside), [fewer]);
        // Two modules may, together with the file above.
        check_passes(&[
            inside[0],
            inside[1],
            inside[2],
            ("a/c.rs", "use super::B;"),
            ("a/d.rs", "use super::A;"),
        ]);
    }

    #[test]
    fn imports_of_tests_are_ignored() {
        check_passes(&[
            TWO,
            ("a.rs", "use crate::b::B; #[cfg(test)] mod tests;"),
            ("a/tests.rs", "use crate::b::B;"),
            (
                "b.rs",
                "#[cfg(test)] mod tests { use crate::a::A; } #[cfg(test)] use crate::a::A;",
            ),
        ]);
        check_passes(&[
            ("lib.rs", "#[cfg(test)] mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "struct B;"),
        ]);
    }

    #[test]
    fn name_from_root_counts_as_its_module() {
        check_caught(
            &[
                ("lib.rs", "mod a; mod b; pub use a::{A, f as g};"),
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "use crate::A;"),
            ],
            "a -> b",
        );
        check_caught(
            &[
                ("main.rs", "mod a;\nuse a::A;\npub enum Failed {}"),
                ("a.rs", "use crate::Failed;"),
            ],
            "a -> the file above (runtime/one/src/a.rs:1), the file above -> a (runtime/one/src/main.rs:2)",
        );
        check_passes(&[
            ("lib.rs", "mod a; mod b; pub use b::B;"),
            ("a.rs", "use crate::B;"),
            ("b.rs", ""),
        ]);
    }

    #[test]
    fn binary_counts_as_own_crate() {
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
