//! `nap lab paper`: figures of the papers, with verdicts.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use napreduce_lab::paper::{
    PaperReport, PaperSettings, Verdict, paper, paper_again, papers, runs_live, select,
};
use napreduce_lab::report::counted;
use napreduce_protocol::printing::{print, print_error};

use crate::place::{Workplace, bar};

const DOES_NOT_HOLD: u8 = 1;
const NOT_RESOLVED: u8 = 3;

/// Repeat figures and tables of the papers, and judge their claims
///
/// The entry of a figure has its claims, the runs that test them, the published numbers and our expectations. Runs
/// are made in blocks, every variant once with the same jobs; ratios and differences are taken inside a block. Runs
/// are live, on clusters of this machine at the scale of the figure's entry (times are reported at the paper's scale),
/// unless --simulate or --rehearse is given. Without a paper, every figure is listed, with its verdict in the named
/// report. The exit status is 0 if all selected figures hold, 1 if one does not, 3 if one is not resolved, and 2 if
/// the command failed. Ctrl-C leaves a report of the finished runs.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  nap lab paper
  nap lab paper --report all
  nap lab paper natjam 5 --simulate
  nap lab paper natjam 5 --rehearse             the live runs in simulated time
  nap lab paper natjam 5                        live, on a cluster of this machine
  nap lab paper hfsp 7 --both --report hfsp-7
  nap lab paper fcs 8-11,t2 --simulate --report fcs
  nap lab paper all --simulate --report all
  nap lab paper --from all natjam-live --markdown results.md
  nap lab paper --simulate --continue fcs --repetitions 30")]
pub struct PaperArguments {
    /// os, natjam, fcs, hfsp, yarn, or all
    #[arg(value_name = "PAPER")]
    pub paper: Option<String>,

    /// Figures, such as 5 or 8-11,t2 [default: all of the paper]
    #[arg(value_name = "FIGURES")]
    pub figures: Option<String>,

    /// In simulated time, at the paper's scale
    #[arg(long)]
    pub simulate: bool,

    /// The live runs in simulated time, to see whether their scale is large enough
    #[arg(long, conflicts_with_all = ["simulate", "both", "from"])]
    pub rehearse: bool,

    /// In simulated time, and live as well
    #[arg(long, conflicts_with_all = ["simulate", "from"])]
    pub both: bool,

    #[command(flatten)]
    pub place: Workplace,

    /// The folder of the report [default: a temporary one, which is removed]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["from", "go_on"])]
    pub report: Option<PathBuf>,

    /// Judge and draw the reports in these folders again, as one report; run nothing
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["paper", "simulate", "go_on", "quick"])]
    pub from: Vec<PathBuf>,

    /// Add blocks to a report, whose intervals then are of 97.5 %, since its verdicts were known
    #[arg(long = "continue", value_name = "DIR", conflicts_with_all = ["paper", "quick"])]
    pub go_on: Option<PathBuf>,

    /// Blocks of each campaign [default: that of its entry, mostly 30 simulated; 6 or more live, depending on the
    /// claims]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repetitions: Option<u32>,

    /// Try one block without a verdict
    #[arg(long, conflicts_with = "repetitions")]
    pub quick: bool,

    /// Seed of the first block; the others follow
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,

    /// Also write the page of the docs
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// Runs the command and returns its exit status.
pub fn run(arguments: &PaperArguments) -> Result<ExitCode> {
    if !arguments.from.is_empty() {
        let report = paper_again(&arguments.from)?;
        let folders: Vec<String> = arguments
            .from
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        return finish(
            &report,
            arguments,
            &format!("nap lab paper --from {}", folders.join(" ")),
        );
    }
    if arguments.paper.is_none() && arguments.go_on.is_none() {
        return list(arguments.report.as_deref());
    }
    let figures = match &arguments.paper {
        Some(name) => select(&papers()?, name, arguments.figures.as_deref())?,
        None => Vec::new(),
    };
    let temporary = match (&arguments.report, &arguments.go_on) {
        (None, None) => {
            Some(tempfile::tempdir().context("cannot make a folder for temporary files")?)
        }
        _ => None,
    };
    let named = arguments.report.as_deref().or(arguments.go_on.as_deref());
    let folder = named
        .or(temporary.as_ref().map(tempfile::TempDir::path))
        .unwrap_or(Path::new("."));
    let settings = PaperSettings {
        figures,
        blocks: if arguments.quick {
            Some(1)
        } else {
            arguments.repetitions
        },
        seed: arguments.seed,
        folder: folder.to_owned(),
        go_on: arguments.go_on.is_some(),
        simulate: arguments.simulate || arguments.both,
        rehearse: arguments.rehearse,
        live: !arguments.simulate && !arguments.rehearse,
    };
    let place = &arguments.place;
    let session = if settings.live {
        place.session()?
    } else {
        place.session_without_binaries()?
    };
    let bar = bar(1, "simulating {bar:30} {pos}/{len} runs, {eta} left");
    let report = paper(&settings, &session, |ended, all| {
        bar.set_length(all as u64);
        bar.set_position(ended as u64);
        if ended == all {
            bar.finish_and_clear();
        }
    })?;
    bar.finish_and_clear();
    if let Err(interrupted) = session.interrupt.check() {
        print_error(format_args!(
            "nap lab paper: {interrupted}; the report has the finished runs"
        ));
    }
    if arguments.quick {
        let ran = report.runs.iter().count();
        print(format_args!(
            "{ran} runs, one block: the figures can be run; nothing is judged\n"
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let what = [
        arguments.paper.as_deref().unwrap_or_default(),
        arguments.figures.as_deref().unwrap_or_default(),
    ];
    let asked = [arguments.simulate, arguments.rehearse, arguments.both];
    let flags = asked
        .into_iter()
        .zip([" --simulate", " --rehearse", " --both"]);
    let how: String = flags
        .filter(|(asked, _)| *asked)
        .map(|(_, flag)| flag)
        .collect();
    finish(
        &report,
        arguments,
        format!("nap lab paper {}{how}", what.join(" ").trim_end()).as_str(),
    )
}

fn finish(report: &PaperReport, arguments: &PaperArguments, command: &str) -> Result<ExitCode> {
    print(report.text());
    if let Some(path) = &arguments.markdown {
        let page = report.markdown(&format!("{command} --markdown {}", path.display()));
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if !report.identical() {
        print_error(format_args!(
            "nap lab paper: an output of a live run differs from that of the undisturbed job"
        ));
    }
    let against = [
        Verdict::DoesNotHold,
        Verdict::DoesNotSupport,
        Verdict::NoEffect,
    ];
    let is_against = against.iter().any(|verdict| report.count(*verdict) > 0);
    Ok(if is_against || !report.identical() {
        ExitCode::from(DOES_NOT_HOLD)
    } else if report.count(Verdict::NotResolved) > 0 {
        ExitCode::from(NOT_RESOLVED)
    } else {
        ExitCode::SUCCESS
    })
}

/// Lists every figure with its claims, and its number of runs or its verdict in a report.
fn list(report: Option<&Path>) -> Result<ExitCode> {
    let report = report
        .map(|folder| PaperReport::read(papers()?, folder))
        .transpose()?;
    for paper in papers()? {
        print(format_args!("{}  {}\n", paper.name, paper.title));
        for id in paper.ids() {
            let figure = &paper.figures[id];
            let takes = match &figure.cannot {
                Some(_) => "cannot be tested".to_owned(),
                None if runs_live(&paper, figure) => {
                    format!("{}, also live", counted(paper.runs_of(figure), "run"))
                }
                None => format!("{} a block", counted(paper.runs_of(figure), "run")),
            };
            let judged = report.iter().flat_map(|report| &report.judgements);
            let judged = judged
                .filter(|one| one.paper == paper.name)
                .find(|one| one.figure == id);
            let takes = judged.map_or(takes, |judged| judged.verdict.in_words().to_owned());
            print(format_args!("  {id:<9} {takes:<18} {}\n", figure.title));
            for claim in &figure.claims {
                let judged = judged.iter().flat_map(|judged| &judged.claims);
                let verdict = judged.into_iter().find(|one| one.says == claim.says);
                let verdict = verdict
                    .and_then(|claim| claim.verdict)
                    .map(|verdict| verdict.in_words());
                let word = match &claim.not_measured {
                    Some(_) => "not measured",
                    None => verdict.unwrap_or_default(),
                };
                print(format_args!(
                    "  {:<9} {word:<18} - {} ({})\n",
                    "", claim.says, claim.from
                ));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
