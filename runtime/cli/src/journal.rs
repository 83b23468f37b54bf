//! `nap journal`: reads a coordinator's journal without changes and without a coordinator, and copies what a damaged
//! one still contains.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand};
use napreduce_answers::JobAnswer;
use napreduce_cluster::{
    JournalCheck, JournalContent, JournalLoss, RepairError, ReplayError, check_journal,
    repair_journal,
};
use napreduce_protocol::several_lines;
use napreduce_schedulers::SchedulerConfiguration;
use napreduce_web::clock::now_millis;
use serde_json::json;

use crate::cluster::ClusterArguments;
use crate::failure::{printed, usage};
use crate::format::FormatArguments;
use crate::job::jobs_text;
use crate::screen::Screen;

/// Check or repair the journal of a coordinator
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  nap journal check             the journal of the cluster of this machine
  nap journal check /srv/nap    of another directory or copy
  nap journal repair /srv/nap --output /srv/nap/repaired

Exit status of check: 0 intact, 1 damaged, 2 not found. Of repair: 0 copied, 1 failed, 2 not found.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Read the whole journal, without changes, and print its content, its damage and what is lost
    Check {
        #[command(flatten)]
        place: Place,

        #[command(flatten)]
        format: FormatArguments,
    },
    /// Copy the coordinator's directory with a journal that ends before its damage
    ///
    /// The coordinator must be stopped. The original is never changed. Entries after the damage are left out, since
    /// they depend on those that cannot be read. To use the copy, move it to the place of the folder `coordinator`,
    /// and start the coordinator.
    #[command(after_help = "\
Examples:
  nap journal repair /srv/nap --output /srv/nap/repaired
  mv /srv/nap/coordinator /srv/nap/damaged
  mv /srv/nap/repaired /srv/nap/coordinator")]
    Repair {
        #[command(flatten)]
        place: Place,

        /// New directory for the copy, on the same file system as the original
        #[arg(long, value_name = "COPY")]
        output: PathBuf,

        #[command(flatten)]
        format: FormatArguments,
    },
}

#[derive(Debug, Clone, Args)]
struct Place {
    /// Cluster directory, or a copy of its folder `coordinator` [default: the one of --dir]
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Place {
    /// Returns the directory that contains the journal.
    fn journal_directory(&self, cluster: &ClusterArguments) -> Result<PathBuf> {
        let directory = match &self.directory {
            Some(directory) => directory.clone(),
            None => cluster.directory()?.path().to_owned(),
        };
        let inside = directory.join("coordinator");
        if inside.is_dir() {
            Ok(inside)
        } else {
            Ok(directory)
        }
    }
}

pub fn run(arguments: &Arguments, cluster: &ClusterArguments) -> Result<()> {
    match &arguments.command {
        Command::Check { place, format } => {
            let directory = place.journal_directory(cluster)?;
            let name = directory.display().to_string();
            let check = check_journal(&directory, SchedulerConfiguration::read)
                .map_err(|error| with_place(RepairError::Journal(error), &name))?;
            format.print(
                |screen| check_text(&name, &check, screen),
                || answer(&check),
            )?;
            if check.damage.is_some() {
                return Err(printed());
            }
            Ok(())
        }
        Command::Repair {
            place,
            output,
            format,
        } => {
            let directory = place.journal_directory(cluster)?;
            let name = directory.display().to_string();
            let check = repair_journal(&directory, output, SchedulerConfiguration::read)
                .map_err(|error| with_place(error, &name))?;
            let copy = output.display().to_string();
            format.print(
                |screen| repair_text(&name, &copy, &check, screen),
                || {
                    let mut answer = answer(&check);
                    answer["output"] = copy.as_str().into();
                    answer
                },
            )
        }
    }
}

/// Adds the directory to an error; a missing journal or a wrong directory is wrong usage.
fn with_place(error: RepairError, place: &str) -> anyhow::Error {
    let is_usage = matches!(
        error,
        RepairError::Journal(ReplayError::NoJournal(_))
            | RepairError::OutputExists(_)
            | RepairError::OutputInside(_)
    );
    let error = anyhow::Error::from(error).context(format!("the journal in {place}"));
    if is_usage { usage(error) } else { error }
}

fn answer(check: &JournalCheck) -> serde_json::Value {
    let mut files = Vec::new();
    for file in &check.files {
        files.push(json!({
            "path": file.path.display().to_string(),
            "bytes": file.bytes,
            "version": file.version,
            "entries": file.entries,
            "whole": file.is_whole,
        }));
    }
    let mut lost_jobs = Vec::new();
    for job in &check.lost.jobs {
        lost_jobs.push(json!({
            "job": job.job.to_string(),
            "name": job.name,
            "user": job.user,
            "output": job.output.display().to_string(),
        }));
    }
    let mut ended = Vec::new();
    for job in &check.lost.ended {
        ended.push(job.to_string());
    }
    let content = check.content.as_ref();
    let jobs = content.map_or(&[][..], |content| &content.jobs);
    json!({
        "files": files,
        "scheduler": content.map(|content| &content.scheduler),
        "begun_millis": content.map(|content| content.begun_millis),
        "first_millis": content.and_then(|content| content.first_millis),
        "last_millis": content.map(|content| content.last_millis),
        "has_snapshot": content.is_some_and(|content| content.has_snapshot),
        "entries": content.map_or(0, |content| content.entries),
        "workers": content.map_or(0, |content| content.workers),
        "jobs": jobs.iter().map(JobAnswer::from).collect::<Vec<_>>(),
        "remarks": check.remarks,
        "damage": check.damage,
        "lost": {
            "entries": check.lost.entries,
            "jobs": lost_jobs,
            "ended": ended,
        },
    })
}

fn check_text(place: &str, check: &JournalCheck, screen: &Screen) -> String {
    let mut text = content_text(place, check, screen);
    if check.damage.is_some() {
        text.push_str(
            "damaged: restore the file from a copy, or copy what can be kept with nap journal repair\n",
        );
    } else {
        text.push_str("a coordinator can continue from it\n");
    }
    text.push_str(&jobs_table(check, screen));
    text
}

fn repair_text(place: &str, copy: &str, check: &JournalCheck, screen: &Screen) -> String {
    let mut text = content_text(place, check, screen);
    let kept = match &check.content {
        Some(content) => format!(
            "{} and {}",
            counted(content.entries, "entry", "entries"),
            unfinished_jobs(content)
        ),
        None => {
            "no entries and no jobs; new jobs are numbered after those in the history".to_owned()
        }
    };
    text.push_str(&format!("copy       {copy}: {kept}\n"));
    text.push_str(
        "to use it, move it to the place of the folder coordinator, and start the coordinator\n",
    );
    text.push_str(&jobs_table(check, screen));
    text
}

fn jobs_table(check: &JournalCheck, screen: &Screen) -> String {
    match &check.content {
        Some(content) if !content.jobs.is_empty() => {
            format!("\n{}", jobs_text(&content.jobs, now_millis(), screen))
        }
        _ => String::new(),
    }
}

fn content_text(place: &str, check: &JournalCheck, screen: &Screen) -> String {
    let mut text = format!("journal    {place}\n");
    for file in &check.files {
        let name = file.path.file_name().unwrap_or_default().display();
        let mut line = format!("file       {name}: {} bytes", file.bytes);
        if file.entries > 0 {
            let entries = counted(file.entries, "entry", "entries");
            line.push_str(&format!(", {entries}"));
        }
        if let Some(version) = file.version {
            line.push_str(&format!(", version {version}"));
        }
        if !file.is_whole {
            line.push_str(", not whole");
        }
        text.push_str(&line);
        text.push('\n');
    }
    match &check.content {
        Some(content) => text.push_str(&kept_text(content, screen)),
        None => text.push_str("holds      nothing that can be kept\n"),
    }
    for remark in &check.remarks {
        text.push_str(&format!("remark     {}\n", several_lines(remark)));
    }
    if let Some(damage) = &check.damage {
        text.push_str(&format!("damage     {}\n", several_lines(damage)));
        text.push_str(&lost_text(&check.lost));
    }
    text
}

fn kept_text(content: &JournalContent, screen: &Screen) -> String {
    let before = if content.has_snapshot {
        "a snapshot and "
    } else {
        ""
    };
    let first = match content.first_millis {
        Some(millis) => format!(", first entry {}", screen.moment(millis)),
        None => String::new(),
    };
    format!(
        "begun      {}{first}, last written {}\nscheduler  {}\nholds      {before}{}: {}, {}\n",
        screen.moment(content.begun_millis),
        screen.moment(content.last_millis),
        content.scheduler,
        counted(content.entries, "entry", "entries"),
        counted(content.workers, "worker", "workers"),
        unfinished_jobs(content)
    )
}

fn unfinished_jobs(content: &JournalContent) -> String {
    counted(content.jobs.len(), "unfinished job", "unfinished jobs")
}

/// Returns a number with its noun, for example `1 entry` or `12 entries`.
fn counted(count: usize, one: &str, several: &str) -> String {
    let noun = if count == 1 { one } else { several };
    format!("{count} {noun}")
}

fn lost_text(lost: &JournalLoss) -> String {
    let mut text = format!(
        "lost       the damaged entries and {} after them\n",
        counted(lost.entries, "readable one", "readable ones")
    );
    for job in &lost.jobs {
        text.push_str(&format!(
            "lost       {} ({}, of {}): it was accepted after the damage; its output is {}\n",
            job.job,
            several_lines(&job.name),
            several_lines(&job.user),
            job.output.display()
        ));
    }
    for job in &lost.ended {
        text.push_str(&format!(
            "lost       the end of {job}: a coordinator would end it again, as killed; its output stays\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use napreduce_cluster::{JournalFileCheck, LostJob};
    use napreduce_engine::JobId;

    use super::*;
    use crate::job::sample_summary;

    fn check() -> JournalCheck {
        JournalCheck {
            files: vec![JournalFileCheck {
                path: Path::new("/srv/nap/coordinator/journal-00000003.log").to_owned(),
                bytes: 4_000,
                version: Some(11),
                entries: 12,
                is_whole: true,
            }],
            content: Some(JournalContent {
                scheduler: "fair".to_owned(),
                begun_millis: 1_790_000_000_000,
                first_millis: Some(1_790_000_030_000),
                last_millis: 1_790_000_060_000,
                has_snapshot: true,
                entries: 12,
                workers: 2,
                jobs: vec![sample_summary()],
            }),
            remarks: vec!["journal-00000003.log ends inside an entry".to_owned()],
            damage: None,
            lost: JournalLoss::default(),
        }
    }

    #[test]
    fn journal_check_prints_summary_and_jobs() {
        let check = check();
        let text = check_text("/srv/nap/coordinator", &check, &Screen::plain());
        let (head, table) = text.split_once("\n\n").expect("two parts");
        assert_eq!(
            head,
            "journal    /srv/nap/coordinator\n\
             file       journal-00000003.log: 4000 bytes, 12 entries, version 11\n\
             begun      2026-09-21T14:13:20Z, first entry 2026-09-21T14:13:50Z, last written 2026-09-21T14:14:20Z\n\
             scheduler  fair\nholds      a snapshot and 12 entries: 2 workers, 1 unfinished job\n\
             remark     journal-00000003.log ends inside an entry\na coordinator can continue from it"
        );
        assert!(
            table.starts_with("JOB") && table.contains("job_0007"),
            "{table}"
        );
        assert_eq!(answer(&check)["jobs"][0]["job"], "job_0007");
    }

    #[test]
    fn journal_repair_prints_what_is_lost_and_kept() {
        let mut check = check();
        check.damage = Some("journal-00000003.log is damaged at byte 40".to_owned());
        check.lost = JournalLoss {
            entries: 3,
            jobs: vec![LostJob {
                job: JobId(9),
                name: "wordcount".to_owned(),
                user: "ada".to_owned(),
                output: Path::new("/data/out").to_owned(),
            }],
            ended: vec![JobId(7)],
        };
        let text = repair_text(
            "/srv/nap/coordinator",
            "/srv/copy",
            &check,
            &Screen::plain(),
        );
        for part in [
            "damage     journal-00000003.log is damaged at byte 40\n",
            "lost       the damaged entries and 3 readable ones after them\n",
            "lost       job_0009 (wordcount, of ada): it was accepted after the damage; its output is /data/out\n",
            "lost       the end of job_0007: a coordinator would end it again, as killed; its output stays\n",
            "copy       /srv/copy: 12 entries and 1 unfinished job\n",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let lost = &answer(&check)["lost"];
        assert_eq!(lost["jobs"][0]["job"], "job_0009");
        assert_eq!(lost["ended"][0], "job_0007");
        check.content = None;
        let text = repair_text(
            "/srv/nap/coordinator",
            "/srv/copy",
            &check,
            &Screen::plain(),
        );
        assert!(
            text.contains("holds      nothing that can be kept\n"),
            "{text}"
        );
        assert!(text.contains("/srv/copy: no entries and no jobs"), "{text}");
    }
}
