//! `nap new`: a crate with a job, from a template. The templates are also templates of cargo-generate: their
//! placeholders are `{{project-name}}`, `{{crate_name}}` and `{{napreduce}}`, and `Cargo.toml.liquid` becomes
//! `Cargo.toml`. Under that name it would end the package of this crate at its folder.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use include_dir::{Dir, DirEntry, include_dir};
use napreduce_protocol::printing::print;

use crate::failure::usage;

static TEMPLATES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/templates");

/// The checkout from which this program was built; it may be gone.
const BUILT_IN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The file with which cargo-generate describes a template.
const DESCRIPTION: &str = "cargo-generate.toml";
/// The suffix of files that cargo-generate removes.
const LIQUID: &str = "liquid";

/// Names that cargo refuses, or that hide a crate which every program has.
const RESERVED: [&str; 10] = [
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "napreduce",
    "proc-macro",
    "proc_macro",
    "std",
];

/// The keywords of all editions; and `test`, the crate of tests.
const KEYWORDS: &str = "Self abstract as async await become box break const continue crate do dyn else enum extern \
    false final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static \
    struct super test trait true try type typeof unsafe unsized use virtual where while yield";

/// Create a crate with a job, its tests and sample data
///
/// Writes a directory that builds and runs as it is, and prints the next commands. Nothing that exists is
/// overwritten.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap new words                           a word count
  nap new orders --template join          a join of two inputs
  nap new words --path ~/src/napreduce    with the napreduce of a checkout
  nap new words --template python         a program in Python

The same templates with cargo-generate:
  cargo generate --path CHECKOUT runtime/cli/templates/join --name orders")]
pub struct Arguments {
    /// Name of the crate; a path before it names the directory to create it in
    #[arg(value_name = "NAME")]
    directory: PathBuf,

    /// Template
    #[arg(long, value_name = "TEMPLATE", value_enum, default_value = "wordcount")]
    template: Template,

    /// Checkout of napreduce to depend on [default: the one that this program was built in, or else the
    /// published version]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Template {
    /// Count the words of text
    Wordcount,
    /// Join two inputs by a key
    Join,
    /// Split events at pauses, with a reduce that can be checkpointed inside a group
    Sessions,
    /// Rank pages by links: a chain of jobs and a driver
    Pagerank,
    /// Count the words of text with Python
    Python,
}

impl Template {
    fn folder(self) -> &'static str {
        match self {
            Template::Wordcount => "wordcount",
            Template::Join => "join",
            Template::Sessions => "sessions",
            Template::Pagerank => "pagerank",
            Template::Python => "python",
        }
    }
}

/// Where the new program finds napreduce.
enum Source {
    /// The registry of cargo or pip.
    Published,
    Checkout(PathBuf),
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let directory = &arguments.directory;
    let name = directory
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    check_name(name).map_err(|why| {
        usage(anyhow!(
            "invalid name {:?}: {why}",
            directory.display().to_string()
        ))
    })?;
    let source = Source::chosen(arguments.path.as_deref()).map_err(usage)?;
    let crate_name = name.replace('-', "_");
    let values = [
        ("project-name", name),
        ("crate_name", &crate_name),
        (
            "napreduce",
            &source.line(arguments.template).map_err(usage)?,
        ),
    ];
    let files = filled(arguments.template, &values)?;
    create(directory, &files)?;
    print(format_args!(
        "created {} with {source}\n\nnext:\n  cd {0}\n",
        directory.display()
    ));
    let readme = files
        .iter()
        .find(|(path, _)| path == Path::new("README.md"));
    for command in readme.map(|(_, text)| commands(text)).unwrap_or_default() {
        print(format_args!("  {command}\n"));
    }
    Ok(())
}

/// Fails with the reason if cargo would refuse the name of a package.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("it is empty; name the crate".to_owned());
    }
    if let Some(other) = name
        .chars()
        .find(|char| !char.is_ascii_alphanumeric() && !"-_".contains(*char))
    {
        return Err(format!("character {other:?}; use letters, digits, - and _"));
    }
    if !name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        return Err("it must begin with a letter or _".to_owned());
    }
    if KEYWORDS
        .split_whitespace()
        .chain(RESERVED)
        .any(|reserved| reserved == name)
    {
        return Err(
            "the name is reserved by Rust, Cargo or this template; choose another".to_owned(),
        );
    }
    Ok(())
}

impl Source {
    fn chosen(path: Option<&Path>) -> Result<Source> {
        let Some(path) = path else {
            let built_in = Path::new(BUILT_IN);
            return Ok(if is_checkout(built_in) {
                Source::of(built_in)?
            } else {
                Source::Published
            });
        };
        if !is_checkout(path) {
            bail!(
                "--path {}: not a checkout of napreduce: framework/Cargo.toml is missing or names another package",
                path.display()
            );
        }
        Source::of(path)
    }

    fn of(checkout: &Path) -> Result<Source> {
        let absolute = checkout.canonicalize();
        Ok(Source::Checkout(absolute.with_context(|| {
            format!("cannot find {}", checkout.display())
        })?))
    }

    /// Returns the dependency in `Cargo.toml`, or the command that installs the Python module.
    fn line(&self, template: Template) -> Result<String> {
        Ok(match (self, template) {
            (Source::Published, Template::Python) => "pip install napreduce".to_owned(),
            (Source::Published, _) => format!("version = \"{}\"", version()),
            (Source::Checkout(checkout), Template::Python) => {
                format!("export PYTHONPATH={}", in_quotes(&checkout.join("python"))?)
            }
            (Source::Checkout(checkout), _) => {
                format!("path = {}", in_quotes(&checkout.join("framework"))?)
            }
        })
    }
}

/// Formats the end of the message about a new crate.
impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Published => write!(
                f,
                "the published napreduce {}; if that is not found, remove it and use --path CHECKOUT",
                version()
            ),
            Source::Checkout(checkout) => write!(f, "the napreduce of {}", checkout.display()),
        }
    }
}

/// Returns the compatible versions: those of the same minor version.
fn version() -> String {
    format!(
        "{}.{}",
        env!("CARGO_PKG_VERSION_MAJOR"),
        env!("CARGO_PKG_VERSION_MINOR")
    )
}

fn is_checkout(directory: &Path) -> bool {
    fs::read_to_string(directory.join("framework/Cargo.toml"))
        .is_ok_and(|manifest| manifest.lines().any(|line| line == "name = \"napreduce\""))
}

/// Quotes a path for TOML and a shell. Fails for the few characters that one of them would change.
fn in_quotes(path: &Path) -> Result<String> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(|char: char| char.is_control() || "\"\\$`".contains(char)));
    text.map(|text| format!("\"{text}\"")).with_context(|| {
        format!(
            "{}: the path cannot be written into Cargo.toml; move the checkout",
            path.display()
        )
    })
}

/// Returns the files of a template, with paths in the new directory and without placeholders.
fn filled(template: Template, values: &[(&str, &str)]) -> Result<Vec<(PathBuf, String)>> {
    let folder = TEMPLATES
        .get_dir(template.folder())
        .context("internal error: the template is missing")?;
    let mut files = Vec::new();
    collect(folder, &mut |path, text| {
        let path = path.strip_prefix(template.folder()).unwrap_or(path);
        if path == Path::new(DESCRIPTION) {
            return;
        }
        let is_liquid = path
            .extension()
            .is_some_and(|extension| extension == LIQUID);
        let path = if is_liquid {
            path.with_extension("")
        } else {
            path.to_owned()
        };
        let fill = |text: String, (name, value): &(&str, &str)| {
            text.replace(&format!("{{{{{name}}}}}"), value)
        };
        files.push((path, values.iter().fold(text.to_owned(), fill)));
    });
    Ok(files)
}

/// Passes the path and text of each file to `each`.
fn collect(folder: &Dir<'_>, each: &mut impl FnMut(&Path, &str)) {
    for entry in folder.entries() {
        match entry {
            DirEntry::Dir(below) => collect(below, each),
            DirEntry::File(file) => each(file.path(), file.contents_utf8().unwrap_or_default()),
        }
    }
}

/// Creates a directory with these files; on failure none is left.
fn create(directory: &Path, files: &[(PathBuf, String)]) -> Result<()> {
    let cannot = || format!("cannot create {}", directory.display());
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).with_context(cannot)?;
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(usage(anyhow!(
                "{}: already exists; choose another name",
                directory.display()
            )));
        }
        created => created.with_context(cannot)?,
    }
    write(directory, files)
        .with_context(cannot)
        .inspect_err(|_| {
            // The first error is the one to report. The directory is new.
            let _ = fs::remove_dir_all(directory);
        })
}

fn write(directory: &Path, files: &[(PathBuf, String)]) -> io::Result<()> {
    for (path, text) in files {
        let path = directory.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        File::create_new(&path)?.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Returns the lines of the first block of commands in a README.
fn commands(readme: &str) -> Vec<&str> {
    let block = readme
        .split("```sh\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    block.unwrap_or_default().lines().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: [(&str, &str); 3] = [
        ("project-name", "my-words"),
        ("crate_name", "my_words"),
        ("napreduce", "version = \"0.3\""),
    ];

    #[test]
    fn every_folder_of_templates_is_a_template_without_open_placeholders() {
        let names: Vec<&str> = Template::value_variants()
            .iter()
            .map(|template| template.folder())
            .collect();
        for folder in TEMPLATES.dirs() {
            assert!(
                names.contains(&folder.path().to_str().expect("text")),
                "{folder:?}"
            );
        }
        for template in Template::value_variants() {
            let files = filled(*template, &VALUES).expect("it is there");
            for (path, text) in &files {
                assert!(
                    !text.contains("{{") && !text.contains("{%"),
                    "{}: {text}",
                    path.display()
                );
                assert!(
                    path.extension().is_none_or(|extension| extension != LIQUID),
                    "{}",
                    path.display()
                );
            }
            let readme = files
                .iter()
                .find(|(path, _)| path == Path::new("README.md"))
                .expect("a README");
            assert!(readme.1.starts_with("# my-words\n"), "{}", readme.1);
            let run = if *template == Template::Python {
                "python3 wordcount.py "
            } else {
                "cargo run -- "
            };
            assert!(
                commands(&readme.1).iter().any(|line| line.starts_with(run)),
                "{}",
                readme.1
            );
            assert!(
                files
                    .iter()
                    .any(|(path, _)| path == Path::new(".gitignore")),
                "{template:?}"
            );
            assert!(
                files.iter().any(|(path, _)| path.starts_with("data")),
                "{template:?}"
            );
        }
    }

    #[test]
    fn default_of_cargo_generate_is_this_version() {
        for template in Template::value_variants() {
            let file = TEMPLATES
                .get_file(format!("{}/{DESCRIPTION}", template.folder()))
                .expect("a description");
            let table: toml::Table = file.contents_utf8().expect("text").parse().expect("TOML");
            let default = table["placeholders"]["napreduce"]["default"]
                .as_str()
                .expect("text");
            assert_eq!(
                default,
                Source::Published.line(*template).expect("a line"),
                "{template:?}"
            );
        }
    }

    #[test]
    fn manifests_depend_on_napreduce_once_with_and_once_without_tests() {
        for template in Template::value_variants()
            .iter()
            .filter(|template| **template != Template::Python)
        {
            let files = filled(*template, &VALUES).expect("it is there");
            let manifest = files
                .iter()
                .find(|(path, _)| path == Path::new("Cargo.toml"))
                .expect("a manifest");
            let table: toml::Table = manifest.1.parse().expect("TOML");
            assert_eq!(table["package"]["name"].as_str(), Some("my-words"));
            assert_eq!(
                table["dependencies"]["napreduce"]["version"].as_str(),
                Some("0.3")
            );
            assert!(table["dev-dependencies"]["napreduce"]["features"].is_array());
        }
    }

    #[test]
    fn name_is_checked_as_cargo_does() {
        for name in ["words", "my-words", "_x", "a1", "Words"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for (name, why) in [
            ("", "empty"),
            ("7up", "begin with a letter"),
            ("-x", "begin with a letter"),
            ("a b", "character ' '"),
            ("wörter", "character 'ö'"),
            ("a.b", "character '.'"),
            ("fn", "reserved"),
            ("test", "reserved"),
            ("std", "reserved"),
            ("napreduce", "reserved"),
        ] {
            let refused = check_name(name).expect_err(name);
            assert!(refused.contains(why), "{name}: {refused}");
        }
    }

    #[test]
    fn failed_creation_leaves_no_directory() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("below/words");
        let file = |path: &str| (PathBuf::from(path), String::new());
        assert!(create(&directory, &[file("a"), file("a")]).is_err());
        assert!(!directory.exists());
        create(&directory, &[file("a"), file("src/b")]).expect("created");
        let refused = create(&directory, &[file("c")])
            .expect_err("it exists")
            .to_string();
        assert!(
            refused.ends_with("already exists; choose another name"),
            "{refused}"
        );
        assert!(directory.join("src/b").is_file() && !directory.join("c").exists());
    }

    #[test]
    fn paths_that_a_shell_or_toml_would_change_are_refused() {
        assert_eq!(
            in_quotes(Path::new("/a b/c")).expect("it is plain"),
            "\"/a b/c\""
        );
        for path in ["/a\"b", "/a\\b", "/a\nb", "/$HOME"] {
            assert!(in_quotes(Path::new(path)).is_err(), "{path}");
        }
    }
}
