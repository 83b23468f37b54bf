//! Script lines for the commands of clients. The part after the colon is the reason that the client gives.
//! The right column lists variants of a line, or its answer after `>`.
//!
//! ```text
//! submit 1 maps 2 reduces 1       by this token; also: `to other` (the output), attempts N, slowstart N,
//!                                 chain 7, keeping state (its tasks cannot be checkpointed)
//!                                 > is job 2, if its number differs from its token
//! suspend m0.1: ada asked         also: resume, checkpoint, kill
//! kill m0: ada asked              of a task: all its live attempts
//!                                 > m0.1, the affected attempts, unless named in the command
//! kill 1: ada asked               of a job; also: suspend, resume, hold, release
//! change 1 priority 5 queue nightly: ada waits
//! root 7                          a program creates the root of a chain of jobs, with an output in it
//! hold chain 7                    the program is alive; also: `at place`, release (it has ended) and end
//! drain w: a new disk             also: `drain w now`, which returns its tasks, and undrain
//! ```
//!
//! Lines of the table in other words:
//!
//! - `submit 1` submits a job with the token 1. Its job number is expected to be the same; otherwise the
//!   answer is `is job 2`.
//! - A command for a task (`m0`) applies to its live attempts, which the answer lists. A command for an
//!   attempt (`m0.1`) has an empty answer.
//! - `root 7` creates the directory of a chain of jobs, with the output of a job. `hold chain 7` means that
//!   the program of the chain is connected, `release chain 7` that it has disconnected, and `end chain 7`
//!   that it has finished.
//! - `drain w now` also hands the running work of `w` to other workers; `undrain w` ends a drain.

use std::fs;
use std::path::PathBuf;

use napreduce_engine::scenarios::names::{name, number, task};
use napreduce_engine::{JobChange, JobId};
use napreduce_protocol::requests::{
    ChangeJob, CommandJob, CommandTask, DrainWorker, EndChain, HoldChain, KillJob, UndrainWorker,
};
use napreduce_protocol::{CheckpointSupport, JobCommand, TaskCommand};

use super::Stage;
use crate::coordinator::refusal::Refusal;
use crate::coordinator::requests::LoopRequest;

impl Stage {
    /// Sends a command; returns the lines of its answer, none if it only succeeded.
    pub(super) async fn order(
        &mut self,
        words: &[&str],
        text: &str,
    ) -> Result<Vec<String>, Refusal> {
        let reason = text.to_owned();
        let job = |of: &str| JobId(number(of));
        match *words {
            ["submit", token, ref asks @ ..] => return self.submit(token, asks).await,
            ["root", chain] => self.make_root(number(chain).into()),
            ["release", "chain", chain] => {
                let released = LoopRequest::ReleaseChain {
                    chain: number(chain).into(),
                };
                self.running()
                    .requests
                    .send(released)
                    .expect("the coordinator runs");
            }
            ["hold", "chain", of, ref at @ ..] => {
                let chain = number(of).into();
                let root = value(at, "at")
                    .map_or_else(|| self.root(chain), |place| self.scene.path(place));
                self.running().asked(HoldChain { chain, root }).await?;
            }
            ["end", "chain", chain] => {
                self.running()
                    .asked(EndChain {
                        chain: number(chain).into(),
                    })
                    .await?
            }
            ["change", of, ref to @ ..] => {
                let change = JobChange {
                    priority: value(to, "priority").map(signed),
                    queue: value(to, "queue").map(str::to_owned),
                };
                self.running()
                    .asked(ChangeJob {
                        job: job(of),
                        change,
                        reason,
                    })
                    .await?;
            }
            ["drain", of, ref now @ ..] => {
                let hand_back = *now == ["now"];
                let worker = self.worker(of).id;
                self.running()
                    .asked(DrainWorker {
                        worker,
                        hand_back,
                        reason,
                    })
                    .await?;
            }
            ["undrain", of] => {
                let worker = self.worker(of).id;
                self.running()
                    .asked(UndrainWorker { worker, reason })
                    .await?;
            }
            [what, of] if of.contains(['m', 'r']) => return self.command(what, of, reason).await,
            ["kill", of] => {
                self.running()
                    .asked(KillJob {
                        job: job(of),
                        reason,
                    })
                    .await?
            }
            [what, of] => {
                let command =
                    JobCommand::of_word(what).unwrap_or_else(|| panic!("what is '{what}'?"));
                self.running()
                    .asked(CommandJob {
                        job: job(of),
                        command,
                        reason,
                    })
                    .await?;
            }
            _ => panic!("what is '{}'?", words.join(" ")),
        }
        Ok(Vec::new())
    }

    async fn command(&self, what: &str, of: &str, reason: String) -> Result<Vec<String>, Refusal> {
        let command = TaskCommand::of_word(what).unwrap_or_else(|| panic!("what is '{what}'?"));
        let (task, attempt) = match of.split_once('.') {
            Some((of, tried)) => (task(of), Some(number(tried))),
            None => (task(of), None),
        };
        let attempts = self
            .running()
            .asked(CommandTask {
                task,
                attempt,
                command,
                reason,
            })
            .await?;
        let named: Vec<String> = attempts.into_iter().map(name).collect();
        Ok(if named == [of] { Vec::new() } else { named })
    }

    fn root(&self, chain: u128) -> PathBuf {
        self.scene.path(&format!(".out.intermediate-{chain:032x}"))
    }

    fn make_root(&self, chain: u128) {
        let root = self.root(chain);
        fs::create_dir_all(root.join("counts")).expect("made");
        let marker = format!("{{\"version\":1,\"token\":\"{chain:032x}\",\"owner\":\"cluster\"}}");
        fs::write(root.join(".napreduce-intermediate"), marker).expect("written");
        fs::write(root.join("counts/part-r-00000"), "a\t1\n").expect("written");
    }

    pub(super) fn root_in_words(&self, chain: u128) -> &'static str {
        let root = self.root(chain);
        match (root.exists(), root.join("counts/part-r-00000").exists()) {
            (true, true) => "there",
            (true, false) => "emptied",
            (false, _) => "gone",
        }
    }

    async fn submit(&mut self, token: &str, asks: &[&str]) -> Result<Vec<String>, Refusal> {
        let token: u128 = token.parse().expect("a token");
        let asked = |of: &str| value(asks, of).map_or(0, number);
        let mut submission = self
            .scene
            .submission(token, asked("maps"), asked("reduces"));
        let plan = &mut submission.plan;
        for pair in asks.chunks(2) {
            match *pair {
                ["maps" | "reduces", _] => {}
                ["to", output] => plan.output = self.scene.path(output),
                ["attempts", most] => plan.attempts_max = number(most),
                ["slowstart", permille] => plan.slowstart_permille = number(permille),
                ["chain", chain] => plan.chain = Some(number(chain).into()),
                ["keeping", "state"] => {
                    plan.checkpoint = CheckpointSupport {
                        map: false,
                        reduce: false,
                    }
                }
                _ => panic!("what is '{}'?", pair.join(" ")),
            }
        }
        let map_only = submission.plan.reduces == 0;
        let job = self.running().try_submit(submission).await?;
        if map_only {
            self.map_only.insert(job);
        }
        Ok(if u128::from(job.0) == token {
            Vec::new()
        } else {
            vec![format!("is job {}", job.0)]
        })
    }
}

/// Returns the word that follows `of` in a list of pairs.
fn value<'a>(pairs: &[&'a str], of: &str) -> Option<&'a str> {
    pairs
        .chunks(2)
        .find(|pair| pair[0] == of)
        .map(|pair| pair[1])
}

fn signed(text: &str) -> i32 {
    text.parse()
        .unwrap_or_else(|_| panic!("'{text}' is not a number"))
}
