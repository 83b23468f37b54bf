//! What stands in a public signature of `napreduce` can be named with `napreduce` alone.
//! Owns that comparison, by name. Does not own whether the signatures are good ones.

use super::files::{SourceFile, Violation};
use super::surface::{self, Parsed};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{ImplItem, Item, TraitItem};

/// Sealed: users call nothing of it and cannot implement it.
const UNNAMED: [&str; 1] = ["Combining"];

pub fn every_type(files: &[SourceFile]) -> Vec<Violation> {
    let parsed = surface::parse(files);
    let shown = surface::shown(&parsed);
    let known: BTreeSet<&str> = shown.iter().map(|one| one.name.as_str()).chain(UNNAMED).collect();
    let ours: BTreeSet<String> = surface::items(&parsed, "")
        .filter(|(_, item)| is_type(item))
        .filter_map(|(_, item)| surface::item_name(item).map(ToString::to_string))
        .collect();
    let mut violations = BTreeMap::new();
    for one in &shown {
        for (number, item) in &one.definitions {
            let module = &parsed[*number];
            let beside = folder_of(&module.file.path);
            for unknown in named_by(item, &parsed, beside, module)
                .difference(&known.iter().map(|name| (*name).to_owned()).collect())
            {
                if ours.contains(unknown) {
                    let line = surface::item_name(item).map_or(0, |name| name.span().start().line);
                    let what = format!("{} shows {unknown}, which no user can name", one.name);
                    violations.insert(what.clone(), module.file.at(line, what));
                }
            }
        }
    }
    violations.into_values().collect()
}

/// The last name of the type that a block implements.
fn self_name(block: &syn::ItemImpl) -> Option<&syn::Ident> {
    match &*block.self_ty {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

fn is_type(item: &Item) -> bool {
    matches!(item, Item::Struct(_) | Item::Enum(_) | Item::Trait(_) | Item::Type(_))
}

/// The folder with the sources of a file's crate.
fn folder_of(path: &str) -> &str {
    path.find("/src/").map_or("", |end| &path[..end + "/src/".len()])
}

/// The names of types in the public parts of an item and of what its crate implements for it.
fn named_by(item: &Item, parsed: &[Parsed<'_>], crate_folder: &str, module: &Parsed<'_>) -> BTreeSet<String> {
    let mut named = Named::in_file(module.syntax);
    named.item(item);
    let mut all = named.found;
    if !is_type(item) {
        return all;
    }
    let name = surface::item_name(item);
    for one in parsed.iter().filter(|one| one.file.path.starts_with(crate_folder)) {
        for item in &one.syntax.items {
            let Item::Impl(block) = item else { continue };
            if block.trait_.is_none() && self_name(block) == name {
                let mut named = Named::in_file(one.syntax);
                named.block(block);
                all.extend(named.found);
            }
        }
    }
    all
}

/// Collects the names of types, as they are called where they are defined.
struct Named {
    /// What imports of the file call by which path.
    imports: BTreeMap<String, Vec<String>>,
    generics: BTreeSet<String>,
    found: BTreeSet<String>,
}

impl Named {
    fn in_file(file: &syn::File) -> Named {
        let mut imports = BTreeMap::new();
        for item in &file.items {
            let Item::Use(import) = item else { continue };
            surface::leaves(&import.tree, &[], &mut |path, name| {
                drop(imports.insert(name.to_string(), path.to_vec()));
            });
        }
        Named { imports, generics: BTreeSet::new(), found: BTreeSet::new() }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Struct(item) => {
                self.visit_generics(&item.generics);
                let public = item.fields.iter().filter(|field| surface::is_public(&field.vis));
                public.for_each(|field| self.visit_type(&field.ty));
            }
            Item::Enum(item) => {
                self.visit_generics(&item.generics);
                item.variants
                    .iter()
                    .flat_map(|variant| &variant.fields)
                    .for_each(|field| self.visit_type(&field.ty));
            }
            Item::Trait(item) => {
                self.visit_generics(&item.generics);
                item.supertraits.iter().for_each(|bound| self.visit_type_param_bound(bound));
                for item in &item.items {
                    match item {
                        TraitItem::Fn(method) => self.visit_signature(&method.sig),
                        TraitItem::Type(item) => self.visit_trait_item_type(item),
                        _ => {}
                    }
                }
            }
            Item::Type(item) => self.visit_type(&item.ty),
            Item::Fn(item) => self.visit_signature(&item.sig),
            _ => {}
        }
    }

    fn path(&mut self, path: &syn::Path) {
        let first = path.segments.first().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let last = path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let imported = self.imports.get(&first);
        let origin = imported.and_then(|path| path.first()).unwrap_or(&first);
        let is_foreign = ["std", "core", "alloc"].contains(&origin.as_str())
            || imported.is_some()
                && !["crate", "self", "super"].contains(&origin.as_str())
                && !origin.starts_with("napreduce");
        if !is_foreign && !self.generics.contains(&first) && first != "Self" {
            self.found.insert(last);
        }
    }

    fn block(&mut self, block: &syn::ItemImpl) {
        self.visit_generics(&block.generics);
        for item in &block.items {
            if let ImplItem::Fn(method) = item
                && surface::is_public(&method.vis)
            {
                self.visit_signature(&method.sig);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Named {
    fn visit_type_param(&mut self, parameter: &'ast syn::TypeParam) {
        self.generics.insert(parameter.ident.to_string());
        visit::visit_type_param(self, parameter);
    }

    /// Of `<A as B>::C` both `A` and `B` are named; `C` is something of theirs.
    fn visit_type_path(&mut self, path: &'ast syn::TypePath) {
        let Some(of) = &path.qself else { return visit::visit_type_path(self, path) };
        self.visit_type(&of.ty);
        let mut named = path.path.clone();
        named.segments = named.segments.into_iter().take(of.position).collect();
        self.path(&named);
        path.path.segments.iter().for_each(|segment| self.visit_path_arguments(&segment.arguments));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.path(path);
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(library: &str, core: &str) -> Vec<String> {
        let files = [
            SourceFile::sample("framework/src/lib.rs", library),
            SourceFile::sample("runtime/engine/src/ids.rs", core),
        ];
        every_type(&files).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_type_that_only_another_crate_names_is_found() {
        let core = "pub struct JobId; pub struct Job { pub id: JobId, own: Hidden } pub struct Hidden;";
        let unnamed = ["runtime/engine/src/ids.rs:1: Job shows JobId, which no user can name"];
        assert_eq!(check("pub use napreduce_engine::Job;", core), unnamed);
        assert!(check("pub use napreduce_engine::{Job, JobId};", core).is_empty());
    }

    #[test]
    fn methods_bounds_and_variants_are_looked_at() {
        let core = "pub struct A; pub trait B {}";
        let found = |library: &str| check(&format!("use napreduce_engine::{{A, B}}; {library}"), core).len();
        assert_eq!(
            found(
                "pub struct C; impl C { pub fn a(&self) -> Option<&A> { None } fn b(&self, _: &dyn B) {} }"
            ),
            1
        );
        assert_eq!(found("pub fn c<T: B>(_: T) {}"), 1);
        assert_eq!(found("pub enum C { D { a: A }, E(Box<dyn B>) }"), 2);
        assert_eq!(found("pub struct C<A>(pub A);"), 0);
    }
}
