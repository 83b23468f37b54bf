//! What a user of `napreduce` can name: the items at its root and in its public modules, found by name,
//! without the compiler.

use super::files::SourceFile;
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
    shown.push(Shown { name: "napreduce".to_owned(), definitions: Vec::new() });
    let mut modules = vec![root];
    while let Some(module) = modules.pop() {
        for exported in exported(module.syntax) {
            let definitions = exported.definitions(parsed);
            shown.push(Shown { name: exported.name, definitions });
        }
        for inner in public_modules(module.syntax) {
            let name = inner.ident.to_string();
            let paths = [format!("{SOURCE}{name}.rs"), format!("{SOURCE}{name}/mod.rs")];
            let Some(inner) = parsed.iter().find(|one| paths.contains(&one.file.path)) else { continue };
            shown.push(Shown { name, definitions: Vec::new() });
            modules.push(inner);
        }
    }
    shown
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
                leaves(&import.tree, &[], &mut |path, name| {
                    let krate =
                        path.first().filter(|first| !["crate", "self", "super"].contains(&first.as_str()));
                    let is_ours = krate.is_none_or(|krate| module_of(file, krate));
                    let from = if is_ours { None } else { krate.cloned() };
                    found.push(Exported { name: name.to_string(), from });
                });
            }
            Item::Use(_) | Item::Mod(_) => {}
            // A macro is at the root wherever it is written.
            Item::Macro(_) => {}
            item => {
                let name = item_name(item).filter(|_| !is_hidden(attributes(item)));
                found.extend(name.map(|name| Exported { name: name.to_string(), from: None }));
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
