//! Finds the paths of identifiers in a Rust file, with their lines. Imports and macro input are flattened;
//! comments and strings are ignored.

use proc_macro2::{TokenStream, TokenTree};
use syn::UseTree;
use syn::visit::{self, Visit};

/// A path such as `["std", "time", "Instant", "now"]`, or a method call such as `[".", "now"]`.
pub struct Named {
    pub segments: Vec<String>,
    pub line: usize,
}

impl Named {
    /// Returns whether the path contains `banned`, written with `::`, as a sequence of whole segments.
    pub fn contains(&self, banned: &str) -> bool {
        let banned: Vec<&str> = banned.split("::").collect();
        self.segments
            .windows(banned.len())
            .any(|window| window == banned)
    }
}

/// Returns every path in a token stream. Braces in imports are not expanded here.
pub fn in_tokens(tokens: TokenStream) -> Vec<Named> {
    let mut found = Vec::new();
    collect(tokens, &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Named>) {
    let mut open: Option<Named> = None;
    // Colons and dots since the last identifier: `::` joins two identifiers, `.` begins a method or field.
    let mut between = String::new();
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                let name = ident.to_string();
                let line = ident.span().start().line;
                open = match (open.take(), between.as_str()) {
                    (Some(mut path), "::") => {
                        path.segments.push(name);
                        Some(path)
                    }
                    (before, joint) => {
                        found.extend(before);
                        let dot = joint.ends_with('.').then(|| ".".to_owned());
                        Some(Named {
                            segments: dot.into_iter().chain([name]).collect(),
                            line,
                        })
                    }
                };
                between.clear();
            }
            TokenTree::Punct(punct) => between.push(punct.as_char()),
            TokenTree::Group(group) => {
                found.extend(open.take());
                between.clear();
                collect(group.stream(), found);
            }
            TokenTree::Literal(_) => {
                found.extend(open.take());
                between.clear();
            }
        }
    }
    found.extend(open);
}

/// Returns every import of a file as a full path: `use std::{fs, io}` gives two.
pub fn in_imports(file: &syn::File) -> Vec<Named> {
    struct Imports(Vec<Named>);
    impl<'ast> Visit<'ast> for Imports {
        fn visit_item_use(&mut self, import: &'ast syn::ItemUse) {
            flatten(&import.tree, Vec::new(), &mut self.0);
            visit::visit_item_use(self, import);
        }
    }
    let mut imports = Imports(Vec::new());
    imports.visit_file(file);
    imports.0
}

fn flatten(tree: &UseTree, mut before: Vec<String>, found: &mut Vec<Named>) {
    let mut end = |ident: &proc_macro2::Ident, mut segments: Vec<String>| {
        segments.push(ident.to_string());
        found.push(Named {
            segments,
            line: ident.span().start().line,
        });
    };
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, found);
        }
        UseTree::Group(group) => group
            .items
            .iter()
            .for_each(|item| flatten(item, before.clone(), found)),
        UseTree::Name(name) => end(&name.ident, before),
        UseTree::Rename(rename) => end(&rename.ident, before),
        UseTree::Glob(glob) => {
            found.push(Named {
                segments: before,
                line: glob.star_token.spans[0].start().line,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(code: &str) -> Vec<String> {
        let file = syn::parse_file(code).unwrap();
        let named = in_tokens(code.parse().unwrap())
            .into_iter()
            .chain(in_imports(&file));
        named.map(|named| named.segments.join("::")).collect()
    }

    #[test]
    fn paths_are_found_in_code_macros_and_imports() {
        let code = "use std::{fs, time::*};\nfn f() { a!(x, std::time::Instant::now()).unwrap(); } // HashMap\n";
        let found = names(code);
        for expected in [
            "std::fs",
            "std::time",
            "std::time::Instant::now",
            ".::unwrap",
        ] {
            assert!(
                found.iter().any(|name| name == expected),
                "{expected} is not in {found:?}"
            );
        }
        assert!(
            !found.iter().any(|name| name.contains("HashMap")),
            "{found:?}"
        );
    }

    #[test]
    fn banned_path_matches_whole_segments() {
        let named = |path: &str| Named {
            segments: path.split("::").map(str::to_owned).collect(),
            line: 1,
        };
        assert!(named("std::fs::read").contains("std::fs"));
        assert!(named("tokio").contains("tokio"));
        assert!(!named("std::fsx").contains("std::fs"));
        assert!(!named("my_std::fs").contains("std::fs"));
    }
}
