//! What a user of `napreduce` can name: the items at its root and on its public shelves, with their
//! documentation. Owns finding them by name, without the compiler. What is wrong with an item is for the
//! rules to say.

use super::files::SourceFile;
use std::collections::{BTreeMap, BTreeSet};
use syn::{Attribute, Item, UseTree, Visibility};

const SOURCE: &str = "framework/src/";

/// A parsed file of a crate that the surface may show.
pub struct Parsed<'a> {
    pub file: &'a SourceFile,
    pub syntax: &'a syn::File,
}

/// Something that a user can name.
pub struct Shown<'a> {
    pub name: String,
    /// Where it is made public.
    pub file: &'a SourceFile,
    pub line: usize,
    /// What is said where it is made public, and where it is defined.
    pub docs: String,
    /// Where it is defined, if that is in this repository; a macro and a function may share a name.
    pub definitions: Vec<(usize, &'a Item)>,
}

/// The crates behind the surface, parsed; files that cannot be parsed are other rules' business.
pub fn parse(files: &[SourceFile]) -> Vec<Parsed<'_>> {
    let is_source = |file: &&SourceFile| {
        let inside = file.path.starts_with("framework/") || file.path.starts_with("runtime/");
        inside && file.is_rust() && file.path.contains("/src/") && !file.is_test()
    };
    let parsed =
        files.iter().filter(is_source).map(|file| Some(Parsed { file, syntax: file.syntax().ok()? }));
    parsed.flatten().collect()
}

/// Every item at the root and on the shelves, the shelves themselves included.
pub fn shown<'a>(parsed: &'a [Parsed<'a>]) -> Vec<Shown<'a>> {
    let mut shown = Vec::new();
    let Some(root) = parsed.iter().find(|one| one.file.path == format!("{SOURCE}lib.rs")) else {
        return shown;
    };
    let said = said_of_imports(parsed);
    let root_item =
        Exported { name: "napreduce".to_owned(), from: None, docs: docs(&root.syntax.attrs), line: 1 };
    shown.push(root_item.found(root.file, Vec::new()));
    let mut modules = vec![root];
    while let Some(module) = modules.pop() {
        for exported in exported(module.syntax) {
            let definitions = exported.definitions(parsed);
            let docs = said.get(&exported.name).cloned().unwrap_or_default();
            shown.push(Exported { docs, ..exported }.found(module.file, definitions));
        }
        for inner in public_modules(module.syntax) {
            let name = inner.ident.to_string();
            let paths = [format!("{SOURCE}{name}.rs"), format!("{SOURCE}{name}/mod.rs")];
            let Some(inner) = parsed.iter().find(|one| paths.contains(&one.file.path)) else { continue };
            let shelf = Exported { name, from: None, docs: docs(&inner.syntax.attrs), line: 1 };
            shown.push(shelf.found(inner.file, Vec::new()));
            modules.push(inner);
        }
    }
    merged(shown)
}

/// What the framework says of names where it takes them from elsewhere; such words are shown wherever a name
/// goes on to.
fn said_of_imports(parsed: &[Parsed<'_>]) -> BTreeMap<String, String> {
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    let inside = parsed.iter().filter(|one| one.file.path.starts_with(SOURCE));
    for exported in inside.flat_map(|one| exported(one.syntax)) {
        said.entry(exported.name).or_default().push_str(&exported.docs);
    }
    said
}

/// What is shown twice, at the root and on a shelf, is one item.
fn merged(all: Vec<Shown<'_>>) -> Vec<Shown<'_>> {
    let mut by_name: BTreeMap<String, Shown<'_>> = BTreeMap::new();
    for one in all {
        match by_name.get_mut(&one.name) {
            Some(known) => known.docs.push_str(&one.docs),
            None => drop(by_name.insert(one.name.clone(), one)),
        }
    }
    by_name.into_values().collect()
}

fn public_modules(file: &syn::File) -> impl Iterator<Item = &syn::ItemMod> {
    file.items.iter().filter_map(|item| match item {
        Item::Mod(module) if is_public(&module.vis) && !is_hidden(&module.attrs) => Some(module),
        _ => None,
    })
}

/// A name that a module makes public.
struct Exported {
    name: String,
    /// The crate it is taken from, if it is another one.
    from: Option<String>,
    docs: String,
    line: usize,
}

impl Exported {
    fn definitions<'a>(&self, parsed: &'a [Parsed<'a>]) -> Vec<(usize, &'a Item)> {
        let folder = match self.from.as_deref() {
            None => SOURCE.to_owned(),
            Some(krate) => match krate.strip_prefix("napreduce_") {
                Some("derive") => "framework/derive/src/".to_owned(),
                Some(name) => format!("runtime/{name}/src/"),
                None => return Vec::new(),
            },
        };
        let of_name = |one: &&(usize, &Item)| item_name(one.1).is_some_and(|name| *name == self.name);
        let near: Vec<_> = items(parsed, &folder).filter(|one| of_name(&one)).collect();
        // A crate may hand on what one below it has.
        if near.is_empty() { items(parsed, "runtime/").filter(|one| of_name(&one)).collect() } else { near }
    }

    fn found<'a>(self, file: &'a SourceFile, definitions: Vec<(usize, &'a Item)>) -> Shown<'a> {
        let Exported { name, mut docs, line, .. } = self;
        for (_, item) in &definitions {
            docs.push_str(&self::docs(attributes(item)));
        }
        Shown { name, file, line, docs, definitions }
    }
}

/// The public items at the top of the files of a folder, with the number of the file.
pub fn items<'a>(parsed: &'a [Parsed<'a>], folder: &str) -> impl Iterator<Item = (usize, &'a Item)> {
    let inside = move |path: &str| path.starts_with(folder);
    let files = parsed.iter().enumerate().filter(move |(_, one)| inside(&one.file.path));
    files.flat_map(|(number, one)| one.syntax.items.iter().map(move |item| (number, item)))
}

fn exported(file: &syn::File) -> Vec<Exported> {
    let mut found = Vec::new();
    for item in &file.items {
        match item {
            Item::Use(import) if is_public(&import.vis) && !is_hidden(&import.attrs) => {
                let docs = docs(&import.attrs);
                leaves(&import.tree, &[], &mut |path, name| {
                    let krate =
                        path.first().filter(|first| !["crate", "self", "super"].contains(&first.as_str()));
                    let is_ours = krate.is_none_or(|krate| module_of(file, krate));
                    let from = if is_ours { None } else { krate.cloned() };
                    let line = name.span().start().line;
                    found.push(Exported { name: name.to_string(), from, docs: docs.clone(), line });
                });
            }
            Item::Use(_) | Item::Mod(_) => {}
            // A macro is at the root wherever it is written.
            Item::Macro(_) => {}
            item => {
                let name = item_name(item).filter(|_| !is_hidden(attributes(item)));
                let export = name.map(|name| Exported {
                    line: name.span().start().line,
                    name: name.to_string(),
                    from: None,
                    docs: String::new(),
                });
                found.extend(export);
            }
        }
    }
    found
}

fn module_of(file: &syn::File, name: &str) -> bool {
    file.items.iter().any(|item| matches!(item, Item::Mod(module) if module.ident == name))
}

/// Each name that an import ends in, with the path before it.
pub fn leaves(tree: &UseTree, before: &[String], each: &mut impl FnMut(&[String], &syn::Ident)) {
    match tree {
        UseTree::Path(path) => {
            let longer = [before, &[path.ident.to_string()]].concat();
            leaves(&path.tree, &longer, each);
        }
        UseTree::Group(group) => group.items.iter().for_each(|item| leaves(item, before, each)),
        UseTree::Name(name) => each(before, &name.ident),
        UseTree::Rename(rename) => each(&[before, &[rename.ident.to_string()]].concat(), &rename.rename),
        UseTree::Glob(_) => {}
    }
}

/// The name of a public item that documentation can show.
pub fn item_name(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Struct(item) if is_public(&item.vis) => Some(&item.ident),
        Item::Enum(item) if is_public(&item.vis) => Some(&item.ident),
        Item::Trait(item) if is_public(&item.vis) => Some(&item.ident),
        Item::Type(item) if is_public(&item.vis) => Some(&item.ident),
        Item::Const(item) if is_public(&item.vis) => Some(&item.ident),
        Item::Fn(item) if is_public(&item.vis) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        _ => None,
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        _ => &[],
    }
}

pub fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => {
            let inside = list.tokens.to_string();
            list.path.is_ident("doc") && inside == "hidden"
                || list.path.is_ident("cfg") && inside == "doctest"
        }
        _ => false,
    })
}

/// The documentation that attributes hold, a line each.
pub fn docs(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("doc")) {
        if let syn::Meta::NameValue(value) = &attribute.meta
            && let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(line), .. }) = &value.value
        {
            text.push_str(&line.value());
            text.push('\n');
        }
    }
    text
}

/// The code of all examples in a documentation.
pub fn examples(docs: &str) -> String {
    docs.split("```").skip(1).step_by(2).filter(|block| is_rust(block)).collect()
}

fn is_rust(block: &str) -> bool {
    let language = block.lines().next().unwrap_or_default();
    let words: BTreeSet<&str> = language.split(',').collect();
    words.iter().all(|word| ["", "no_run", "should_panic", "compile_fail", "rust"].contains(word))
}
