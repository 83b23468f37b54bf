//! The shape of source files: how long they, their functions and the lines of their comments are, and that
//! they open by saying what they own. Names, calls and words are other modules' rules.

use super::files::{SourceFile, Violation};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;
const HEADER_LINES_MIN: usize = 2;
const COMMENT_COLUMNS_MAX: usize = 110;

pub fn file_length(files: &[SourceFile]) -> Vec<Violation> {
    let long = |file: &SourceFile| {
        let lines = file.text.lines().count();
        (lines > FILE_LINES_MAX).then(|| file.at(0, format!("{lines} lines; split it by role")))
    };
    files.iter().filter(|file| file.is_rust()).filter_map(long).collect()
}

pub fn function_length(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        match file.syntax() {
            Ok(syntax) => Functions { file, violations: &mut violations }.visit_file(syntax),
            Err(violation) => violations.push(violation),
        }
    }
    violations
}

/// Measures every function with a body, from `fn` to the closing brace; closures count as part of
/// their function.
struct Functions<'a> {
    file: &'a SourceFile,
    violations: &'a mut Vec<Violation>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let lines = body.brace_token.span.close().end().line - first + 1;
        if lines > FUNCTION_LINES_MAX {
            self.violations.push(self.file.at(first, format!("fn {} has {lines} lines", signature.ident)));
        }
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(body) = &function.default {
            self.measure(&function.sig, body);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

pub fn module_header(files: &[SourceFile]) -> Vec<Violation> {
    let missing = |file: &SourceFile| {
        let header: Vec<&str> = file.text.lines().map_while(|line| line.strip_prefix("//!")).collect();
        match header.first() {
            None => Some(file.at(1, "no header")),
            Some(first) if first.trim().is_empty() => Some(file.at(1, "the header's first line is empty")),
            _ if header.len() < HEADER_LINES_MIN => {
                Some(file.at(1, format!("a header of {} line; say what it owns and what not", header.len())))
            }
            _ => None,
        }
    };
    files.iter().filter(|file| file.is_rust()).filter_map(missing).collect()
}

/// Tables and the lines of examples are as wide as they have to be.
pub fn comment_width(files: &[SourceFile]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let mut in_example = false;
        for (index, line) in file.text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                in_example = false;
                continue;
            };
            let text = comment.trim_start_matches(['/', '!']).trim_start();
            in_example ^= text.starts_with("```");
            let columns = line.chars().count();
            if columns > COMMENT_COLUMNS_MAX && !in_example && !text.starts_with('|') {
                violations.push(file.at(index + 1, format!("a comment of {columns} columns")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

    fn rust(text: &str) -> SourceFile {
        SourceFile::sample("runtime/data/src/sample.rs", text)
    }

    #[test]
    fn a_file_may_have_400_lines() {
        check_passes(file_length, rust(&"// line\n".repeat(400)));
        check_caught(file_length, rust(&"// line\n".repeat(401)), "sample.rs: 401 lines");
        check_passes(file_length, SourceFile::sample("Cargo.lock", &"line\n".repeat(5_000)));
    }

    #[test]
    fn a_function_may_have_70_lines_wherever_it_stands() {
        let body = |lines| "    let _ = 1;\n".repeat(lines);
        check_passes(
            function_length,
            rust(&format!("/// Docs.\n\n#[inline]\nfn fits() {{\n{}}}\n", body(68))),
        );
        let long = body(69);
        check_caught(
            function_length,
            rust(&format!("\nfn plain() {{\n{long}}}\n")),
            "rs:2: fn plain has 71 lines",
        );
        check_caught(function_length, rust(&format!("impl A {{ fn method() {{\n{long}}} }}")), "fn method");
        check_caught(
            function_length,
            rust(&format!("trait A {{ fn default() {{\n{long}}} }}")),
            "fn default",
        );
        check_caught(function_length, rust(&format!("mod m {{ fn inner() {{\n{long}}} }}")), "fn inner");
        check_caught(function_length, rust("fn broken( {"), "cannot be parsed");
    }

    #[test]
    fn a_header_has_two_lines_that_say_something() {
        check_passes(module_header, rust("//! Owns samples.\n//! Does not own rules.\n\nuse a;\n"));
        check_caught(module_header, rust("use a;\n//! Late.\n"), "no header");
        check_caught(module_header, rust(""), "no header");
        check_caught(module_header, rust("//! Owns samples.\nuse a;\n"), "a header of 1 line");
        check_caught(module_header, rust("//!\n//! Owns samples.\n"), "first line is empty");
    }

    #[test]
    fn a_comment_has_at_most_110_columns_outside_tables_and_examples() {
        let wide = "word ".repeat(24);
        check_passes(comment_width, rust(&format!("//! short\nlet text = \"{wide}\";\n//! | {wide} |\n")));
        check_passes(comment_width, rust(&format!("/// ```text\n/// {wide}\n/// ```\nfn called() {{}}\n")));
        check_caught(comment_width, rust(&format!("    // {wide}\n")), "rs:1: a comment of 127 columns");
        check_caught(comment_width, rust(&format!("/// ```\n/// 1\n/// ```\n/// {wide}\n")), "rs:4");
        check_caught(comment_width, rust(&format!("/// ```\nfn next() {{}}\n//! {wide}\n")), "rs:3");
    }
}
