//! Commands that generate the data of the job suite: movies and their centroids, associations, graphs.

use super::arguments::{Destination, parse_exponent};
use super::{Failure, generate, output_settings, print_error, progress, summary};
use clap::Args;
use datagen::Watch;
use datagen::associations::{self, ARITY_MAX, AssociationsSettings};
use datagen::centroids::{self, CLUSTERS_MAX, CentroidsSettings};
use datagen::graph::{self, GraphSettings};
use datagen::movies::{self, MoviesSettings};
use datagen::rows::Amount;
use datagen::sizes::{parse_bytes, parse_count};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write movies with their reviews: lines MOVIE:RATER_RATING,RATER_RATING,...
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  datagen movies --movies 10k --output movies
  datagen movies --bytes 1GiB --raters 500k --reviews-exponent 1.1 --files 4 --output movies")]
pub(crate) struct MoviesArguments {
    /// Number of movies, optionally with k, M, G or T for powers of 1000
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "bytes", required_unless_present = "bytes")]
    movies: Option<u64>,

    /// Write as many movies as fill SIZE bytes; the last one may exceed it
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bytes: Option<u64>,

    /// Number of raters; each reviews a movie at most once
    #[arg(long, value_name = "N", default_value = "100k", value_parser = parse_u32)]
    raters: u32,

    /// A movie has N reviews in proportion to 1 / N^EXPONENT
    #[arg(long, value_name = "EXPONENT", default_value = "1.2", value_parser = parse_exponent)]
    reviews_exponent: f64,

    /// Random seed
    #[arg(long, default_value = "42")]
    seed: u64,

    #[command(flatten)]
    destination: Destination,
}

/// Write sorted associations: lines A1,A2,...,AK of items in order
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  datagen associations --records 1M --output associations
  datagen associations --bytes 100MB --arity 3 --items 1M --sharing 20 --output associations")]
pub(crate) struct AssociationsArguments {
    /// Number of associations, optionally with k, M, G or T for powers of 1000
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "bytes", required_unless_present = "bytes")]
    records: Option<u64>,

    /// Write as many associations as fill SIZE bytes; the last one may exceed it
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bytes: Option<u64>,

    /// Number of distinct items
    #[arg(long, value_name = "N", default_value = "10k", value_parser = parse_u32)]
    items: u32,

    /// Number of items in an association
    #[arg(long, value_name = "K", default_value = "4", value_parser = clap::value_parser!(u32).range(2..=i64::from(ARITY_MAX)))]
    arity: u32,

    /// Average number of associations that differ only in their last item
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_u32)]
    sharing: u32,

    /// Random seed
    #[arg(long, default_value = "42")]
    seed: u64,

    #[command(flatten)]
    destination: Destination,
}

/// Write the edges of a graph: lines A,B
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  datagen graph --edges 10M --output edges
  datagen graph --bytes 1GiB --vertices 100k --exponent 1 --output edges")]
pub(crate) struct GraphArguments {
    /// Number of edges, optionally with k, M, G or T for powers of 1000
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "bytes", required_unless_present = "bytes")]
    edges: Option<u64>,

    /// Write as many edges as fill SIZE bytes; the last one may exceed it
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    bytes: Option<u64>,

    /// Number of vertices
    #[arg(long, value_name = "N", default_value = "1M", value_parser = parse_u32)]
    vertices: u32,

    /// The vertex of rank R has edges in proportion to 1 / R^EXPONENT
    #[arg(long, default_value = "0.7", value_parser = parse_exponent)]
    exponent: f64,

    /// Random seed
    #[arg(long, default_value = "42")]
    seed: u64,

    #[command(flatten)]
    destination: Destination,
}

/// Draw initial k-means centroids from movies: a file of lines K SIMILARITY MOVIE COUNT REVIEWS
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  datagen centroids movies --output centroids.txt
  datagen centroids movies/part-00000 --clusters 6 --seed 7 --output centroids.txt")]
pub(crate) struct CentroidsArguments {
    /// Files of movies, or directories of them
    #[arg(required = true, value_name = "MOVIES")]
    movies: Vec<PathBuf>,

    /// Number of centroids
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=i64::from(CLUSTERS_MAX)))]
    clusters: u32,

    /// Random seed
    #[arg(long, default_value = "42")]
    seed: u64,

    /// Output file
    #[arg(long, value_name = "FILE")]
    output: PathBuf,

    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,

    /// Print neither progress nor summary
    #[arg(long)]
    quiet: bool,
}

fn parse_u32(text: &str) -> Result<u32, String> {
    let count = parse_count(text).map_err(|error| error.to_string())?;
    u32::try_from(count).map_err(|_| format!("choose at most {}", u32::MAX))
}

/// Returns the amount; clap requires exactly one of the two.
fn amount(rows: Option<u64>, bytes: Option<u64>) -> Amount {
    bytes.map_or(Amount::Rows(rows.unwrap_or(0)), Amount::Bytes)
}

pub(super) fn run_movies(arguments: &MoviesArguments, watch: Watch) -> Result<ExitCode, Failure> {
    let settings = MoviesSettings {
        amount: amount(arguments.movies, arguments.bytes),
        raters: arguments.raters,
        reviews_exponent: arguments.reviews_exponent,
        seed: arguments.seed,
        output: output_settings(&arguments.destination, watch),
    };
    let data = format!(
        "movies of {} raters",
        summary::thousands(arguments.raters.into())
    );
    generate(&data, &settings.output, arguments.destination.quiet, || {
        movies::generate(&settings)
    })
}

pub(super) fn run_associations(
    arguments: &AssociationsArguments,
    watch: Watch,
) -> Result<ExitCode, Failure> {
    let settings = AssociationsSettings {
        amount: amount(arguments.records, arguments.bytes),
        items: arguments.items,
        arity: arguments.arity,
        sharing: arguments.sharing,
        seed: arguments.seed,
        output: output_settings(&arguments.destination, watch),
    };
    let items = summary::thousands(arguments.items.into());
    let data = format!("associations of {} of {items} items", arguments.arity);
    generate(&data, &settings.output, arguments.destination.quiet, || {
        associations::generate(&settings)
    })
}

pub(super) fn run_graph(arguments: &GraphArguments, watch: Watch) -> Result<ExitCode, Failure> {
    let settings = GraphSettings {
        amount: amount(arguments.edges, arguments.bytes),
        vertices: arguments.vertices,
        exponent: arguments.exponent,
        seed: arguments.seed,
        output: output_settings(&arguments.destination, watch),
    };
    let data = format!(
        "edges of {} vertices",
        summary::thousands(arguments.vertices.into())
    );
    generate(&data, &settings.output, arguments.destination.quiet, || {
        graph::generate(&settings)
    })
}

pub(super) fn run_centroids(
    arguments: &CentroidsArguments,
    watch: Watch,
) -> Result<ExitCode, Failure> {
    let settings = CentroidsSettings {
        movies: arguments.movies.clone(),
        clusters: arguments.clusters,
        seed: arguments.seed,
        file: arguments.output.clone(),
        overwrite: arguments.overwrite,
        watch,
    };
    progress::show_while("reading", &settings.watch, arguments.quiet, || {
        centroids::generate(&settings)
    })?;
    if !arguments.quiet {
        print_error(format_args!(
            "{}: {} centroids",
            arguments.output.display(),
            arguments.clusters
        ));
    }
    Ok(ExitCode::SUCCESS)
}
