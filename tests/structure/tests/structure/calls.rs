//! Forbidden calls: the core uses no clock and no I/O, no code uses macros that panic when they cannot print,
//! and `unsafe` occurs only in listed places, each with a reason. `clippy.toml` bans functions for all
//! crates, but cannot ban modules or ban calls in one crate only. `paths` finds the paths in code.

use super::files::{SourceFile, Violation};
use super::paths::{in_imports, in_tokens};
use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};

const CORE: [&str; 2] = ["runtime/engine/src/", "runtime/schedulers/src/"];
/// The scenario language for the core's tests, which is exempt.
const SCENARIOS: &str = "runtime/engine/src/scenarios/";

/// Calls that would make the engine depend on more than its arguments.
const BANNED_IN_CORE: [&str; 11] = [
    "Instant::now",
    "SystemTime",
    "std::fs",
    "std::net",
    "std::thread",
    "tokio",
    "HashMap",
    "HashSet",
    "rand::rng",
    "rand::random",
    "thread_rng",
];

/// Workers access processes and the clock only through `local/src/process` and `local/src/clock.rs`.
const WORKERS: [&str; 2] = ["runtime/local/src/worker/", "runtime/cluster/src/worker/"];

const BANNED_IN_WORKERS: [&str; 6] = [
    "Instant::now",
    "SystemTime::now",
    "process::Command",
    "kill_process",
    "pidfd_open",
    "waitid",
];

/// The daemons and the client take tasks, random numbers and wall-clock time from their `World`.
const DAEMONS: [&str; 5] = [
    "runtime/local/src/coordinator/",
    "runtime/local/src/output/",
    "runtime/local/src/worker/",
    "runtime/local/src/embedded.rs",
    "runtime/cluster/src/",
];

/// Files of the daemons that may call outside their world, with the reason.
const OUTSIDE_WORLD: [(&str, &str); 3] = [
    (
        "runtime/local/src/worker/scripted.rs",
        "is the machine of tests",
    ),
    (
        "runtime/cluster/src/transport/secret.rs",
        "creates the secret of a cluster directory, which commands do as well",
    ),
    (
        "runtime/cluster/src/shuffle/",
        "serves and fetches map output on threads",
    ),
];

const BANNED_IN_DAEMONS: [&str; 5] = [
    "tokio::spawn",
    "spawn_blocking",
    "spawn_local",
    "getrandom",
    "SystemTime::now",
];

/// The files that may contain unsafe code, with the reason.
const UNSAFE_MODULES: [(&str, &str); 21] = [
    (
        "framework/src/program/definition.rs",
        "calls the code of a job definition by its address",
    ),
    (
        "framework/src/program/executable.rs",
        "names the symbol with which the linker marks the beginning of the executable",
    ),
    (
        "runtime/data/src/lent.rs",
        "reads past the end of a key, inside the block that it lies in",
    ),
    (
        "runtime/data/src/masks.rs",
        "calls the vector instructions that x86-64 always has",
    ),
    ("runtime/data/src/region.rs", "maps anonymous memory"),
    (
        "runtime/data/src/sort/arena.rs",
        "keeps records and entries in mapped memory",
    ),
    (
        "runtime/data/src/collect/slots.rs",
        "keeps accumulators in mapped memory",
    ),
    (
        "runtime/data/src/segment/mapped.rs",
        "maps segment files, and tells the kernel which pages come next",
    ),
    (
        "runtime/data/src/segment/cursor.rs",
        "keeps a pointer into a mapping that its own handle keeps alive",
    ),
    (
        "lab/src/peers/bare_sort.rs",
        "maps the input of the bare sort",
    ),
    (
        "runtime/task/src/signals.rs",
        "changes signal dispositions, which the C library alone can",
    ),
    (
        "runtime/local/src/process/interrupts.rs",
        "changes signal dispositions, which the C library alone can",
    ),
    (
        "runtime/local/src/process/pauses.rs",
        "stops this process, which the C library alone can",
    ),
    (
        "runtime/task/src/slice.rs",
        "asks the kernel for short slices, for which the C library has no function",
    ),
    (
        "runtime/task/src/heap.rs",
        "asks the allocator of the C library to give memory back",
    ),
    (
        "runtime/task/src/paging.rs",
        "advises the kernel about the memory of another process",
    ),
    (
        "runtime/local/src/process/child.rs",
        "has a descriptor watched, which tokio cannot check",
    ),
    (
        "runtime/task/src/before_main.rs",
        "comes before main, and forks",
    ),
    (
        "runtime/local/src/process/spawn.rs",
        "names descriptors that this process was started with",
    ),
    (
        "runtime/world/src/entropy.rs",
        "replaces a function of the C library, which is given a pointer",
    ),
    (
        "runtime/task/src/task_process/outfit.rs",
        "changes the environment while there is one thread",
    ),
];

pub fn pure_core(files: &[SourceFile]) -> Vec<Violation> {
    let is_core = |file: &&SourceFile| {
        let in_core = CORE.iter().any(|folder| file.path.starts_with(folder));
        in_core && !file.path.starts_with(SCENARIOS)
    };
    banned(
        files.iter().filter(is_core),
        &BANNED_IN_CORE,
        "the core is given what it needs",
    )
}

pub fn workers_use_seams(files: &[SourceFile]) -> Vec<Violation> {
    let is_worker = |file: &&SourceFile| WORKERS.iter().any(|folder| file.path.starts_with(folder));
    let instead = "call the traits in local/src/process and the functions in local/src/clock.rs";
    banned(files.iter().filter(is_worker), &BANNED_IN_WORKERS, instead)
}

pub fn daemons_use_world(files: &[SourceFile]) -> Vec<Violation> {
    let is_daemon = |file: &&SourceFile| {
        let is_outside = OUTSIDE_WORLD
            .iter()
            .any(|(path, _)| file.path.starts_with(path));
        let is_for_tests = file.is_test() || file.path.ends_with("/tests.rs");
        let in_daemon = DAEMONS.iter().any(|path| file.path.starts_with(path));
        in_daemon && !is_outside && !is_for_tests
    };
    let instead = "call the World that the daemon was given";
    banned(files.iter().filter(is_daemon), &BANNED_IN_DAEMONS, instead)
}

fn banned<'a>(
    files: impl Iterator<Item = &'a SourceFile>,
    names: &[&str],
    instead: &str,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.filter(|file| file.is_rust()) {
        let syntax = match file.syntax() {
            Ok(syntax) => syntax,
            Err(violation) => {
                violations.push(violation);
                continue;
            }
        };
        // An import without braces is found twice: as an import and as tokens.
        let mut found = BTreeSet::new();
        for named in in_tokens(syntax.to_token_stream())
            .into_iter()
            .chain(in_imports(syntax))
        {
            let banned = names.iter().filter(|banned| named.contains(banned));
            found.extend(banned.map(|banned| (named.line, *banned)));
        }
        let violation = |(line, banned)| file.at(line, format!("{banned}; {instead}"));
        violations.extend(found.into_iter().map(violation));
    }
    violations
}

/// Macros that panic when they cannot write.
const PANICKING_PRINTS: [&str; 4] = ["print", "println", "eprint", "eprintln"];

pub fn no_panicking_prints(files: &[SourceFile]) -> Vec<Violation> {
    let is_product = |file: &&SourceFile| {
        let is_for_tests =
            file.is_test() || file.path.ends_with("/tests.rs") || file.path.starts_with(SCENARIOS);
        // The comparison stands for programs of users.
        let is_of_users = file.path.starts_with("lab/seven-jobs/");
        file.is_rust() && file.path.contains("src/") && !is_for_tests && !is_of_users
    };
    let mut violations = Vec::new();
    for file in files.iter().filter(is_product) {
        match file.syntax() {
            Ok(syntax) => {
                let mut syntax = syntax.clone();
                WithoutTests.visit_file_mut(&mut syntax);
                for (line, name) in macros(syntax.to_token_stream()) {
                    if PANICKING_PRINTS.contains(&name.as_str()) {
                        let what = format!(
                            "{name}! panics on a full disk; call napreduce_protocol::printing"
                        );
                        violations.push(file.at(line, what));
                    }
                }
            }
            Err(violation) => violations.push(violation),
        }
    }
    violations
}

/// Returns the called macros, with their lines.
fn macros(tokens: TokenStream) -> Vec<(usize, String)> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let TokenTree::Group(group) = token else {
            continue;
        };
        found.extend(macros(group.stream()));
        if let [.., TokenTree::Ident(name), TokenTree::Punct(punct)] = &tokens[..at]
            && punct.as_char() == '!'
        {
            found.push((name.span().start().line, name.to_string()));
        }
    }
    found
}

/// Removes test modules and test functions from a file.
pub struct WithoutTests;

impl WithoutTests {
    fn is_test(item: &syn::Item) -> bool {
        let attributes = match item {
            syn::Item::Mod(module) => &module.attrs,
            syn::Item::Fn(function) => &function.attrs,
            syn::Item::Use(import) => &import.attrs,
            syn::Item::Impl(implementation) => &implementation.attrs,
            _ => return false,
        };
        attributes.iter().any(|attribute| {
            let cfg_test = attribute.path().is_ident("cfg")
                && attribute
                    .parse_args::<syn::Ident>()
                    .is_ok_and(|ident| ident == "test");
            cfg_test || attribute.path().is_ident("test")
        })
    }
}

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !WithoutTests::is_test(item));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !WithoutTests::is_test(item));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }
}

pub fn listed_unsafe(files: &[SourceFile]) -> Vec<Violation> {
    unsafe_outside(files, &UNSAFE_MODULES)
}

fn unsafe_outside(files: &[SourceFile], listed: &[(&str, &str)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_rust()) {
        let lines = match file.syntax() {
            Ok(syntax) => unsafe_lines(syntax),
            Err(violation) => {
                violations.push(violation);
                continue;
            }
        };
        match (
            listed.iter().any(|(path, _)| *path == file.path),
            lines.first(),
        ) {
            (false, Some(line)) => violations.push(file.at(
                *line,
                format!(
                    "unsafe in {} places; list the module with its reason or do without",
                    lines.len()
                ),
            )),
            (true, None) => {
                violations.push(file.at(0, "listed and has no unsafe code; take it off the list"))
            }
            _ => {}
        }
    }
    violations
}

/// Returns the lines of all unsafe blocks, functions, implementations and foreign items.
fn unsafe_lines(file: &syn::File) -> Vec<usize> {
    struct Unsafe(Vec<usize>);
    impl<'ast> Visit<'ast> for Unsafe {
        fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
            // Macro input has no syntax tree, so its unsafe blocks are found as words.
            let named = in_tokens(tokens.clone());
            self.0.extend(
                named
                    .iter()
                    .filter(|named| named.segments == ["unsafe"])
                    .map(|named| named.line),
            );
        }
        fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
            self.0.push(block.unsafe_token.span.start().line);
            syn::visit::visit_expr_unsafe(self, block);
        }
        fn visit_signature(&mut self, signature: &'ast syn::Signature) {
            if let syn::Safety::Unsafe(token) = &signature.safety {
                self.0.push(token.span.start().line);
            }
            syn::visit::visit_signature(self, signature);
        }
        fn visit_item_impl(&mut self, implementation: &'ast syn::ItemImpl) {
            self.0
                .extend(implementation.unsafety.map(|token| token.span.start().line));
            syn::visit::visit_item_impl(self, implementation);
        }
        fn visit_item_foreign_mod(&mut self, foreign: &'ast syn::ItemForeignMod) {
            self.0.push(foreign.abi.extern_token.span.start().line);
        }
    }
    let mut found = Unsafe(Vec::new());
    found.visit_file(file);
    found.0
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

    fn core(code: &str) -> SourceFile {
        SourceFile::sample("runtime/engine/src/sample.rs", code)
    }

    fn data(code: &str) -> SourceFile {
        SourceFile::sample("runtime/data/src/sample.rs", code)
    }

    #[test]
    fn engine_calls_no_outside_api() {
        check_caught(
            pure_core,
            core("fn f() {\n std::time::Instant::now(); }"),
            "sample.rs:2: Instant::now",
        );
        check_caught(pure_core, core("use std::time::SystemTime;"), "SystemTime");
        check_caught(pure_core, core("use std::{fs, fmt};"), "std::fs");
        check_caught(
            pure_core,
            core("fn f() { std::thread::sleep(d) }"),
            "std::thread",
        );
        check_caught(pure_core, core("use tokio::time::*;"), "tokio");
        check_caught(
            pure_core,
            core("use std::collections::{BTreeMap, HashMap};"),
            "HashMap",
        );
        check_caught(
            pure_core,
            core("fn f() { log!(rand::rng()); }"),
            "rand::rng",
        );
        check_caught(pure_core, core("use rand::thread_rng as r;"), "thread_rng");
    }

    #[test]
    fn engine_comments_may_name_outside_api() {
        check_passes(
            pure_core,
            core("//! No HashMap, no tokio.\n/// Not std::fs.\nconst A: &str = \"SystemTime\";"),
        );
        check_passes(
            pure_core,
            core("use rand::Rng; struct Instant; fn f(instant: Instant) { instant.now() }"),
        );
        check_passes(pure_core, data("use std::collections::HashMap;"));
    }

    #[test]
    fn worker_calls_outside_seams_are_found() {
        let worker = |code: &str| SourceFile::sample("runtime/local/src/worker/sample.rs", code);
        check_caught(
            workers_use_seams,
            worker("fn f() { tokio::time::Instant::now(); }"),
            "Instant::now",
        );
        check_caught(
            workers_use_seams,
            worker("use std::process::{Command, Stdio};"),
            "process::Command",
        );
        check_caught(
            workers_use_seams,
            worker("use rustix::process::kill_process;"),
            "kill_process",
        );
        check_passes(
            workers_use_seams,
            worker("use tokio::time::Instant; fn f() { crate::clock::now() }"),
        );
        check_passes(
            workers_use_seams,
            data("fn f() { std::time::Instant::now(); }"),
        );
    }

    #[test]
    fn daemon_calls_outside_its_world_are_found() {
        let daemon = |path: &str, code: &str| SourceFile::sample(path, code);
        let coordinator = "runtime/cluster/src/coordinator/sample.rs";
        for code in [
            "fn f() { tokio::spawn(g()); }",
            "use tokio::task::spawn_blocking;",
            "fn f() { getrandom::u64(); }",
        ] {
            check_caught(
                daemons_use_world,
                daemon(coordinator, code),
                "call the World",
            );
        }
        let code = "fn f(world: &World) { world.tasks.spawn(g()); }";
        check_passes(daemons_use_world, daemon(coordinator, code));
        let code = "fn f() { tokio::spawn(g()); }";
        for elsewhere in [
            "runtime/cluster/src/coordinator/tests/sample.rs",
            "runtime/local/src/world/tasks.rs",
        ] {
            check_passes(daemons_use_world, daemon(elsewhere, code));
        }
    }

    #[test]
    fn printing_macros_outside_tests_are_found() {
        for code in [
            "fn f() {\n println!(); }",
            "fn f() {\n std::eprint!(\"a\") }",
            "fn f() {\n m!(eprintln!(\"a\")) }",
        ] {
            check_caught(no_panicking_prints, data(code), "sample.rs:2: ");
        }
        check_passes(
            no_panicking_prints,
            data("/// println!()\nfn f() { print(\"println!\"); if print != eprint {} }"),
        );
        check_passes(
            no_panicking_prints,
            data("#[cfg(test)] mod tests { #[test] fn f() { println!(); } }"),
        );
        check_passes(
            no_panicking_prints,
            SourceFile::sample("runtime/data/tests/a.rs", "fn f() { print!(); }"),
        );
    }

    #[test]
    fn unlisted_unsafe_code_is_found() {
        let rule = |files: &[SourceFile]| {
            unsafe_outside(files, &[("runtime/data/src/listed.rs", "maps memory")])
        };
        let bad = [
            "fn f() { unsafe { g() } }",
            "unsafe fn f() {}",
            "unsafe impl Send for A {}",
            "fn f() { m!(unsafe { 1 }) }",
        ];
        for code in bad {
            check_caught(rule, data(code), "unsafe in 1 places");
        }
        check_passes(
            rule,
            data("#![deny(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";"),
        );
        check_passes(
            rule,
            SourceFile::sample("runtime/data/src/listed.rs", bad[0]),
        );
        check_caught(
            rule,
            SourceFile::sample("runtime/data/src/listed.rs", "fn f() {}"),
            "take it off the list",
        );
    }
}
