//! `nap web`: the dashboard of a cluster, links to it, and API tokens.

mod running;
mod what_if;

use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand};
use napreduce_cluster::{ClusterDirectory, ClusterPlace};
use napreduce_protocol::printing::{print, print_error};
use napreduce_web::clock::now_millis;
use napreduce_web::{Revocations, WebRole, link, token};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use running::secret_of;
pub use running::{Running, settings};
pub use what_if::what_if_settings;

use crate::cluster::{ClusterArguments, WebAddress};
use crate::failure::usage;

const DAYS_MAX: i64 = 3650;

/// The page of a cluster: serve it, get a link to it, make and revoke tokens for programs
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
`nap up` serves the page by itself, and prints a link. A link is good once, within 15 minutes; whoever opens it is signed in
for 12 hours since the last use.

Examples:
  nap web link                                      another link to the page of this cluster
  nap web serve                                     a page for a coordinator that was started without nap up
  nap web serve --coordinator HOST:7000 --secret-file F       for a cluster elsewhere; it needs no open port there
  nap web token --role view --name grafana          for programs: Authorization: Bearer ...
  nap web revoke grafana")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Print a link that signs its reader in, once, within 15 minutes
    Link {
        /// Whoever opens it may look, and order nothing
        #[arg(long)]
        view: bool,
    },
    /// Serve the page of a cluster until interrupted
    Serve(ServeArguments),
    /// Make a token for a program, and print it; it is kept nowhere
    Token {
        /// view: see everything; operate: order everything, too
        #[arg(long, value_name = "ROLE")]
        role: WebRole,

        /// By which it is revoked, and which is recorded with what it orders: letters, digits, - and _
        #[arg(long, value_name = "NAME")]
        name: String,

        /// How long it counts
        #[arg(long, value_name = "N", default_value = "90", value_parser = clap::value_parser!(u32).range(1..=DAYS_MAX))]
        days: u32,
    },
    /// Have tokens count no more, as of now
    Revoke {
        /// Those of this name
        #[arg(value_name = "NAME", required_unless_present = "all")]
        name: Option<String>,

        /// Every token, cookie and link
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// Where to listen, on this machine [default: 127.0.0.1:8088, or another port if it is taken]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub bind: Option<std::net::SocketAddr>,

    /// A further name under which it is asked, such as that of a proxy before it; may be repeated
    #[arg(long, value_name = "NAME[:PORT]")]
    pub host: Vec<String>,
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    match &arguments.command {
        Command::Link { view } => {
            let directory = own_directory(cluster)?;
            let address = running::address_in(&directory)?;
            let role = if *view { WebRole::View } else { WebRole::Operate };
            print(format_args!("{}\n", link(&directory.secret()?, address, role)?));
            Ok(())
        }
        Command::Serve(arguments) => {
            let filed = cluster.configuration()?.web;
            let address = WebAddress::chosen(arguments.bind, filed.bind);
            let hosts = [arguments.host.clone(), filed.hosts].concat();
            let running = Running::start(cluster.place()?, address, hosts, cluster)?;
            wait(&running.line()?)
        }
        Command::Token { role, name, days } => {
            let word = token(&secret_of(&cluster.place()?)?, *role, name, *days)?;
            print_error(format_args!(
                "{name} may {role} for {days} days, unless revoked: nap web revoke {name}"
            ));
            print(format_args!("{word}\n"));
            Ok(())
        }
        Command::Revoke { name, .. } => {
            let file = running::revocations_file(&own_directory(cluster)?);
            let mut revocations = Revocations::read(&file)?;
            revocations.revoke(name.as_deref(), now_millis());
            revocations.write(&file)?;
            let what = name.as_deref().map_or("every token, cookie and link".to_owned(), |name| {
                format!("every token of the name {name}")
            });
            print_error(format_args!("{what} made up to now counts no more"));
            Ok(())
        }
    }
}

/// Prints where a page is, and waits until a signal comes.
pub fn wait(line: &str) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot handle signals")?;
    print(line);
    signals.forever().next();
    Ok(())
}

/// What is in a directory is not known of a cluster that is elsewhere.
fn own_directory(cluster: &ClusterArguments) -> Result<ClusterDirectory> {
    match cluster.place()? {
        ClusterPlace::Directory(directory) => {
            directory.check()?;
            Ok(directory)
        }
        ClusterPlace::Address { address, .. } => Err(usage(anyhow!(
            "this is for the machine of the coordinator at {address}; leave out --coordinator there"
        ))),
    }
}
