//! One name for one thing: no two crates show types of the same name, and a word that many ideas
//! once had names one. Owns finding what a crate shows at its root and on its shelves. What a name
//! should be, readers decide.

use super::files::{SourceFile, Violation};
use proc_macro2::TokenTree;
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

/// The names of the types that a file defines, in macros such as `listed!` too.
fn types_in(syntax: &syn::File) -> impl Iterator<Item = String> {
    syntax.items.iter().flat_map(|item| match item {
        Item::Struct(one) => vec![one.ident.to_string()],
        Item::Enum(one) => vec![one.ident.to_string()],
        Item::Trait(one) => vec![one.ident.to_string()],
        Item::Type(one) => vec![one.ident.to_string()],
        Item::Macro(one) => types_made(&one.mac, |_| true),
        _ => Vec::new(),
    })
}

/// The types that a macro is told to make: what is called `struct` or `enum` in it. `shown` is asked what
/// stands before.
fn types_made(made: &syn::Macro, shown: impl Fn(Option<&TokenTree>) -> bool) -> Vec<String> {
    // What a macro is made of is no type yet.
    if made.path.is_ident("macro_rules") {
        return Vec::new();
    }
    let tokens: Vec<TokenTree> = made.tokens.clone().into_iter().collect();
    let is_kind = |token: &TokenTree| ["struct", "enum"].contains(&token.to_string().as_str());
    let named = tokens.windows(2).enumerate().filter(|(_, pair)| is_kind(&pair[0]));
    let before = |at: usize| at.checked_sub(1).map(|at| &tokens[at]);
    named.filter(|(at, _)| shown(before(*at))).map(|(_, pair)| pair[1].to_string()).collect()
}

/// The type that an item shows by itself, or those.
fn shown_by(item: &Item) -> Vec<String> {
    match item {
        Item::Struct(one) if is_public(&one.vis) => vec![one.ident.to_string()],
        Item::Enum(one) if is_public(&one.vis) => vec![one.ident.to_string()],
        Item::Trait(one) if is_public(&one.vis) => vec![one.ident.to_string()],
        Item::Type(one) if is_public(&one.vis) => vec![one.ident.to_string()],
        Item::Macro(one) => {
            types_made(&one.mac, |before| before.is_some_and(|before| before.to_string() == "pub"))
        }
        _ => Vec::new(),
    }
}

/// The types that files of a crate define; files that cannot be parsed are other rules' business.
fn defined(folder: &str, files: &[SourceFile]) -> BTreeSet<String> {
    let inside = files.iter().filter(|file| file.path.starts_with(folder) && file.is_rust());
    inside.filter_map(|file| file.syntax().ok()).flat_map(types_in).collect()
}

/// The types that a crate defines and shows.
fn types_of(root: &SourceFile, files: &[SourceFile]) -> BTreeSet<String> {
    let folder = root.path.strip_suffix("lib.rs").unwrap_or_default();
    let module = |of: &SourceFile, name: &str| {
        let beside = of.path.strip_suffix("lib.rs").or_else(|| of.path.strip_suffix("mod.rs"));
        let beside = beside.map_or_else(|| of.path.replace(".rs", "/"), str::to_owned);
        let paths = [format!("{beside}{name}.rs"), format!("{beside}{name}/mod.rs")];
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
                    let own_globs = globs.iter().filter(|path| is_own(path));
                    waiting.extend(own_globs.filter_map(|path| module(file, &path[0])));
                }
                Item::Mod(inner) if is_public(&inner.vis) => {
                    waiting.extend(module(file, &inner.ident.to_string()));
                }
                item => names.extend(shown_by(item)),
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
    fn a_type_is_shown_also_on_a_shelf_of_a_shelf_and_by_a_macro() {
        let files = [
            ("runtime/a/src/lib.rs", "pub mod shelf; listed! { pub enum Kind { A = \"a\" } }"),
            ("runtime/a/src/shelf/mod.rs", "pub mod upper; struct Upper;"),
            ("runtime/a/src/shelf/upper.rs", "pub struct Upper; listed! { enum Hidden { A = \"a\" } }"),
            ("runtime/b/src/lib.rs", "pub mod shelf; pub type Hidden = u8; pub enum Kind {}"),
            ("runtime/b/src/shelf.rs", "pub mod upper;"),
            ("runtime/b/src/shelf/upper.rs", "fields! { pub struct Upper { } }"),
        ];
        let expected = ["Kind", "Upper"].map(|name| {
            format!("runtime/a/src/lib.rs: {name} is shown by runtime/a/src/lib.rs and runtime/b/src/lib.rs")
        });
        assert_eq!(found(&files), expected);
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
