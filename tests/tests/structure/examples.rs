//! What a user of `napreduce` can name has an example, which is compiled and run with the tests.
//! Owns what counts as one; nothing goes without. Does not own what the examples say.

use super::files::{SourceFile, Violation};
use super::surface::{self, Parsed, Shown};
use syn::{ImplItem, Item};

pub fn every_item(files: &[SourceFile]) -> Vec<Violation> {
    let parsed = surface::parse(files);
    let shown = surface::shown(&parsed);
    let without = |one: &&Shown<'_>| surface::examples(&one.docs).is_empty();
    shown
        .iter()
        .filter(without)
        .map(|one| one.file.at(one.line, format!("{} has no example", one.name)))
        .collect()
}

/// Every public method of a type of the framework is called in some example of a public item.
pub fn every_method(files: &[SourceFile]) -> Vec<Violation> {
    let parsed = surface::parse(files);
    let shown = surface::shown(&parsed);
    let mut code: String = shown.iter().map(|one| surface::examples(&one.docs)).collect();
    let methods: Vec<_> = parsed.iter().flat_map(|one| methods(one, &shown)).collect();
    code.extend(methods.iter().map(|method| surface::examples(&method.docs)));
    let is_shown = |name: &str| {
        [".", "::", "fn "]
            .iter()
            .any(|before| ["(", "::<"].iter().any(|after| code.contains(&format!("{before}{name}{after}"))))
    };
    let without = |method: &&Method<'_>| !is_shown(&method.name);
    let missing = methods.iter().filter(without);
    missing.map(|method| method.file.at(method.line, format!("{} is in no example", method.name))).collect()
}

struct Method<'a> {
    name: String,
    file: &'a SourceFile,
    line: usize,
    docs: String,
}

/// The public methods in a file of the framework of types and traits that are shown.
fn methods<'a>(one: &Parsed<'a>, shown: &[Shown<'_>]) -> Vec<Method<'a>> {
    let is_shown = |name: &syn::Ident| shown.iter().any(|one| name == &one.name);
    let mut found = Vec::new();
    if !one.file.path.starts_with("framework/src/") {
        return found;
    }
    let mut add = |name: &syn::Ident, attributes: &[syn::Attribute]| {
        let (name, line, docs) = (name.to_string(), name.span().start().line, surface::docs(attributes));
        found.push(Method { name, file: one.file, line, docs });
    };
    for item in &one.syntax.items {
        match item {
            Item::Impl(block) if block.trait_.is_none() && self_name(block).is_some_and(is_shown) => {
                for item in &block.items {
                    if let ImplItem::Fn(method) = item
                        && surface::is_public(&method.vis)
                    {
                        add(&method.sig.ident, &method.attrs);
                    }
                }
            }
            Item::Trait(item) if is_shown(&item.ident) => {
                for item in &item.items {
                    if let syn::TraitItem::Fn(method) = item {
                        add(&method.sig.ident, &method.attrs);
                    }
                }
            }
            _ => {}
        }
    }
    found
}

pub fn self_name(block: &syn::ItemImpl) -> Option<&syn::Ident> {
    match &*block.self_ty {
        syn::Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

    const HEADER: &str = "//! ```\n//! a::main();\n//! ```\n";

    fn library(text: &str) -> SourceFile {
        SourceFile::sample("framework/src/lib.rs", &format!("{HEADER}{text}"))
    }

    #[test]
    fn an_item_without_an_example_is_found() {
        check_caught(every_item, library("/// Words.\npub struct Job;"), "lib.rs:5: Job has no example");
        check_caught(
            every_item,
            library("/// ```text\n/// Job\n/// ```\npub struct Job;"),
            "Job has no example",
        );
        check_passes(every_item, library("/// ```\n/// Job;\n/// ```\npub struct Job;"));
        check_passes(every_item, library("struct Job; pub(crate) fn f() {} #[doc(hidden)] pub mod m;"));
    }

    #[test]
    fn a_method_is_called_in_some_example() {
        let job = |example: &str| {
            library(&format!(
                "/// ```\n/// {example}\n/// ```\npub struct Job; impl Job {{ pub fn map(&self) {{}} fn own() {{}} }}"
            ))
        };
        check_passes(every_method, job("Job::new().map();"));
        check_passes(every_method, job("Job::map::<u8>();"));
        check_caught(every_method, job("Job::new().map_only();"), "map is in no example");
    }
}
