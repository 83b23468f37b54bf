//! `nap completions`: completion of commands, options and the names of jobs, tasks, workers and queues.
//!
//! The printed script runs `nap -- WORDS` with [`VARIABLE`] set whenever the shell completes a line. Names are
//! those of the cluster that the line names. A completion prints candidates or nothing, and never waits long.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Arg, Args, Command, FromArgMatches};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompletionCandidate, Shell};
use napreduce_cluster::{ClusterClient, Patience};
use napreduce_engine::JobId;
use napreduce_protocol::printing::print;
use napreduce_protocol::requests::{GetJob, ListJobs, ListQueues, ListTasks, ListWorkers};
use napreduce_protocol::{
    AttemptSummary, JobSummary, QueueSummary, TaskSummary, WorkerSummary, one_line,
};

use crate::cluster::{ClusterArguments, without_empty_variables};
use crate::ids::{JobSelector, KnownJob, select_one};
use crate::worker::is_gone;

const NAME: &str = "nap";

/// The environment variable with the shell that asks for candidates.
const VARIABLE: &str = "NAPREDUCE_COMPLETE";

/// Completes the line for which zsh reads the script from a folder of its `fpath`; the script itself only defines.
const FIRST_OF_ZSH: &str = "
if [[ $funcstack[1] == _nap ]]; then
    _clap_dynamic_completer_nap
fi
";

/// Maximum wait for the names of a cluster.
const LIMIT: Duration = Duration::from_millis(300);
const PATIENCE: Patience = Patience {
    first: LIMIT,
    later: LIMIT,
    absent: Duration::ZERO,
    answer: LIMIT,
    silence: LIMIT,
    tell: false,
};

/// Maximum number of jobs that are read, and of candidates.
const JOBS_MAX: u32 = 2_000;
const CANDIDATES_MAX: usize = 200;
/// Maximum columns of a description.
const HELP_COLUMNS_MAX: usize = 60;

/// Print a completion script for a shell
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
JOB, TASK, ATTEMPT, WORKER and QUEUE are completed with the names of the
cluster that the line or the environment names, if its coordinator answers
within 300 ms.

Examples:
  nap completions bash > ~/.local/share/bash-completion/completions/nap
  nap completions zsh > ~/.zfunc/_nap                 with fpath+=~/.zfunc before compinit
  nap completions fish > ~/.config/fish/completions/nap.fish
  source <(nap completions bash)                      in this shell

Print the script again after an upgrade of nap.")]
pub struct Arguments {
    /// Shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the script of a shell. It runs `nap` by the name or path of this process.
pub fn run(arguments: &Arguments) -> Result<()> {
    let own = PathBuf::from(env::args_os().next().unwrap_or_else(|| NAME.into()));
    let own = if own.components().count() > 1 {
        std::path::absolute(own)?
    } else {
        own
    };
    let shells = Shells::builtins();
    let shell = arguments.shell.to_string();
    let shell = shells
        .completer(&shell)
        .context("a shell without completion")?;
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, NAME, NAME, &own.to_string_lossy(), &mut script)?;
    if arguments.shell == Shell::Zsh {
        script.extend(FIRST_OF_ZSH.bytes());
    }
    print(String::from_utf8_lossy(&script));
    Ok(())
}

/// Prints candidates if the script of a shell runs this process; returns whether it does.
pub fn answered(command: impl FnOnce() -> Command) -> bool {
    let shells = Shells::builtins();
    let shell = env::var(VARIABLE).unwrap_or_default();
    let Some(shell) = shells.completer(&shell) else {
        return false;
    };
    let mut words = env::args_os().skip(1);
    if words.next().is_none_or(|first| first != "--") {
        return false;
    }
    let words: Vec<OsString> = words.collect();
    let mut candidates = Vec::new();
    let mut command = with_names(command(), &words);
    let directory = env::current_dir().ok();
    if !words.is_empty()
        && shell
            .write_complete(&mut command, words, directory.as_deref(), &mut candidates)
            .is_ok()
    {
        // The shell may be gone, and its terminal is not for errors.
        let _ = io::stdout().write_all(&candidates);
    }
    true
}

/// Adds names to all commands except `nap history`, whose jobs are in a folder.
fn with_names(command: Command, words: &[OsString]) -> Command {
    let words: Arc<[String]> =
        joined(words.iter().map(|word| word.to_string_lossy().into_owned())).into();
    command.mut_subcommands(|inner| {
        if inner.get_name() == "history" {
            inner
        } else {
            with_names_below(inner, &words)
        }
    })
}

fn with_names_below(command: Command, words: &Arc<[String]>) -> Command {
    let command = command.mut_args(|argument| match Names::of(&argument) {
        Some(names) => {
            let words = Arc::clone(words);
            let complete =
                move |current: &OsStr| names.candidates(&current.to_string_lossy(), &words);
            argument.add(ArgValueCompleter::new(complete))
        }
        None => argument,
    });
    command.mut_subcommands(|inner| with_names_below(inner, words))
}

/// The words of a line as the command gets them: bash splits words at `=` and `:`; no shell has removed quotes
/// or expanded `~`.
fn joined(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let mut continues = false;
    for word in words {
        let is_separator = word == "=" || word == ":";
        match whole.last_mut().filter(|_| continues || is_separator) {
            Some(last) => last.push_str(&word),
            None => whole.push(word),
        }
        continues = is_separator;
    }
    let home = env::home_dir()
        .map(|home| home.to_string_lossy().into_owned())
        .unwrap_or_default();
    let plain = |word: String| match word.strip_prefix("~/") {
        Some(rest) => format!("{home}/{rest}"),
        None => word,
    };
    whole
        .into_iter()
        .map(|word| plain(word.replace(['\'', '"', '\\'], "")))
        .collect()
}

/// Returns the cluster that the words name, else that of the environment.
fn cluster_of(words: &[String]) -> Result<ClusterArguments> {
    let definition = without_empty_variables(ClusterArguments::augment_args(Command::new(NAME)));
    let longs: Vec<String> = definition
        .get_arguments()
        .filter_map(Arg::get_long)
        .map(|long| format!("--{long}"))
        .collect();
    let mut flags = vec![NAME];
    for (at, word) in words.iter().enumerate() {
        let (name, value) = word
            .split_once('=')
            .map_or((word.as_str(), None), |(name, _)| (name, Some(word)));
        if longs.iter().any(|long| long == name) {
            flags.push(word);
            flags.extend(
                words
                    .get(at + 1)
                    .filter(|_| value.is_none())
                    .map(String::as_str),
            );
        }
    }
    Ok(ClusterArguments::from_arg_matches(
        &definition.try_get_matches_from(flags)?,
    )?)
}

/// The kinds of names that a cluster has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Jobs,
    Tasks,
    Attempts,
    Workers,
    Queues,
}

impl Names {
    /// Returns the names that an argument takes.
    fn of(argument: &Arg) -> Option<Names> {
        match argument.get_value_names()?.first()?.as_str() {
            "JOB" => Some(Names::Jobs),
            "TASK" => Some(Names::Tasks),
            "ATTEMPT" => Some(Names::Attempts),
            "WORKER" => Some(Names::Workers),
            "QUEUE" | "QUEUE,..." => Some(Names::Queues),
            _ => None,
        }
    }

    /// Returns the names that continue a word; none if the cluster does not answer in time.
    fn candidates(self, current: &str, words: &Arc<[String]>) -> Vec<CompletionCandidate> {
        let (sender, receiver) = mpsc::channel();
        let begun = current.to_owned();
        let words = Arc::clone(words);
        thread::spawn(move || sender.send(self.ask(&begun, &words).unwrap_or_default()));
        self.chosen(receiver.recv_timeout(LIMIT).unwrap_or_default(), current)
    }

    /// Asks the coordinator for names and their descriptions, the most probable ones first.
    fn ask(self, current: &str, words: &[String]) -> Result<Vec<(String, String)>> {
        let mut client = ClusterClient::connect(cluster_of(words)?.place()?, PATIENCE)?;
        Ok(match self {
            Names::Jobs => jobs(&client.ask(ListJobs { limit: JOBS_MAX })?, current),
            Names::Tasks => tasks(
                client.ask(ListTasks {
                    job: job_of(current),
                })?,
                current.contains('.'),
            ),
            Names::Attempts => {
                let selector = first_job(words).context("no job before the attempt")?;
                let job = select_one(&selector, "nap job logs", &mut client)?;
                attempts(&client.ask(GetJob { job })?.attempts, job)
            }
            Names::Workers => workers(&client.ask(ListWorkers)?),
            Names::Queues => queues(&client.ask(ListQueues)?.queues.unwrap_or_default()),
        })
    }

    /// Keeps the names that continue a word, in the form in which it was begun: `job_0007`, or `7` after a digit.
    /// Leaves out names that a shell would not read as one plain word.
    fn chosen(self, names: Vec<(String, String)>, current: &str) -> Vec<CompletionCandidate> {
        let is_numbered = matches!(self, Names::Jobs | Names::Tasks | Names::Workers);
        let is_number = is_numbered && current.starts_with(|letter: char| letter.is_ascii_digit());
        let in_form = |name: String| match name.split_once('_').filter(|_| is_number) {
            Some((_, number)) => number.trim_start_matches('0').to_owned(),
            None => name,
        };
        let is_plain = |name: &str| {
            name.chars()
                .all(|one| one.is_alphanumeric() || "_-./:@%+".contains(one))
        };
        let named = names.into_iter().map(|(name, help)| (in_form(name), help));
        let fitting = named.filter(|(name, _)| name.starts_with(current) && is_plain(name));
        let help = |help: String| Some(one_line(&help, HELP_COLUMNS_MAX).into());
        let candidates =
            fitting.map(|(name, text)| CompletionCandidate::new(name).help(help(text)));
        candidates.take(CANDIDATES_MAX).collect()
    }
}

/// Returns the job of a task that was begun: `job_0007_m` or `7_m`.
fn job_of(current: &str) -> Option<JobId> {
    let (number, _) = current
        .strip_prefix("job_")
        .unwrap_or(current)
        .split_once('_')?;
    number.parse().ok().map(JobId)
}

/// Returns the first job among the words after `logs` that is not the value of an option.
fn first_job(words: &[String]) -> Option<JobSelector> {
    let command = words.iter().position(|word| word == "logs")?;
    let is_free = |pair: &&[String]| pair.iter().all(|word| !word.starts_with('-'));
    let mut pairs = words[command..].windows(2).filter(is_free);
    pairs.find_map(|pair| pair[1].parse().ok())
}

/// Jobs have their IDs; a word that begins with a letter may also be continued to the name of one job.
fn jobs(jobs: &[JobSummary], current: &str) -> Vec<(String, String)> {
    let id = |job: &JobSummary| {
        (
            job.job.to_string(),
            format!("{}, {}", job.name, job.phase.in_words()),
        )
    };
    let mut names: Vec<(String, String)> = jobs.iter().map(id).collect();
    if !current.starts_with(char::is_alphabetic) {
        return names;
    }
    let known: Vec<KnownJob> = jobs.iter().map(KnownJob::from).collect();
    let of_name: BTreeSet<&String> = jobs
        .iter()
        .map(|job| &job.name)
        .filter(|name| name.starts_with(current))
        .collect();
    for name in of_name {
        let Ok(selector @ JobSelector::Named(_)) = name.parse() else {
            continue;
        };
        if let Ok(job) = selector.one_among(&known, "a name") {
            names.push((name.clone(), job.to_string()));
        }
    }
    names
}

/// Tasks with live attempts come first.
fn tasks(mut tasks: Vec<TaskSummary>, wants_attempts: bool) -> Vec<(String, String)> {
    tasks.sort_by_key(|task| task.live.is_empty());
    if wants_attempts {
        let live = tasks.iter().flat_map(|task| &task.live);
        return live
            .map(|live| {
                (
                    live.attempt.to_string(),
                    format!("{} on {}", live.state, live.worker),
                )
            })
            .collect();
    }
    tasks
        .iter()
        .map(|task| (task.task.to_string(), task.state.to_string()))
        .collect()
}

/// Attempts have the short names that `nap job logs` takes; running ones come first, then the latest.
fn attempts(attempts: &[AttemptSummary], job: JobId) -> Vec<(String, String)> {
    let mut latest: Vec<&AttemptSummary> = attempts.iter().rev().collect();
    latest.sort_by_key(|attempt| attempt.end.is_some());
    let short = |attempt: &AttemptSummary| {
        let state = attempt.end.as_deref().unwrap_or("running");
        let name = attempt
            .attempt
            .to_string()
            .replacen(&format!("{job}_"), "", 1);
        (name, format!("on {}, {state}", attempt.worker_name))
    };
    latest.into_iter().map(short).collect()
}

fn workers(workers: &[WorkerSummary]) -> Vec<(String, String)> {
    let here = workers.iter().filter(|worker| !is_gone(worker));
    here.map(|worker| {
        let state = worker.state_in_words();
        (
            worker.worker.to_string(),
            format!("{} on {}, {state}", worker.name, worker.host),
        )
    })
    .collect()
}

fn queues(queues: &[QueueSummary]) -> Vec<(String, String)> {
    let jobs = |queue: &QueueSummary| {
        format!("jobs: {} running, {} waiting", queue.running, queue.waiting)
    };
    queues
        .iter()
        .map(|queue| (queue.name.clone(), jobs(queue)))
        .collect()
}

#[cfg(test)]
mod tests {
    use napreduce_engine::{AttemptId, AttemptState, TaskId, TaskKind, WorkerId};
    use napreduce_protocol::{JobPhase, LiveAttempt, TaskPhase};

    use super::*;
    use crate::job::sample_summary;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    fn values(names: Names, named: &[&str], current: &str) -> Vec<String> {
        let named = named
            .iter()
            .map(|name| ((*name).to_owned(), String::new()))
            .collect();
        let chosen = names.chosen(named, current);
        chosen
            .iter()
            .map(|candidate| candidate.get_value().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn names_continue_the_word_in_the_form_in_which_it_was_begun() {
        let ids = ["job_0007", "job_0017"];
        assert_eq!(values(Names::Jobs, &ids, ""), ids);
        assert_eq!(values(Names::Jobs, &ids, "job_001"), ["job_0017"]);
        assert_eq!(values(Names::Jobs, &ids, "1"), ["17"]);
        assert_eq!(
            values(Names::Tasks, &["job_0007_m_0003"], "7_m"),
            ["7_m_0003"]
        );
        assert_eq!(values(Names::Queues, &["my_3", "3d"], "3"), ["3d"]);
        let many: Vec<String> = (0..500).map(|number| format!("queue-{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(values(Names::Queues, &many, "").len(), CANDIDATES_MAX);
    }

    #[test]
    fn names_that_a_shell_would_interpret_are_left_out() {
        let odd = [
            "etl",
            "root.größer",
            "two words",
            "$(reboot)",
            "a;b",
            "\u{1b}[2J",
            "it's",
        ];
        assert_eq!(values(Names::Queues, &odd, ""), ["etl", "root.größer"]);
    }

    #[test]
    fn descriptions_have_names_and_states() {
        let odd = JobSummary {
            name: "a\u{1b}[2Jb\nc".to_owned(),
            ..sample_summary()
        };
        let chosen = Names::Jobs.chosen(jobs(&[sample_summary(), odd], "job_"), "job_");
        let helps: Vec<String> = chosen
            .iter()
            .map(|one| one.get_help().expect("help").to_string())
            .collect();
        assert_eq!(helps, ["wordcount, failed", "a\\u{1b}[2Jb\\nc, failed"]);
    }

    #[test]
    fn names_of_one_job_continue_a_word_that_begins_with_a_letter() {
        let job = |number, name: &str, phase| JobSummary {
            job: JobId(number),
            name: name.to_owned(),
            phase,
            ..sample_summary()
        };
        let all = [
            job(5, "index", JobPhase::Running),
            job(4, "index", JobPhase::Succeeded),
            job(3, "input", JobPhase::Running),
            job(2, "input", JobPhase::Waiting),
            job(1, "billing", JobPhase::Failed),
        ];
        let values = |current: &str| {
            let chosen = Names::Jobs.chosen(jobs(&all, current), current);
            chosen
                .iter()
                .map(|one| one.get_value().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(values("in"), ["index"]);
        assert_eq!(values("b"), ["billing"]);
        assert_eq!(values("").len(), 5);
        assert_eq!(values("job_0003"), ["job_0003"]);
    }

    #[test]
    fn tasks_with_live_attempts_come_first() {
        let task = |index| TaskId {
            job: JobId(7),
            kind: TaskKind::Map,
            index,
        };
        let waiting = TaskSummary::new(task(0), TaskPhase::Waiting, 0);
        let live = LiveAttempt {
            attempt: AttemptId {
                task: task(1),
                number: 2,
            },
            worker: WorkerId(1),
            state: AttemptState::Running,
            launched_millis: 1_790_000_000_000,
            reason: None,
            bytes_done: 0,
            bytes_total: 0,
        };
        let running = TaskSummary {
            task: task(1),
            state: TaskPhase::Running,
            live: vec![live],
            ..waiting.clone()
        };
        let all = vec![waiting, running];
        let pair = |name: &str, help: &str| (name.to_owned(), help.to_owned());
        let expected = [
            pair("job_0007_m_0001", "running"),
            pair("job_0007_m_0000", "waiting"),
        ];
        assert_eq!(tasks(all.clone(), false), expected);
        assert_eq!(
            tasks(all, true),
            [pair("job_0007_m_0001.2", "running on worker_0001")]
        );
        let jobs = ["", "job_", "job_0007", "job_0007_m", "7_m", "last_m"].map(job_of);
        assert_eq!(
            jobs,
            [None, None, None, Some(JobId(7)), Some(JobId(7)), None]
        );
    }

    #[test]
    fn cluster_is_the_one_on_the_line() {
        let cluster = |line: &str| cluster_of(&joined(words(line).into_iter())).expect("a cluster");
        let directory = |line: &str| cluster(line).dir.expect("a directory");
        // The last two are the words of bash.
        for line in [
            "nap --dir /a job kill 7 ",
            "nap job kill  --dir=/a",
            "nap job kill --reason --later --dir '/a'",
            "nap job kill --queue  --dir /a",
            "nap job kill --dir = /a ",
        ] {
            assert_eq!(directory(line), PathBuf::from("/a"), "{line}");
        }
        let home = env::home_dir().expect("a home");
        assert_eq!(directory("nap --dir ~/a job"), home.join("a"));
        let remote = cluster("nap --coordinator ada : 7000 --secret-file s job kill ");
        assert_eq!(remote.coordinator.as_deref(), Some("ada:7000"));
        assert_eq!(remote.secret_file, Some(PathBuf::from("s")));
        assert!(cluster_of(&words("nap job kill --dir")).is_err());
    }

    #[test]
    fn attempts_belong_to_the_job_before_them() {
        let job = |line: &str| first_job(&words(line));
        assert_eq!(job("nap job logs 7 "), Some(JobSelector::One(JobId(7))));
        assert_eq!(
            job("nap job logs --tail 10 last m_"),
            Some(JobSelector::Last)
        );
        assert_eq!(job("nap job logs m_0003"), None);
    }
}
