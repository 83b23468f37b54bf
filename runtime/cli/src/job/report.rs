//! `nap job report`: a job as one self-contained HTML file.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use napreduce_cluster::ClusterClient;
use napreduce_protocol::requests::GetJob;
use napreduce_protocol::{JobDetail, printing::print_error};
use napreduce_web::clock::now_micros;
use napreduce_web::report_html;

use crate::ids::{JobSelector, select_one};
use crate::whole_file::write_whole;

#[derive(Debug, Clone, Args)]
#[command(after_help = "\
The report shows the timeline of all attempts, preemptions with the work they
saved and lost, counters and parts. It contains no scripts.

Examples:
  nap job report last --output report.html
  nap history report copied/history 7 --output report.html   without a cluster")]
pub struct ReportArguments {
    /// job_0007, 7, last, or the name of one job
    #[arg(value_name = "JOB")]
    job: JobSelector,

    #[command(flatten)]
    file: ReportFile,
}

#[derive(Debug, Clone, Args)]
pub struct ReportFile {
    /// File to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Replace an existing file
    #[arg(long)]
    overwrite: bool,
}

pub fn run(arguments: &ReportArguments, client: &mut ClusterClient) -> Result<()> {
    let job = select_one(&arguments.job, "nap job report", client)?;
    arguments.file.write(&client.ask(GetJob { job })?)
}

impl ReportFile {
    pub fn write(&self, job: &JobDetail) -> Result<()> {
        let page = report_html(job, now_micros());
        write_whole(&self.output, self.overwrite, |file| {
            file.write_all(page.as_bytes())
        })?;
        print_error(format_args!(
            "{}: open it in a browser",
            Path::new(&self.output).display()
        ));
        Ok(())
    }
}
