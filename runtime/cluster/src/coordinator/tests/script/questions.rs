//! Script lines for the questions of clients: `ask` or `until`, followed by a question from the left column.
//! The right column shows sample lines of the answer, separated by semicolons; in `preemptions`, the
//! semicolon is part of the line. `why` stands for the text of a reason.
//!
//! ```text
//! why 1, why m0                   the reasons, the most important one first
//! job 1                           active, priority 0, queue default: why
//! jobs                            1 active: why
//! end 1                           waits for its end: succeeded: part-r-00000; failed: why; killed: why
//! failure 1                       the task that failed the job: m0.4 user code: why; or none
//! tasks 1, or tasks of all jobs   m0 suspended, m0.1 suspended: why; m0 done, 2 attempts
//! attempts 1                      m0.1 done; m0.1 is live
//! progress 1                      of the maps: 1/2, 10/20 bytes, 1 suspended
//! workers                         1 w lost: why
//! queues                          fair wants 2+0; nightly wants 2+0, 1 waiting; no queues
//! events 1
//! outcomes suspend 1, or m0.1     m0.1 pending; queued; done; refused: why; overtaken: finished
//! preemptions 1                   m0.1 suspend by operator: why; suspended, saved 20ms, lost 10ms,
//!                                 stopped 5ms, took 700us (the worker)
//! resumes 1                       m0.1 stopped 5ms
//! restores 1                      m0.2 from m0.1, saved 20ms, restored; or unusable: why
//! counters 1 SUSPENDS RESUMES     SUSPENDS 1, RESUMES 0
//! log m0.1                        127.0.0.1:1 has it, still growing; or complete
//! file out/part-r-00000           its lines, or `none`
//! files out                       the names in it, `nothing`, or `none` if it does not exist
//! root 7                          of a chain: there, emptied, or gone
//! ```
//!
//! In an answer, counts of zero are left out, and `none` stands for no lines. Slots are written `2+0`: two
//! map slots and no reduce slot.
//!
//! - `end` waits for the end of the job. `outcomes` returns the state of an operator's command for each
//!   attempt.
//! - `log` returns the address of the worker that has the log, and whether the attempt is still writing it.
//! - `file` and `files` read from the folder of the test.
//! - `root` returns the state of a chain's intermediate directory: present, without its files, or removed.

use std::fs;

use napreduce_engine::scenarios::names::{attempt, name, name_task, number, task};
use napreduce_engine::{AttemptId, JobId, WorkerId};
use napreduce_protocol::requests::{
    Explain, GetOutcomes, ListJobs, ListQueues, ListTasks, ListWorkers,
};
use napreduce_protocol::{
    CommandOutcome, JobDetail, JobEnd, JobSummary, PreemptionEnd, PreemptionSummary, QueueListing,
    QueueSummary, TaskCommand, TaskPhase, TaskSummary, WorkerPhase, WorkerSummary,
};

use super::Stage;
use crate::coordinator::refusal::Refusal;
use crate::coordinator::requests::LoopRequest;

impl Stage {
    pub(super) async fn ask(&self, question: &[&str]) -> Result<Vec<String>, Refusal> {
        let job = |of: &str| JobId(number(of));
        Ok(match *question {
            ["file", path] => self.file(path),
            ["files", path] => self.files(path),
            ["root", chain] => vec![self.root_in_words(number(chain).into()).to_owned()],
            ["end", of] => vec![end(&self.running().end_of(job(of)).await)],
            ["failure", of] => failure(&self.running().end_of(job(of)).await),
            ["log", of] => {
                let attempt = attempt(of);
                let holder = self
                    .running()
                    .ask(|reply| LoopRequest::LogHolder { attempt, reply })
                    .await?;
                let grows = if holder.has_ended {
                    "grows no more"
                } else {
                    "grows"
                };
                let address = holder.address.map_err(Refusal::failed);
                let kept = holder
                    .stderr
                    .map(|stderr| format!("kept: {}", stderr.trim_end()));
                let held = address.map(|address| format!("{address} has it, and it {grows}"));
                match (held, kept) {
                    (held, None) => vec![held?],
                    (held, Some(kept)) => held.into_iter().chain([kept]).collect(),
                }
            }
            ["why", of] => {
                let asked = match of.contains(['m', 'r']) {
                    true => Explain {
                        job: task(of).job,
                        task: Some(task(of)),
                    },
                    false => Explain {
                        job: job(of),
                        task: None,
                    },
                };
                self.running()
                    .asked(asked)
                    .await?
                    .into_iter()
                    .map(|reason| reason.text)
                    .collect()
            }
            ["jobs"] => self
                .running()
                .asked(ListJobs { limit: 99 })
                .await?
                .iter()
                .map(job_in_words)
                .collect(),
            ["tasks", ref of @ ..] => {
                let job = of.first().map(|of| job(of));
                self.running()
                    .asked(ListTasks { job })
                    .await?
                    .iter()
                    .map(task_in_words)
                    .collect()
            }
            ["workers"] => self
                .running()
                .asked(ListWorkers)
                .await?
                .iter()
                .map(worker_in_words)
                .collect(),
            ["queues"] => queues_in_words(&self.running().asked(ListQueues).await?),
            ["outcomes", what, of] => {
                let command = TaskCommand::of_word(what).expect("a command");
                let (job, attempts) = match of.contains('.') {
                    true => (attempt(of).task.job, vec![attempt(of)]),
                    false => (job(of), Vec::new()),
                };
                let asked = GetOutcomes {
                    job,
                    attempts,
                    command,
                };
                self.running()
                    .asked(asked)
                    .await?
                    .iter()
                    .map(outcome_in_words)
                    .collect()
            }
            [what, of, ref more @ ..] => of_job(what, &self.running().job(job(of)).await?, more),
            _ => panic!("what is '{}'?", question.join(" ")),
        })
    }

    fn file(&self, path: &str) -> Vec<String> {
        let text = fs::read_to_string(self.scene.path(path));
        text.map(|text| text.lines().map(str::to_owned).collect())
            .unwrap_or_default()
    }

    fn files(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.scene.path(path)) else {
            return Vec::new();
        };
        let names = entries.map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        if names.is_empty() {
            vec!["nothing".to_owned()]
        } else {
            names
        }
    }
}

/// Returns the answer to a question about one job.
fn of_job(what: &str, detail: &JobDetail, more: &[&str]) -> Vec<String> {
    let summary = &detail.summary;
    match what {
        "job" => {
            let phase = summary.phase;
            let priority = summary.priority;
            let queue = &summary.queue;
            vec![format!(
                "{phase}, priority {priority}, queue {queue}{}",
                because(&summary.reason)
            )]
        }
        "progress" => {
            let map = summary.progress.map;
            let done = map.done;
            let tasks = map.tasks;
            let suspended = said(", ", map.suspended, " suspended");
            vec![format!(
                "{done}/{tasks}, {}/{} bytes{suspended}",
                map.bytes_done, map.bytes_total
            )]
        }
        "attempts" => {
            let end = |end: &Option<String>| end.clone().unwrap_or_else(|| "is live".to_owned());
            detail
                .attempts
                .iter()
                .map(|one| format!("{} {}", name(one.attempt), end(&one.end)))
                .collect()
        }
        "events" => detail
            .events
            .iter()
            .map(|event| event.text.clone())
            .collect(),
        "preemptions" => detail.preemptions.iter().map(preemption_in_words).collect(),
        "resumes" => resumes(detail),
        "restores" => {
            let restores = detail.restores.iter().map(|restore| {
                let there = restore.restored_micros.map_or("", |_| ", is there");
                let refused = restore
                    .refused
                    .as_ref()
                    .map_or_else(String::new, |why| format!(", unusable: {why}"));
                let saved = said(", saved ", restore.work_saved_millis, "ms");
                format!(
                    "{} from {}{saved}{there}{refused}",
                    name(restore.attempt),
                    name(restore.from)
                )
            });
            restores.collect()
        }
        "counters" => {
            let counted = more
                .iter()
                .map(|name| format!("{name} {}", detail.counters.get(name)));
            vec![counted.collect::<Vec<_>>().join(", ")]
        }
        other => panic!("what is '{other}'?"),
    }
}

fn because(reason: &Option<String>) -> String {
    reason
        .as_ref()
        .map_or_else(String::new, |reason| format!(": {reason}"))
}

/// Formats a count between two texts; empty if the count is zero.
fn said(before: &str, count: impl Into<u64>, behind: &str) -> String {
    let count = count.into();
    if count == 0 {
        String::new()
    } else {
        format!("{before}{count}{behind}")
    }
}

fn end(end: &JobEnd) -> String {
    match end {
        JobEnd::Succeeded(report) => {
            let parts: Vec<&str> = report.parts.iter().map(|part| part.name.as_str()).collect();
            format!("succeeded: {}", parts.join(" "))
        }
        JobEnd::Failed { reason, .. } => format!("failed: {reason}"),
        JobEnd::Killed { reason, .. } => format!("killed: {reason}"),
    }
}

fn failure(end: &JobEnd) -> Vec<String> {
    let JobEnd::Failed {
        failure: Some(failure),
        ..
    } = end
    else {
        return Vec::new();
    };
    vec![format!(
        "{} {}: {}",
        name(failure.attempt),
        failure.place,
        failure.message
    )]
}

fn job_in_words(of: &JobSummary) -> String {
    format!("{} {}{}", of.job.0, of.phase, because(&of.reason))
}

fn task_in_words(of: &TaskSummary) -> String {
    let live = of
        .live
        .iter()
        .map(|live| format!(", {} {}", name(live.attempt), live.state));
    let several = if of.attempts > 1 {
        format!(", {} attempts", of.attempts)
    } else {
        String::new()
    };
    assert!(
        of.attempts > 0 || matches!(of.state, TaskPhase::Waiting | TaskPhase::Killed),
        "{of:?}"
    );
    let live: String = live.collect();
    format!(
        "{} {}{several}{live}{}",
        name_task(of.task),
        of.state,
        because(&of.reason)
    )
}

fn worker_in_words(of: &WorkerSummary) -> String {
    let WorkerSummary {
        worker: WorkerId(id),
        name,
        host,
        state,
        gone_millis,
        ..
    } = of;
    let is_gone = matches!(state, WorkerPhase::Left | WorkerPhase::Lost);
    assert_eq!(
        gone_millis.is_some_and(|at| at > 1_600_000_000_000),
        is_gone,
        "{of:?}"
    );
    assert_eq!(host, "host", "{of:?}");
    format!("{id} {name} {state}{}", because(&of.reason))
}

fn queues_in_words(of: &QueueListing) -> Vec<String> {
    let first = format!(
        "{} wants {}+{}",
        of.scheduler, of.wanted.map, of.wanted.reduce
    );
    let Some(queues) = &of.queues else {
        return vec![first, "no queues".to_owned()];
    };
    let queue = |queue: &QueueSummary| {
        let QueueSummary {
            name,
            map,
            reduce,
            waiting,
            ..
        } = queue;
        format!(
            "{name} wants {}+{}, {waiting} waiting",
            map.wanted, reduce.wanted
        )
    };
    [first]
        .into_iter()
        .chain(queues.iter().map(queue))
        .collect()
}

fn outcome_in_words((of, outcome): &(AttemptId, CommandOutcome)) -> String {
    let outcome = match outcome {
        CommandOutcome::Pending => "pending".to_owned(),
        CommandOutcome::Queued => "queued".to_owned(),
        CommandOutcome::Done => "done".to_owned(),
        CommandOutcome::Refused(why) => format!("refused: {why}"),
        CommandOutcome::Overtaken(how) => format!("overtaken: {how}"),
    };
    format!("{} {outcome}", name(*of))
}

fn preemption_in_words(of: &PreemptionSummary) -> String {
    if let Some(PreemptionEnd::Suspended | PreemptionEnd::Checkpointed | PreemptionEnd::Killed) =
        of.end
    {
        let ordered = of.ordered_micros.expect("it was ordered");
        let freed = of.freed_micros.expect("it freed a slot");
        assert!(of.requested_micros <= ordered && ordered < freed, "{of:?}");
    }
    let asked = if of.asked == of.primitive {
        String::new()
    } else {
        format!(" instead of {}", of.asked)
    };
    let end = of.end.map_or_else(String::new, |end| format!("; {end}"));
    let saved = said(", saved ", of.work_saved_millis, "ms");
    let lost = said(", lost ", of.work_lost_millis, "ms");
    let stopped = said(", stopped ", of.suspended_millis.unwrap_or_default(), "ms");
    let took = said(", took ", of.worker_micros.unwrap_or_default(), "us");
    let who = name(of.attempt);
    let by = &of.by;
    let why = &of.reason;
    format!(
        "{who} {}{asked} by {by}: {why}{end}{saved}{lost}{stopped}{took}",
        of.primitive
    )
}

/// Formats the resumes of a job. Checks that each comes after the suspend that it ends.
fn resumes(detail: &JobDetail) -> Vec<String> {
    let resumes = detail.resumes.iter().map(|resume| {
        let was_freed = |stop: &PreemptionSummary| {
            stop.attempt == resume.attempt
                && stop
                    .freed_micros
                    .is_some_and(|freed| Some(freed) < resume.resumed_micros)
        };
        assert!(
            resume.resumed_micros.is_none() || detail.preemptions.iter().any(was_freed),
            "{detail:?}"
        );
        format!(
            "{}{}",
            name(resume.attempt),
            said(" stopped ", resume.suspended_millis, "ms")
        )
    });
    resumes.collect()
}
