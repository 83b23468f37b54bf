//! `nap web`: the dashboard of a cluster, links to it, and API tokens.

mod running;

use anyhow::{Context, Result, anyhow};
use clap::{Args, Subcommand};
use napreduce_cluster::{ClusterDirectory, ClusterPlace};
use napreduce_protocol::printing::{print, print_error};
use napreduce_web::clock::now_millis;
use napreduce_web::{Revocations, WebRole, link, token};
use signal_hook::iterator::Signals;

use running::secret_of;
pub use running::{Dashboard, settings, what_if_settings};

use crate::cluster::{ClusterArguments, WebAddress};
use crate::failure::usage;
use crate::signals::ending_signals;

const DAYS_MAX: i64 = 3650;

/// Serve the dashboard, print links to it, create and revoke API tokens
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
`nap up` serves the dashboard and prints a link. A link is valid for 15 minutes
and signs in once, for 12 hours since the last use.

Examples:
  nap web link                               another link
  nap web serve                              for a cluster without nap up
  nap web serve --coordinator HOST:7000 --secret-file F
  nap web token --role view --name grafana   for Authorization: Bearer ...
  nap web revoke grafana")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Print a link that signs in once, within 15 minutes
    Link {
        /// Allow viewing only
        #[arg(long)]
        view: bool,
    },
    /// Serve the dashboard of a cluster until interrupted
    Serve(ServeArguments),
    /// Create an API token and print it; it is not stored
    Token {
        /// view, or operate for commands as well
        #[arg(long, value_name = "ROLE")]
        role: WebRole,

        /// Name for `revoke` and for the record of its commands: letters, digits, - and _
        #[arg(long, value_name = "NAME")]
        name: String,

        /// Days until it expires
        #[arg(long, value_name = "N", default_value = "90", value_parser = clap::value_parser!(u32).range(1..=DAYS_MAX))]
        days: u32,
    },
    /// Revoke tokens
    Revoke {
        /// Name of the tokens
        #[arg(value_name = "NAME", required_unless_present = "all")]
        name: Option<String>,

        /// Revoke every token, cookie and link
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
}

#[derive(Debug, Clone, Args)]
pub struct ServeArguments {
    /// Address of the dashboard [default: 127.0.0.1:8088, or another port if it is taken]
    #[arg(long, alias = "bind", value_name = "ADDRESS:PORT")]
    pub web: Option<std::net::SocketAddr>,

    /// Further host name to accept, such as the one of a proxy; repeatable
    #[arg(long, value_name = "NAME[:PORT]")]
    pub host: Vec<String>,
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    match &arguments.command {
        Command::Link { view } => {
            let directory = own_directory(cluster)?;
            let address = running::address_in(&directory)?;
            let role = if *view {
                WebRole::View
            } else {
                WebRole::Operate
            };
            print(format_args!(
                "{}\n",
                link(&directory.secret()?, address, role)?
            ));
            Ok(())
        }
        Command::Serve(arguments) => {
            let table = cluster.configuration()?.web;
            let address = WebAddress::chosen(arguments.web, table.bind);
            let hosts = [arguments.host.clone(), table.hosts].concat();
            let running = Dashboard::start(cluster.place()?, address, hosts, cluster)?;
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
            let what = name
                .as_deref()
                .map_or("every token, cookie and link".to_owned(), |name| {
                    format!("every token named {name}")
                });
            print_error(format_args!("revoked {what} created until now"));
            Ok(())
        }
    }
}

/// Prints a line and waits for a signal that ends the command.
pub fn wait(line: &str) -> Result<()> {
    let mut signals = ending_signals()
        .and_then(Signals::new)
        .context("cannot handle signals")?;
    print(line);
    signals.forever().next();
    Ok(())
}

/// Returns the cluster directory. Fails for a cluster that is named by address.
fn own_directory(cluster: &ClusterArguments) -> Result<ClusterDirectory> {
    match cluster.place()? {
        ClusterPlace::Directory(directory) => {
            directory.check()?;
            Ok(directory)
        }
        ClusterPlace::Address { address, .. } => Err(usage(anyhow!(
            "--coordinator {address}: only possible on the machine of the coordinator; run it there without --coordinator"
        ))),
    }
}
