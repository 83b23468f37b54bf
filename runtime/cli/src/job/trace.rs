//! `nap job trace`: the timeline of every attempt, in a file for Perfetto.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use napreduce_cluster::ClusterClient;
use napreduce_history::{TraceFigures, write_trace};
use napreduce_protocol::requests::GetJob;
use napreduce_protocol::{JobDetail, printing::print_error};
use napreduce_web::clock::now_micros;

use super::of_each;
use crate::ids::JobSelector;
use crate::whole_file::write_whole;

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The timeline has a lane for each slot and a bar for each time that an attempt
held it, with every preemption, its reason, and the work it saved and lost.

Examples:
  nap job trace last --output trace.json
  nap job trace 3-7 --output trace.json.gz   compressed; Perfetto opens that as well")]
pub struct TraceArguments {
    /// job_0007, 7, 3-7, last, all, or the name of one job
    #[arg(value_name = "JOB", required = true)]
    jobs: Vec<JobSelector>,

    /// File to write, in Chrome's JSON format; compressed if its name ends in .gz
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
}

pub fn run(arguments: &TraceArguments, client: &mut ClusterClient) -> Result<()> {
    let TraceArguments {
        jobs,
        output,
        overwrite,
    } = arguments;
    let (details, failures) = of_each(jobs, client, |client, job| Ok(client.ask(GetJob { job })?))?;
    let is_packed = output.extension().is_some_and(|end| end == "gz");
    let figures = write_whole(output, *overwrite, |file| write(&details, is_packed, file))?;
    let TraceFigures { stints, naps } = figures;
    print_error(format_args!(
        "{}: {stints} running intervals, {naps} preemptions; open it in Perfetto (ui.perfetto.dev) or chrome://tracing",
        output.display()
    ));
    failures.finish()
}

fn write(jobs: &[JobDetail], is_packed: bool, file: &mut impl Write) -> io::Result<TraceFigures> {
    if !is_packed {
        return write_trace(jobs, now_micros(), file);
    }
    let mut packed = GzEncoder::new(file, Compression::default());
    let figures = write_trace(jobs, now_micros(), &mut packed)?;
    packed.finish()?;
    Ok(figures)
}
