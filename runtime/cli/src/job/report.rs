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
The life of every attempt as a picture, who took which slot and what that saved and lost, counters and parts; without scripts, to
be mailed or kept.

Examples:
  nap job report last --output report.html
  nap history report copied/history 7 --output report.html     without a cluster")]
pub struct ReportArguments {
    /// job_0007, 7, last
    #[arg(value_name = "JOB")]
    job: JobSelector,

    #[command(flatten)]
    file: ReportFile,
}

#[derive(Debug, Clone, Args)]
pub struct ReportFile {
    /// The file
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Replace the file if it is there
    #[arg(long)]
    overwrite: bool,
}

pub fn run(arguments: &ReportArguments, client: &mut ClusterClient) -> Result<()> {
    let job = select_one(arguments.job, "nap job report", client)?;
    arguments.file.write(&client.ask(GetJob { job })?)
}

impl ReportFile {
    pub fn write(&self, job: &JobDetail) -> Result<()> {
        let page = report_html(job, now_micros());
        write_whole(&self.output, self.overwrite, |file| file.write_all(page.as_bytes()))?;
        print_error(format_args!("{}: open it in a browser", Path::new(&self.output).display()));
        Ok(())
    }
}
