//! Script lines for the messages of workers, and the text form of the messages to them. A report about an
//! attempt comes from the worker on which it was launched.
//!
//! ```text
//! worker w 1                      it joins, with one map slot and one reduce slot
//! disconnect w                    its connection closes
//! reconnect w                     it reconnects with its identity; `worker w 1 again`: a restarted worker
//!                                 in its place; > w is worker 2 now, if its number changed
//! received w 1                    the orders that w reports as received when it reconnects
//! repeats w                       sends its unacknowledged reports again
//! heartbeat w
//! acknowledges w 5                acknowledges orders up to this number
//! finish 1 on w                   w carries out its orders until the job has succeeded
//! does m0.1                       started and done; a task that writes output commits between
//! started m0.1                    reported by its worker; also suspended, failed and all other reports of
//!                                 scenarios; `as 7`: with this number instead of the next
//! suspended m0.1 after 2000ms     first an account with its active time, or stopped time (resumed); also
//!                                 checkpointed, killed
//! restored m0.2                   only an account: its checkpoint is loaded, or unusable: reason
//! stopped m0.1                    its process received SIGTSTP
//! writes r0.1                     writes its part to the place that the job's commit expects
//! done m0.1                       also: counting RECORDS 3, wrote 7 (the digest of its output)
//! ```
//!
//! Lines of the table in other words:
//!
//! - `worker w 1` connects a new worker. `reconnect w` connects the same worker again, and `worker w 1 again`
//!   connects a new process in its place. If the coordinator assigns another ID, the answer says so.
//! - `received w 1` sets the number of the last order that `w` reports as received when it reconnects.
//!   `repeats w` makes it number its reports from 1 again, as if none had been acknowledged.
//!   `acknowledges w 5` sends an acknowledgement of the orders up to 5.
//! - `does m0.1` reports a whole attempt: started, committed if it writes output, and done. `finish 1 on w`
//!   does so for every attempt that is launched on `w`, until job 1 has succeeded.
//! - `after 2000ms` first reports the cost of the preemption: the attempt was active for that time, or
//!   suspended for that time if it was resumed.
//! - `restored m0.2` and `unusable m0.2: why` report only that a checkpoint was loaded, or why it was not.
//! - `writes r0.1` writes the part file, which the commit of the job then finds. `stopped m0.1` reports that
//!   the process received SIGTSTP.
//! - A report with `as 7` has this message number instead of the next one.

use napreduce_engine::scenarios::names::{attempt, millis, name, number};
use napreduce_engine::scenarios::report;
use napreduce_engine::{AttemptId, JobId, MapOutput, Order, Start, TaskKind};
use napreduce_protocol::{
    CounterValues, FromWorker, JobEnd, OutputEntry, PartOutput, Preempted, PreemptionAccount,
    TaskCommand, ToWorker, WorkerMemory, WorkerReport,
};

use super::Stage;
use crate::coordinator::tests::{Worker, report_of};

impl Stage {
    /// Runs a line about a worker as a whole: returns its answer, which is not empty if the worker has a new
    /// ID, or `None` for any other line.
    pub(super) async fn worker_line(&mut self, words: &[&str]) -> Option<Vec<String>> {
        match *words {
            ["worker", of, slots, ref again @ ..] => {
                return Some(self.join(of, number(slots), *again == ["again"]).await);
            }
            ["reconnect", of] => return Some(self.reconnect(of).await),
            ["disconnect", of] => self.worker(of).disconnect(),
            ["received", of, through] => self.worker(of).hello.received = number(through).into(),
            ["repeats", of] => self.worker(of).reported = 0,
            ["finish", job, "on", of] => self.finish(job, of).await,
            ["heartbeat", of] => self.worker(of).say(FromWorker::Heartbeat {
                progress: Vec::new(),
                memory: WorkerMemory::default(),
            }),
            ["acknowledges", of, through] => {
                self.worker(of).say(FromWorker::Received {
                    through: number(through).into(),
                });
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    async fn join(&mut self, of: &str, slots: u32, again: bool) -> Vec<String> {
        let Some(before) = self.workers.get(of).filter(|_| again) else {
            let worker = Worker::join(self.running(), of, slots).await;
            return self.replace(of, worker);
        };
        let mut hello = before.hello.clone();
        (hello.incarnation, hello.before, hello.received) = (hello.incarnation + 1, None, 0);
        let worker = Worker::connect(self.running(), hello, 0).await;
        self.replace(of, worker)
    }

    pub(super) async fn reconnect(&mut self, of: &str) -> Vec<String> {
        let before = self.worker(of);
        before.disconnect();
        let hello = before.hello.clone();
        let reported = before.reported;
        let worker = Worker::connect(self.running(), hello, reported).await;
        self.replace(of, worker)
    }

    fn replace(&mut self, of: &str, worker: Worker) -> Vec<String> {
        let id = worker.id;
        let before = self.workers.insert(of.to_owned(), worker);
        let other = before.is_some_and(|before| before.id != id);
        if other {
            vec![format!("{of} is worker {} now", id.0)]
        } else {
            Vec::new()
        }
    }

    async fn finish(&mut self, job: &str, of: &str) {
        // At once: a job that has ended, and that the history lacks, cannot be followed.
        let following = self.running().follow(JobId(number(job))).await;
        let over = format!("{of}: forget {job}");
        loop {
            let told = self.told(of, "").await;
            match told.split(' ').collect::<Vec<_>>()[..] {
                ["launch", id, "on", _] => {
                    self.places.insert(attempt(id), of.to_owned());
                    self.does(id).await;
                }
                _ if told == over => break,
                _ => panic!("{told}, which is in the way of finishing"),
            }
        }
        let end = self.running().end_of_followed(following).await;
        assert!(matches!(end, JobEnd::Succeeded(_)), "{end:?}");
    }

    /// Sends a report about an attempt; returns false if the line is not one.
    pub(super) async fn attempt_line(&mut self, words: &[&str], text: &str) -> bool {
        match *words {
            ["does", of] => self.does(of).await,
            [what, of, ref rest @ ..]
                if of.contains('.') && TaskCommand::of_word(what).is_none() =>
            {
                self.report(what, of, rest, text);
            }
            _ => return false,
        }
        true
    }

    async fn does(&mut self, of: &str) {
        self.report("started", of, &[], "");
        if self.writes(attempt(of)) {
            self.report("commits", of, &[], "");
            let place = self.place(attempt(of));
            assert_eq!(self.told(&place, "").await, format!("commit {of}"));
            self.report("writes", of, &[], "");
        }
        self.report("done", of, &[], "");
    }

    fn writes(&self, attempt: AttemptId) -> bool {
        attempt.task.kind == TaskKind::Reduce || self.map_only.contains(&attempt.task.job)
    }

    fn report(&mut self, what: &str, of: &str, rest: &[&str], text: &str) {
        let attempt = attempt(of);
        let part = PartOutput {
            records: 1,
            bytes: 5,
            digest: 1,
            ..PartOutput::default()
        };
        let part = self.writes(attempt).then_some(part);
        let place = self.place(attempt);
        let worker = self.workers.get_mut(&place).expect("it runs there");
        let behind = |word: &str| {
            rest.iter()
                .position(|other| *other == word)
                .map(|at| &rest[at + 1..])
        };
        let account = match behind("after") {
            Some([time, ..]) => Some(account(what, text, millis(time).0 / 1000)),
            _ if ["restored", "unusable"].contains(&what) => Some(account(what, text, 0)),
            _ => None,
        };
        if let Some(account) = account {
            worker.report(WorkerReport::Preempted { attempt, account });
        }
        match what {
            "restored" | "unusable" => {}
            "stopped" => worker.report(WorkerReport::SuspendWanted { attempt }),
            "printed" => worker.report(WorkerReport::Printed {
                attempt,
                stderr: text.to_owned(),
            }),
            "writes" => worker.write_part(&self.scene, attempt),
            "done" => {
                let mut counters = CounterValues::default();
                if let Some([counter, count]) = behind("counting") {
                    counters.add(counter, number(count).into());
                }
                let digest = behind("wrote").and_then(|after| after.first());
                worker.wrote(
                    attempt,
                    counters,
                    part,
                    digest.map(|digest| number(digest).into()),
                );
            }
            _ => {
                let report = report_of(attempt, report(what, rest, text));
                match behind("as") {
                    Some([said, ..]) => {
                        worker.say(FromWorker::Reported {
                            number: number(said).into(),
                            age_micros: 0,
                            report,
                        });
                    }
                    _ => worker.report(report),
                }
            }
        }
    }
}

/// A report on the cost of a preemption. `millis` is the active time of the attempt, or its suspended time if
/// it was resumed.
fn account(what: &str, why: &str, millis: u64) -> PreemptionAccount {
    let mut account = PreemptionAccount {
        what: Preempted::Restored,
        micros: 700,
        active_millis: millis,
        suspended_millis: 0,
        resident_bytes: 4096,
        swapped_bytes: 0,
        swapped_out_bytes: 0,
        swapped_in_bytes: 0,
        checkpoint_bytes: 0,
        notes: Vec::new(),
    };
    match what {
        "suspended" => account.what = Preempted::Suspended,
        "unusable" => account.what = Preempted::RestoreRefused(why.to_owned()),
        "killed" => account.what = Preempted::Killed,
        "checkpointed" => (account.what, account.checkpoint_bytes) = (Preempted::Checkpointed, 50),
        "resumed" => {
            (account.what, account.swapped_in_bytes) = (Preempted::Resumed, 100);
            (account.active_millis, account.suspended_millis) = (0, millis);
        }
        _ => {}
    }
    account
}

/// Formats a message to the worker `of`.
pub(super) fn in_words(of: &str, message: &ToWorker) -> String {
    match message {
        ToWorker::Ordered { order, .. } => order_in_words(of, order),
        ToWorker::Define { description, .. } => format!("{of}: define {}", description.job.0),
        ToWorker::Outputs { entries, .. } => {
            let entries = entries.iter().map(|entry| match entry {
                OutputEntry::Ready(MapOutput { attempt, worker }) => {
                    format!(" {}@{}", name(*attempt), worker.0)
                }
                OutputEntry::Lost { map } => format!(" no m{map}"),
            });
            format!("{of}: outputs{}", entries.collect::<String>())
        }
        ToWorker::Named { attempts, maps, .. } => {
            let maps: String = maps.iter().map(|map| format!(" m{map}")).collect();
            let reduces: String = attempts
                .iter()
                .map(|attempt| format!(" {}", name(*attempt)))
                .collect();
            format!("{of}: named{maps} to{reduces}")
        }
        ToWorker::Forget { job, .. } => format!("{of}: forget {}", job.0),
        ToWorker::Leave { .. } => format!("{of}: leave"),
        ToWorker::Received { through } => format!("{of}: received {through}"),
        ToWorker::Refused { reason, .. } => format!("{of}: refused: {reason}"),
        ToWorker::Welcome { worker, .. } => format!("{of}: welcome as {}", worker.0),
    }
}

fn order_in_words(of: &str, order: &Order) -> String {
    match order {
        Order::Launch {
            attempt,
            from,
            inputs,
        } => {
            assert_eq!(*inputs, [], "what a launch reads is in the log of outputs");
            let from = match from {
                Start::Fresh => String::new(),
                Start::Checkpoint(saved) => format!(" from {}", name(*saved)),
            };
            format!("launch {} on {of}{from}", name(*attempt))
        }
        other => format!("{} {}", other.verb(), name(other.attempt())),
    }
}
