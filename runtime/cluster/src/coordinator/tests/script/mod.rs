//! Tests of the coordinator as text: what workers and clients say, and after `>` what it answers and orders.
//!
//! ```text
//! set snapshots                   every entry of the journal is followed by a snapshot; also liveness 300ms,
//!                                 scheduler fair, chain-grace 0ms, history-bytes 10, no-speculation,
//!                                 no-suspend and no-checkpoint (of maps)
//! worker w 1                      w joins, with one map slot and one reduce slot: see `worker_lines`
//! submit 1 maps 2 reduces 1       > launch m0.1 on w
//!                                 a client hands in a job: see `client_lines`; the next order to w is this,
//!                                 and those to an attempt that was launched are without it: > suspend m0.1
//! started m0.1                    said by the worker that it was launched on; `does m0.1`: all of its work
//! drain w now: a new disk         > w: leave
//!                                 what else w is told: define, outputs, named, forget, received, closed
//! suspend 9: at night             > refused: there is no job_0009; see: nap job list
//!                                 what is answered, unless it is just done
//! ask tasks 1                     > m0 done > r0 pending
//!                                 a question, and each line of the answer: see `questions`
//! until workers                   > 1 w lost: ...
//!                                 asked again and again until this is the answer
//! kill coordinator                as by SIGKILL; `stop coordinator`: in good order
//! start                           the next one, in the same directory; the first starts by itself
//! restart                         kill coordinator, start, and every worker that was there comes back
//! heard                           waits until the coordinator has all that workers said; whatever clients
//!                                 say does the same
//! show outputs                    they are no longer passed over when something else is expected, as
//!                                 definitions and acknowledgements always are
//! move out away                   also: remove out, make out, write out/part: text
//! ```
//!
//! What is expected stands behind the line, or beneath it. `...` in it is any text, and alone any number of
//! lines.

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

/// Orders, as they begin a line that is expected.
const ORDERS: [&str; 8] = ["launch", "commit", "suspend", "resume", "checkpoint", "kill", "move", "tell"];

/// Plays a script in a directory of its own.
pub(super) fn check(script: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let mut stage = Stage::new();
        stage.play(script).await;
        stage.end().await;
    });
}

/// Plays it twice: the second time, every entry of the journal is followed by a snapshot.
pub(super) fn check_also_with_snapshots(script: &str) {
    check(script);
    check(&format!("set snapshots\n{script}"));
}

/// A scene on which a script is played, or several with other things between them.
pub(super) struct Stage {
    pub(super) scene: Scene,
    pub(super) running: Option<Running>,
    pub(super) workers: BTreeMap<String, Worker>,
    /// Where each attempt was launched: reports come from there.
    places: BTreeMap<AttemptId, String>,
    /// Jobs whose maps write the output.
    map_only: BTreeSet<JobId>,
    shows_outputs: bool,
    /// The first coordinator starts by itself.
    has_begun: bool,
}

/// Says, should the test fail there, at which line it was.
struct At<'a> {
    number: usize,
    line: &'a str,
    expected: Vec<&'a str>,
}

impl Drop for At<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("line {} of the script: {}", self.number, self.line);
            self.expected.iter().for_each(|expected| eprintln!("    > {expected}"));
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
        let lines = script.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
        let mut lines = lines.peekable();
        while let Some((number, line)) = lines.next() {
            let mut parts = line.split(" > ").map(str::trim);
            let line = parts.next().unwrap_or_default();
            let beneath = iter::from_fn(|| lines.next_if(|(_, line)| line.starts_with('>')));
            let beneath = beneath.flat_map(|(_, line)| line[1..].split(" > ")).map(str::trim);
            let at = At { number: number + 1, line, expected: parts.chain(beneath).collect() };
            let (told, answer): (Vec<&str>, Vec<&str>) =
                at.expected.iter().partition(|expected| self.is_told(expected));
            match at.line.strip_prefix("until ") {
                Some(question) => self.wait_for(question, &answer).await,
                None => check_answer(&self.step(at.line).await, &answer),
            }
            for expected in told {
                self.check_told(expected).await;
            }
        }
    }

    /// The coordinator that runs still ends in good order.
    pub(super) async fn end(mut self) {
        if let Some(running) = self.running.take() {
            running.stop().await;
        }
    }

    pub(super) fn running(&self) -> &Running {
        self.running.as_ref().expect("a coordinator that runs")
    }

    pub(super) fn worker(&mut self, name: &str) -> &mut Worker {
        self.workers.get_mut(name).unwrap_or_else(|| panic!("there is no worker {name}"))
    }

    /// Plays one line, and returns what is answered.
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

    /// What workers and clients say.
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
        let there = self.workers.iter().filter(|(_, worker)| worker.is_connected);
        let there: Vec<String> = there.map(|(name, _)| name.clone()).collect();
        let mut answers = Vec::new();
        for name in there {
            answers.extend(self.reconnect(&name).await);
        }
        answers
    }

    /// Waits until the coordinator has what workers said. What clients say may overtake it otherwise.
    async fn heard(&mut self) {
        for worker in self.workers.values_mut() {
            worker.is_heard().await;
        }
    }

    /// Asks until this is the answer.
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

    /// Whether what is expected is something that a worker is told.
    fn is_told(&self, expected: &str) -> bool {
        let word = expected.split(' ').next().unwrap_or_default();
        let is_worker = word.strip_suffix(':').is_some_and(|name| self.workers.contains_key(name));
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
        let told = self.told(&name, words.get(1).copied().unwrap_or_default()).await;
        assert!(fits(expected, &told), "{expected}\n   was expected, and this came:\n{told}");
        if let ["launch", of, ..] = words[..] {
            self.places.insert(attempt(of), name);
        }
    }

    /// The next thing that a worker is told. What is the basis of orders, or acknowledges reports, is passed
    /// over unless it is expected.
    async fn told(&mut self, name: &str, expected: &str) -> String {
        let shows_outputs = self.shows_outputs;
        let worker = self.worker(name);
        loop {
            let Some(message) = worker.next_or_end().await else { return format!("{name}: closed") };
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
        place.unwrap_or_else(|| panic!("{attempt} was not launched in this script")).clone()
    }
}

fn or_none(lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() { vec!["none".to_owned()] } else { lines }
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

/// Whether these are the lines: one that is `...` stands for any number of them.
fn fits_lines(expected: &[&str], lines: &[String]) -> bool {
    match expected {
        [] => lines.is_empty(),
        ["...", rest @ ..] => (0..=lines.len()).any(|from| fits_lines(rest, &lines[from..])),
        [first, rest @ ..] => {
            lines.split_first().is_some_and(|(line, more)| fits(first, line) && fits_lines(rest, more))
        }
    }
}

/// Whether this is the text: `...` stands for any part of it.
fn fits(expected: &str, text: &str) -> bool {
    let Some((before, after)) = expected.split_once("...") else { return expected == text };
    let Some(rest) = text.strip_prefix(before) else { return false };
    rest.char_indices().map(|(at, _)| at).chain([rest.len()]).any(|at| fits(after, &rest[at..]))
}
