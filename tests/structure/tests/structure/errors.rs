//! The error texts in the sources of `runtime` and `framework`, one per line, with a snapshot for each crate.
//! They are read from the sources, since most errors are hard to provoke and many types are private. The test of
//! messages, `tests/tests/messages`, shows complete ones. `INSTA_UPDATE=always cargo test -p napreduce-structure`
//! accepts changed texts.

use std::collections::{BTreeMap, BTreeSet};

use insta::Settings;
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::files;

/// Macros, functions, methods, variants and attributes whose arguments are error texts.
const TAKE_ERRORS: [&str; 18] = [
    "Err",
    "Refused",
    "Usage",
    "anyhow",
    "bail",
    "context",
    "ensure",
    "error",
    "fatal",
    "map_err",
    "of_task",
    "ok_or",
    "ok_or_else",
    "refuse",
    "refused",
    "reject",
    "usage",
    "with_context",
];

/// Returns the crate of a source file that is not a test.
fn crate_of(path: &str) -> Option<String> {
    let (folder, inside) = path.split_once("/src/")?;
    let is_ours =
        folder.starts_with("runtime/") || folder == "framework" || folder.starts_with("framework/");
    let is_test = inside
        .split('/')
        .any(|part| ["tests", "tests.rs", "testing", "scenarios"].contains(&part));
    (is_ours && !is_test).then(|| folder.replace('/', "-"))
}

/// Returns whether the tokens are an attribute that marks test code.
fn is_test_attribute(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.to_string().replace(' ', "").starts_with("[cfg(test)"))
}

/// Returns whether the tokens are a doc comment, which the lexer turns into an attribute.
fn is_doc_comment(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

/// Adds the texts among tokens; `in_error` is whether they belong to an error.
fn collect(tokens: TokenStream, in_error: bool, found: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut words: Vec<String> = Vec::new();
    let mut is_skipped = false;
    for token in tokens {
        is_skipped |= is_test_attribute(&token);
        match token {
            TokenTree::Group(group) if is_doc_comment(&group) => {}
            TokenTree::Group(group) if is_skipped => {
                is_skipped = group.delimiter() != Delimiter::Brace
            }
            TokenTree::Group(group) => {
                let takes_errors = words
                    .last()
                    .is_some_and(|word| TAKE_ERRORS.contains(&word.as_str()));
                let is_error = in_error || takes_errors || is_display_of_error(&words);
                collect(group.stream(), is_error, found);
                words.clear();
            }
            TokenTree::Ident(word) => words.push(word.to_string()),
            TokenTree::Literal(literal) if in_error => {
                let text =
                    syn::parse_str::<syn::LitStr>(&literal.to_string()).map(|text| text.value());
                found.extend(text.ok().filter(|text| text.trim().contains(' ')));
            }
            TokenTree::Punct(mark) if mark.as_char() == ';' => {
                is_skipped = false;
                words.clear();
            }
            TokenTree::Punct(mark) if mark.as_char() == ',' => words.clear(),
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// Returns whether a block follows `impl Display for SomeError`.
fn is_display_of_error(words: &[String]) -> bool {
    let name = words.last().map_or("", String::as_str);
    let is_error = ["Error", "Refusal", "Trouble", "Parting"]
        .iter()
        .any(|end| name.ends_with(end));
    is_error && words.iter().any(|word| word == "Display") && words.iter().any(|word| word == "for")
}

/// Compares a text with the snapshot of this name.
fn assert_snapshot(name: &str, text: &str) {
    let mut settings = Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn error_texts_equal_snapshots() {
    let mut crates: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files::tracked().iter().filter(|file| file.is_rust()) {
        let Some(name) = crate_of(&file.path) else {
            continue;
        };
        let tokens: TokenStream = file
            .text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", file.path));
        collect(tokens, false, crates.entry(name).or_default());
    }
    assert!(crates.len() > 10, "{:?}", crates.keys());
    for (name, texts) in crates {
        let lines: String = texts
            .iter()
            .map(|text| text.trim().replace('\n', "\\n") + "\n")
            .collect();
        assert_snapshot(&format!("errors-{name}"), &lines);
    }
}

#[test]
fn collect_finds_texts_of_errors_only() {
    let source = r#"
        #[error("cannot read {path}")]
        fn read() -> Result<()> {
            print("not an error");
            let text = text.map_err(|error| format!("cannot parse: {error}"))?;
            ensure!(text.len() > 1, "too short ({})", text.len());
            Err(anyhow!("word").context("cannot finish \
                 this"))
        }
        struct Usage {
            /// Not an error.
            slots: u32,
        }
        impl fmt::Display for OwnError { fn fmt() { f.write_str("own words") } }
        #[cfg(test)]
        mod tests { fn fails() { Err("in a test") } }
    "#;
    let mut found = BTreeSet::new();
    collect(source.parse().expect("tokens"), false, &mut found);
    let expected = [
        "cannot finish this",
        "cannot parse: {error}",
        "cannot read {path}",
        "own words",
        "too short ({})",
    ];
    assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
}
