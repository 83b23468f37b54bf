//! One name for one thing: no two crates show types of the same name, and a word that many ideas
//! once had names one. Owns finding what a crate shows at its root and on its shelves. What a name
//! should be, readers decide.

use super::files::{SourceFile, Violation};
use std::collections::{BTreeMap, BTreeSet};
use syn::{Item, UseTree, Visibility};

/// Names that two crates show, and why nobody takes one for the other.
const SHARED: [(&str, &str); 1] =
    [("Job", "what a user writes, and what a scheduler sees of one, never meet in one file")];

pub fn one_type_each(files: &[SourceFile]) -> Vec<Violation> {
    let mut shown: BTreeMap<String, Vec<&SourceFile>> = BTreeMap::new();
    for root in files.iter().filter(|file| file.path.ends_with("/src/lib.rs") && !file.is_test()) {
        for name in types_of(root, files) {
            shown.entry(name).or_default().push(root);
        }
    }
    let twice = shown
        .into_iter()
        .filter(|(name, roots)| roots.len() > 1 && !SHARED.iter().any(|(shared, _)| shared == name));
    twice
        .map(|(name, roots)| {
            let paths: Vec<&str> = roots.iter().map(|root| root.path.as_str()).collect();
            roots[0].at(0, format!("{name} is shown by {}", paths.join(" and ")))
        })
        .collect()
}

/// Words so general that several ideas were once called so; each names one type at most, also where
/// it is private.
const GENERAL: [&str; 11] =
    ["Arrival", "Gate", "Line", "Order", "Place", "Refusal", "Stage", "Standing", "State", "Turn", "Wish"];

pub fn one_idea_each(files: &[SourceFile]) -> Vec<Violation> {
    let mut called_so: BTreeMap<String, Vec<&SourceFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| file.is_rust() && !file.is_test()) {
        let names =
            file.syntax().map(|syntax| types_in(syntax).collect()).unwrap_or_else(|_| BTreeSet::new());
        for name in names.into_iter().filter(|name| GENERAL.contains(&name.as_str())) {
            called_so.entry(name).or_default().push(file);
        }
    }
    let twice = called_so.into_iter().filter(|(_, at)| at.len() > 1);
    twice
        .map(|(word, at)| {
            let paths: Vec<&str> = at.iter().map(|file| file.path.as_str()).collect();
            at[0].at(0, format!("{word} is a type in {}", paths.join(" and ")))
        })
        .collect()
}

/// The names of the types that a file defines.
fn types_in(syntax: syn::File) -> impl Iterator<Item = String> {
    let name = |item| match item {
        Item::Struct(one) => Some(one.ident),
        Item::Enum(one) => Some(one.ident),
        Item::Trait(one) => Some(one.ident),
        Item::Type(one) => Some(one.ident),
        _ => None,
    };
    syntax.items.into_iter().filter_map(name).map(|ident| ident.to_string())
}

/// The types that files of a crate define; files that cannot be parsed are other rules' business.
fn defined(folder: &str, files: &[SourceFile]) -> BTreeSet<String> {
    let inside = files.iter().filter(|file| file.path.starts_with(folder) && file.is_rust());
    inside.filter_map(|file| file.syntax().ok()).flat_map(types_in).collect()
}

/// The types that a crate defines and shows.
fn types_of(root: &SourceFile, files: &[SourceFile]) -> BTreeSet<String> {
    let folder = root.path.strip_suffix("lib.rs").unwrap_or_default();
    let module = |name: &str| {
        let paths = [format!("{folder}{name}.rs"), format!("{folder}{name}/mod.rs")];
        files.iter().find(|file| paths.contains(&file.path))
    };
    let mut names = BTreeSet::new();
    let mut waiting = vec![root];
    while let Some(file) = waiting.pop() {
        let Ok(syntax) = file.syntax() else { continue };
        for item in &syntax.items {
            match item {
                Item::Use(import) if is_public(&import.vis) => {
                    let (mut own, mut globs) = (Vec::new(), Vec::new());
                    leaves(&import.tree, &mut Vec::new(), &mut own, &mut globs);
                    // What is taken from another crate is that one's.
                    let is_own = |path: &[String]| !path[0].starts_with("napreduce");
                    names.extend(
                        own.into_iter().filter(|path| is_own(path)).filter_map(|mut path| path.pop()),
                    );
                    waiting
                        .extend(globs.iter().filter(|path| is_own(path)).filter_map(|path| module(&path[0])));
                }
                Item::Mod(inner) if is_public(&inner.vis) => waiting.extend(module(&inner.ident.to_string())),
                _ => {}
            }
        }
    }
    let defined = defined(folder, files);
    names.retain(|name| defined.contains(name));
    names
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// The full paths that an import ends in, and those of which it takes everything.
fn leaves(
    tree: &UseTree,
    path: &mut Vec<String>,
    names: &mut Vec<Vec<String>>,
    globs: &mut Vec<Vec<String>>,
) {
    let whole = |path: &[String], last: &syn::Ident| [path, &[last.to_string()]].concat();
    match tree {
        UseTree::Path(inner) => {
            if inner.ident != "self" && inner.ident != "crate" {
                path.push(inner.ident.to_string());
                leaves(&inner.tree, path, names, globs);
                path.pop();
            } else {
                leaves(&inner.tree, path, names, globs);
            }
        }
        UseTree::Name(name) => names.push(whole(path, &name.ident)),
        UseTree::Rename(name) => names.push(whole(path, &name.rename)),
        UseTree::Glob(_) => globs.push(path.clone()),
        UseTree::Group(group) => {
            for inner in &group.items {
                leaves(inner, path, names, globs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> =
            files.iter().map(|(path, text)| SourceFile::sample(path, text)).collect();
        one_type_each(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_type_that_two_crates_show_is_told() {
        let files = [
            ("runtime/a/src/lib.rs", "mod x; mod y; pub use x::{Run, y}; pub use y::*;"),
            ("runtime/a/src/x.rs", "pub struct Run;"),
            ("runtime/a/src/y.rs", "pub use self::z::Turn; enum Turn {}"),
            ("runtime/b/src/lib.rs", "pub mod shelf;"),
            ("runtime/b/src/shelf/mod.rs", "pub use super::inner::{Turn, other}; trait Turn {}"),
            ("runtime/c/src/lib.rs", "pub use x::Run; type Run = u8;"),
        ];
        assert_eq!(
            found(&files),
            [
                "runtime/a/src/lib.rs: Run is shown by runtime/a/src/lib.rs and runtime/c/src/lib.rs",
                "runtime/a/src/lib.rs: Turn is shown by runtime/a/src/lib.rs and runtime/b/src/lib.rs",
            ]
        );
    }

    #[test]
    fn what_is_passed_on_or_kept_inside_is_not_shown_twice() {
        let files = [
            ("runtime/a/src/lib.rs", "mod x; pub use x::Run; pub use x::MAX; struct Run;"),
            ("runtime/b/src/lib.rs", "pub use napreduce_a::Run; pub(crate) use x::Turn; struct Turn;"),
            ("runtime/c/src/lib.rs", "mod x; pub(crate) use x::Run; struct Run; struct Turn;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }

    #[test]
    fn a_general_word_names_one_idea_also_inside_a_crate() {
        let files = [
            ("runtime/a/src/x.rs", "struct Order; struct Entry;"),
            ("runtime/a/src/y.rs", "type Order = u8; struct Entry;"),
            ("runtime/b/tests/z.rs", "enum Stage {}"),
            ("runtime/b/src/z.rs", "enum Stage {}"),
        ];
        let files: Vec<SourceFile> =
            files.iter().map(|(path, text)| SourceFile::sample(path, text)).collect();
        let found: Vec<String> = one_idea_each(&files).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["runtime/a/src/x.rs: Order is a type in runtime/a/src/x.rs and runtime/a/src/y.rs"]
        );
    }
}
