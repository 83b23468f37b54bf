//! `nap man`: manual pages, generated from the definition of the commands.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Command};
use napreduce_protocol::printing::print_error;

const NAME: &str = "nap";

/// Write manual pages, one for each command
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap man ~/.local/share/man/man1   then: man nap-job-list")]
pub struct Arguments {
    /// Directory to write to, created if missing; existing pages are replaced
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub fn write_manual(arguments: &Arguments, mut command: Command) -> Result<()> {
    let directory = &arguments.directory;
    let cannot = || format!("cannot write manual pages to {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot)?;
    // Global options reach the subcommands only after this.
    command.build();
    let count = write_pages(&command, NAME.to_owned(), directory).with_context(cannot)?;
    print_error(format_args!(
        "wrote {count} pages to {}; see: man -l {}",
        directory.display(),
        directory.join("nap.1").display()
    ));
    Ok(())
}

/// Writes `nap-job-list.1` and the like for a command and its subcommands; returns their number.
fn write_pages(command: &Command, name: String, directory: &Path) -> io::Result<usize> {
    let page = clap_mangen::Man::new(command.clone().name(name.clone()));
    let mut text = Vec::new();
    page.render(&mut text)?;
    fs::write(directory.join(format!("{name}.1")), text)?;
    let mut count = 1;
    for inner in command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help" && !inner.is_hide_set())
    {
        count += write_pages(inner, format!("{name}-{}", inner.get_name()), directory)?;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A command with a subcommand that has an option.
    fn command() -> Command {
        let list = Command::new("list")
            .about("Lists jobs")
            .arg(clap::arg!(--limit <N> "Maximum number"));
        Command::new(NAME)
            .about("Operates")
            .subcommand(Command::new("job").subcommand(list))
    }

    #[test]
    fn manual_has_a_page_for_every_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let directory = folder.path().join("man/man1");
        write_manual(
            &Arguments {
                directory: directory.clone(),
            },
            command(),
        )
        .expect("written");
        let page = |name: &str| {
            fs::read_to_string(directory.join(name))
                .unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        assert!(page("nap.1").contains("Operates"));
        assert!(page("nap-job.1").contains("list"));
        let list = page("nap-job-list.1");
        assert!(
            list.contains("Lists jobs") && list.contains("limit") && list.contains("nap-job-list"),
            "{list}"
        );
        let error = write_manual(
            &Arguments {
                directory: directory.join("nap.1"),
            },
            command(),
        );
        let error = format!("{:#}", error.expect_err("that is a file"));
        assert!(
            error.starts_with("cannot write manual pages to "),
            "{error}"
        );
    }
}
