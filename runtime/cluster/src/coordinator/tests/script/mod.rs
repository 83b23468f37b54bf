//! A script language for tests of the coordinator. The coordinator is real, with its journal and its files;
//! the script plays the workers and the clients.
//!
//! Each line is one step. `>` introduces the expected results of the step, on the same line or on the lines
//! below it: the answer to a client, and the next messages to workers. An expected message must be the next
//! one to its worker, apart from those that the script skips (see `show outputs`). A step without an expected
//! answer must have an empty one, which is how the coordinator reports success to a client.
//!
//! Names are those of `napreduce_engine::scenarios::names`: `m0` is map 0 of job 1, `r0.2` is attempt 2 at
//! reduce 0, and `2:m0.1` belongs to job 2. Workers have names such as `w`. A reason follows after a colon.
//! In the table below, the left column is the script and the right column explains it, or continues the
//! script after `>`.
//!
//! ```text
//! set snapshots                   a snapshot follows each journal entry; also liveness 300ms,
//!                                 scheduler fair, chain-grace 0ms, history-bytes 10, no-speculation,
//!                                 no-suspend and no-checkpoint (of maps)
//! worker w 1                      w joins, with one map slot and one reduce slot: see `worker_lines`
//! submit 1 maps 2 reduces 1       > launch m0.1 on w
//!                                 a client submits a job: see `client_lines`. The next order to w follows;
//!                                 orders to a launched attempt omit the worker: > suspend m0.1
//! started m0.1                    reported by its worker; `does m0.1`: all reports up to its end
//! drain w now: a new disk         > w: leave
//!                                 other messages to w: define, outputs, named, forget, received, closed
//! suspend 9: at night             > refused: there is no job_0009; see: nap job list
//!                                 the answer; none if the command succeeds
//! ask tasks 1                     > m0 succeeded > r0 waiting
//!                                 a query, and each line of the answer: see `questions`
//! until workers                   > 1 w lost: ...
//!                                 repeats the query until this is the answer
//! kill coordinator                as by SIGKILL; `stop coordinator`: a regular stop
//! start                           a new coordinator in the same directory; the first starts automatically
//! restart                         kill coordinator, start, and all workers reconnect
//! heard                           waits until the coordinator has received all reports; commands of
//!                                 clients do the same
//! show outputs                    expects these messages too; definitions and acknowledgements are always
//!                                 skipped
//! move out away                   also: remove out, make out, write out/part: text
//! ```
//!
//! Lines of the table in other words:
//!
//! - `set` changes the configuration of the next coordinator. The first coordinator starts with the first
//!   line of a worker or client.
//! - `worker`, `started` and other messages of workers are in `worker_lines`, commands of clients (`submit`,
//!   `drain`, `suspend`) in `client_lines`, and questions (`ask`) in `questions`.
//! - An order to an attempt is written without its worker, as in `> suspend m0.1`: it must reach the worker
//!   that `launch m0.1 on w` named. Any other message begins with the name of the worker, as in `> w: leave`.
//! - `until` repeats a question until the answer matches, or fails after a deadline.
//! - `kill coordinator` aborts the loop without cleanup; `stop coordinator` shuts it down. `start` recovers
//!   the next coordinator from the same directory.
//! - `heard` waits until the coordinator has processed all messages of workers. Every line of a client does
//!   this first.
//! - By default, the messages `define`, `received` and `outputs` to workers are skipped unless the next
//!   expected result names them. After `show outputs`, the `outputs` messages are no longer skipped.
//! - `move`, `remove`, `make` and `write` change files and directories in the folder of the test, such as the
//!   output `out`.
//!
//! In expected text, `...` matches any text within a line; alone, it matches any number of lines of an
//! answer.

mod client_lines;
mod questions;
mod worker_lines;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::{fs, iter, thread};

use napreduce_engine::scenarios::names::{attempt, millis, number};
use napreduce_engine::{AttemptId, JobId};
use napreduce_protocol::ToWorker;
use napreduce_schedulers::{SchedulerConfiguration, SchedulerName};
use tokio::time::{Instant, sleep};

use super::{DEADLINE, Duration, Running, Scene, Worker};

/// First words of expected orders.
const ORDERS: [&str; 8] = [
    "launch",
    "commit",
    "suspend",
    "resume",
    "checkpoint",
    "kill",
    "move",
    "tell",
];

/// Runs a script in a temporary directory.
pub(super) fn check(script: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let mut stage = Stage::new();
        stage.play(script).await;
        stage.end().await;
    });
}

/// Runs a script twice, the second time with a snapshot after every journal entry.
pub(super) fn check_also_with_snapshots(script: &str) {
    check(script);
    check(&format!("set snapshots\n{script}"));
}

/// The state of a script. A test may run several scripts on one stage, with other code between them.
pub(super) struct Stage {
    pub(super) scene: Scene,
    pub(super) running: Option<Running>,
    pub(super) workers: BTreeMap<String, Worker>,
    /// The worker of each launched attempt, which sends its reports.
    places: BTreeMap<AttemptId, String>,
    /// Map-only jobs, whose maps write the output.
    map_only: BTreeSet<JobId>,
    shows_outputs: bool,
    /// Whether the first coordinator was started; the first worker or client line starts it.
    has_begun: bool,
}

/// The current line of the script, which is printed if the test panics.
struct At<'a> {
    number: usize,
    line: &'a str,
    expected: Vec<&'a str>,
}

impl Drop for At<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("line {} of the script: {}", self.number, self.line);
            self.expected
                .iter()
                .for_each(|expected| eprintln!("    > {expected}"));
        }
    }
}

impl Stage {
    pub(super) fn new() -> Stage {
        Stage {
            scene: Scene::new(),
            running: None,
            workers: BTreeMap::new(),
            places: BTreeMap::new(),
            map_only: BTreeSet::new(),
            shows_outputs: false,
            has_begun: false,
        }
    }

    pub(super) async fn play(&mut self, script: &str) {
        let lines = script
            .lines()
            .map(str::trim)
            .enumerate()
            .filter(|(_, line)| !line.is_empty());
        let mut lines = lines.peekable();
        while let Some((number, line)) = lines.next() {
            let mut parts = line.split(" > ").map(str::trim);
            let line = parts.next().unwrap_or_default();
            let beneath = iter::from_fn(|| lines.next_if(|(_, line)| line.starts_with('>')));
            let beneath = beneath
                .flat_map(|(_, line)| line[1..].split(" > "))
                .map(str::trim);
            let at = At {
                number: number + 1,
                line,
                expected: parts.chain(beneath).collect(),
            };
            let (told, answer): (Vec<&str>, Vec<&str>) = at
                .expected
                .iter()
                .partition(|expected| self.is_told(expected));
            match at.line.strip_prefix("until ") {
                Some(question) => self.wait_for(question, &answer).await,
                None => check_answer(&self.step(at.line).await, &answer),
            }
            for expected in told {
                self.check_told(expected).await;
            }
        }
    }

    /// Shuts down the coordinator if it is running.
    pub(super) async fn end(mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }

    pub(super) fn running(&self) -> &Running {
        self.running.as_ref().expect("a coordinator that runs")
    }

    pub(super) fn worker(&mut self, name: &str) -> &mut Worker {
        self.workers
            .get_mut(name)
            .unwrap_or_else(|| panic!("there is no worker {name}"))
    }

    /// Runs one line; returns the answer.
    async fn step(&mut self, line: &str) -> Vec<String> {
        let (head, text) = line.split_once(": ").unwrap_or((line, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        match words[..] {
            ["set", what] => self.set(what, ""),
            ["set", what, value] => self.set(what, value),
            ["show", "outputs"] => self.shows_outputs = true,
            ["start"] => self.start(),
            ["kill", "coordinator"] => self.running.take().expect("it runs").kill().await,
            ["stop", "coordinator"] => self.running.take().expect("it runs").stop().await,
            ["restart"] => return self.restart().await,
            ["heard"] => self.heard().await,
            ["move", from, to] => {
                fs::rename(self.scene.path(from), self.scene.path(to)).expect("moved");
            }
            ["remove", path] if self.scene.path(path).is_dir() => {
                fs::remove_dir_all(self.scene.path(path)).expect("removed");
            }
            ["remove", path] => fs::remove_file(self.scene.path(path)).expect("removed"),
            ["make", path] => fs::create_dir(self.scene.path(path)).expect("made"),
            ["write", path] => fs::write(self.scene.path(path), text).expect("written"),
            _ => return self.say(&words, text).await,
        }
        Vec::new()
    }

    /// Runs a line of a worker or a client; starts the first coordinator if necessary.
    async fn say(&mut self, words: &[&str], text: &str) -> Vec<String> {
        if self.running.is_none() && !self.has_begun {
            self.start();
        }
        self.has_begun = true;
        if let Some(answer) = self.worker_line(words).await {
            return answer;
        }
        if self.attempt_line(words, text).await {
            return Vec::new();
        }
        self.heard().await;
        let answer = match words {
            ["ask", question @ ..] => self.ask(question).await.map(or_none),
            _ => self.order(words, text).await,
        };
        answer.unwrap_or_else(|refusal| match refusal.status() {
            2 => vec![format!("refused: {refusal}")],
            other => vec![format!("refused with {other}: {refusal}")],
        })
    }

    fn set(&mut self, what: &str, value: &str) {
        let configuration = &mut self.scene.configuration;
        match what {
            "snapshots" => configuration.journal_bytes_max = 1,
            "liveness" => configuration.liveness = duration(value),
            "chain-grace" => configuration.chain_grace = duration(value),
            "history-bytes" => configuration.history_bytes_max = number(value).into(),
            "no-speculation" => configuration.speculation = None,
            "no-failed-logs" => configuration.failed_logs = false,
            "no-suspend" => configuration.preemption.map.suspend = false,
            "no-checkpoint" => configuration.preemption.map.checkpoint = false,
            "scheduler" => {
                let scheduler = SchedulerName::of_word(value).expect("a scheduler");
                configuration.scheduler = Arc::new(SchedulerConfiguration::named(scheduler));
            }
            other => panic!("'{other}' cannot be set"),
        }
    }

    fn start(&mut self) {
        assert!(self.running.is_none(), "a coordinator runs already");
        self.running = Some(self.scene.start());
    }

    async fn restart(&mut self) -> Vec<String> {
        self.running.take().expect("it runs").kill().await;
        self.start();
        let there = self
            .workers
            .iter()
            .filter(|(_, worker)| worker.is_connected);
        let there: Vec<String> = there.map(|(name, _)| name.clone()).collect();
        let mut answers = Vec::new();
        for name in there {
            answers.extend(self.reconnect(&name).await);
        }
        answers
    }

    /// Waits until the coordinator has received all messages of workers, which requests of clients could
    /// overtake.
    async fn heard(&mut self) {
        for worker in self.workers.values_mut() {
            worker.is_heard().await;
        }
    }

    /// Repeats a question until the answer matches.
    async fn wait_for(&mut self, question: &str, expected: &[&str]) {
        let began = Instant::now();
        let line = format!("ask {question}");
        loop {
            let answer = self.step(&line).await;
            if fits_lines(expected, &answer) {
                return;
            }
            if began.elapsed() > DEADLINE {
                check_answer(&answer, expected);
            }
            sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns whether an expected result is a message to a worker, as opposed to an answer.
    fn is_told(&self, expected: &str) -> bool {
        let word = expected.split(' ').next().unwrap_or_default();
        let is_worker = word
            .strip_suffix(':')
            .is_some_and(|name| self.workers.contains_key(name));
        is_worker || ORDERS.contains(&word)
    }

    async fn check_told(&mut self, expected: &str) {
        let words: Vec<&str> = expected.split_whitespace().collect();
        let name = match words[..] {
            ["launch", _, "on", name, ..] => name.to_owned(),
            [order, of, ..] if ORDERS.contains(&order) => self.place(attempt(of)),
            [name, ..] => name.trim_end_matches(':').to_owned(),
            [] => unreachable!("it is told"),
        };
        let told = self
            .told(&name, words.get(1).copied().unwrap_or_default())
            .await;
        assert!(
            fits(expected, &told),
            "{expected}\n   was expected, and this came:\n{told}"
        );
        if let ["launch", of, ..] = words[..] {
            self.places.insert(attempt(of), name);
        }
    }

    /// Returns the next message to a worker. Skips definitions, acknowledgements and map outputs unless they
    /// are expected.
    async fn told(&mut self, name: &str, expected: &str) -> String {
        let shows_outputs = self.shows_outputs;
        let worker = self.worker(name);
        loop {
            let Some(message) = worker.next_or_end().await else {
                return format!("{name}: closed");
            };
            let passed_over = match message {
                ToWorker::Define { .. } => expected != "define",
                ToWorker::Outputs { .. } => expected != "outputs" && !shows_outputs,
                ToWorker::Received { .. } => expected != "received",
                _ => false,
            };
            if !passed_over {
                return worker_lines::in_words(name, &message);
            }
        }
    }

    fn place(&self, attempt: AttemptId) -> String {
        let place = self.places.get(&attempt);
        place
            .unwrap_or_else(|| panic!("{attempt} was not launched in this script"))
            .clone()
    }
}

fn or_none(lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        vec!["none".to_owned()]
    } else {
        lines
    }
}

fn duration(text: &str) -> Duration {
    Duration::from_micros(millis(text).0)
}

fn check_answer(answer: &[String], expected: &[&str]) {
    assert!(
        fits_lines(expected, answer),
        "{}\n   was expected, and the answer is:\n{}",
        expected.join("\n"),
        answer.join("\n")
    );
}

/// Returns whether the lines match; an expected `...` matches any number of lines.
fn fits_lines(expected: &[&str], lines: &[String]) -> bool {
    match expected {
        [] => lines.is_empty(),
        ["...", rest @ ..] => (0..=lines.len()).any(|from| fits_lines(rest, &lines[from..])),
        [first, rest @ ..] => lines
            .split_first()
            .is_some_and(|(line, more)| fits(first, line) && fits_lines(rest, more)),
    }
}

/// Returns whether the text matches; `...` matches any part of it.
fn fits(expected: &str, text: &str) -> bool {
    let Some((before, after)) = expected.split_once("...") else {
        return expected == text;
    };
    let Some(rest) = text.strip_prefix(before) else {
        return false;
    };
    rest.char_indices()
        .map(|(at, _)| at)
        .chain([rest.len()])
        .any(|at| fits(after, &rest[at..]))
}
