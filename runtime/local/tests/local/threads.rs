//! Jobs whose attempts run on threads of this process: the same outputs, counters and errors as with processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use napreduce_local::{EmbeddedSettings, StartedJob, start_on_threads};
use napreduce_protocol::{
    Counter, FailedRecord, JobError, JobPlan, MapTask, PartOutput, ReduceTask, Split, TaskError,
};
use napreduce_task::{
    Boundary, Definitions, Ended, MapResult, PositionUnit, ReduceResult, TaskContext, TaskRunner,
    counter,
};
use tempfile::TempDir;

use crate::scenario::names;

/// Far longer than any step takes, even on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// The step of a map before its work.
type Before = dyn Fn(&TaskContext) -> Result<(), TaskError> + Send + Sync;

/// A word count over text files.
#[derive(Clone)]
struct WordCount {
    before: Arc<Before>,
}

impl Definitions for WordCount {
    fn build(&self, _: &str, _: &[u8]) -> Result<Box<dyn TaskRunner>, TaskError> {
        Ok(Box::new(self.clone()))
    }
}

impl TaskRunner for WordCount {
    fn run_map(&self, task: &MapTask, context: &TaskContext) -> Result<MapResult, TaskError> {
        let path = &task.split.parts[0].path;
        let text = fs::read_to_string(path).expect("an input");
        context.progress().set_total(text.len() as u64);
        context
            .position()
            .enter(path.display().to_string(), PositionUnit::Byte);
        let mut words: BTreeMap<&str, u64> = BTreeMap::new();
        for word in text.split_whitespace() {
            context.counters().add(Counter::MapInputRecords, 1);
            counter("words on threads").add(1);
            *words.entry(word).or_default() += 1;
        }
        (self.before)(context)?;
        context.progress().set_done(text.len() as u64);
        write(&task.output, &words);
        Ok(Ended::Done { part: None })
    }

    fn run_reduce(&self, task: &ReduceTask, _: &TaskContext) -> Result<ReduceResult, TaskError> {
        let mut words: BTreeMap<String, u64> = BTreeMap::new();
        for (_, path) in &task.inputs {
            for line in fs::read_to_string(path).expect("a map's output").lines() {
                let (word, count) = line.split_once('\t').expect("a line of a map");
                *words.entry(word.to_owned()).or_default() +=
                    count.parse::<u64>().expect("a count");
            }
        }
        let bytes = write(&task.output, &words);
        let records = words.len() as u64;
        Ok(Ended::Done {
            part: PartOutput {
                records,
                bytes,
                digest: bytes,
                ..PartOutput::default()
            },
        })
    }
}

fn write<W: std::fmt::Display>(path: &Path, words: &BTreeMap<W, u64>) -> u64 {
    let text: String = words
        .iter()
        .map(|(word, count)| format!("{word}\t{count}\n"))
        .collect();
    fs::write(path, &text).expect("written");
    text.len() as u64
}

/// A word count of its own directory: inputs `a b` and `b c`.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Scene {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, text) in [("0.txt", "a b"), ("1.txt", "b c")] {
            fs::write(directory.path().join(name), text).expect("written");
        }
        Scene { directory }
    }

    fn output(&self) -> PathBuf {
        self.directory.path().join("out")
    }

    fn start(
        &self,
        before: impl Fn(&TaskContext) -> Result<(), TaskError> + Send + Sync + 'static,
    ) -> StartedJob {
        let mut plan = JobPlan::new("words", self.output());
        let split = |name| {
            let path = self.directory.path().join(name);
            Split {
                path,
                offset: 0,
                length: 3,
                file_length: 3,
                version: None,
            }
            .into()
        };
        plan.splits = ["0.txt", "1.txt"].map(split).into();
        let definitions = Arc::new(WordCount {
            before: Arc::new(before),
        });
        let settings = EmbeddedSettings {
            slots: 2,
            ..EmbeddedSettings::default()
        };
        start_on_threads(plan, definitions, &settings).expect("started")
    }

    fn counts(&self) -> String {
        assert_eq!(names(&self.output()), ["_SUCCESS", "part-r-00000"]);
        fs::read_to_string(self.output().join("part-r-00000")).expect("a part")
    }
}

fn is_first_map(context: &TaskContext) -> bool {
    context.attempt().task.index == 0
}

#[test]
fn jobs_at_once_have_outputs_and_counters_of_their_own() {
    let scenes: Vec<Scene> = (0..8).map(|_| Scene::new()).collect();
    let started: Vec<StartedJob> = scenes.iter().map(|scene| scene.start(|_| Ok(()))).collect();
    for (scene, job) in scenes.iter().zip(started) {
        let report = job.wait().expect("it succeeds");
        assert_eq!(scene.counts(), "a\t1\nb\t2\nc\t1\n");
        assert_eq!(report.counters.of(Counter::MapInputRecords), 4);
        assert_eq!(report.counters.get("words on threads"), 4);
        assert_eq!(report.counters.of(Counter::LaunchedMaps), 2);
    }
}

#[test]
fn panic_fails_its_attempt_and_is_retried() {
    let scene = Scene::new();
    let job = scene.start(|context| {
        assert!(
            !is_first_map(context) || context.attempt().number > 1,
            "not yet"
        );
        Ok(())
    });
    let report = job.wait().expect("it succeeds");
    assert_eq!(scene.counts(), "a\t1\nb\t2\nc\t1\n");
    assert_eq!(report.counters.of(Counter::FailedMaps), 1);
    assert_eq!(
        report.counters.get("words on threads"),
        4,
        "the failed attempt must not be counted"
    );
}

#[test]
fn lasting_panic_fails_the_job_with_message_place_and_position() {
    let scene = Scene::new();
    let ended = scene
        .start(|context| {
            if is_first_map(context) {
                panic!("bad row")
            } else {
                Ok(())
            }
        })
        .wait();
    let error = ended.expect_err("it fails");
    let input = scene.directory.path().join("0.txt");
    let JobError::Failed {
        failure: Some(failure),
        ..
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!((failure.attempt.task.index, failure.attempt.number), (0, 4));
    let record = FailedRecord::new(input.display().to_string(), "byte 0", None);
    assert_eq!(failure.record, Some(record));
    let error = error.to_string();
    assert!(
        error.contains("_m_0000 failed 4 times; last: panicked at 'bad row', runtime/local/tests/"),
        "{error}"
    );
    assert!(
        error.ends_with(&format!(", reading {} byte 0", input.display())),
        "{error}"
    );
    assert!(!scene.output().exists());
}

/// Announces each map and works until it is interrupted.
fn endless(
    begun: Sender<()>,
) -> impl Fn(&TaskContext) -> Result<(), TaskError> + Send + Sync + 'static {
    let begun = std::sync::Mutex::new(begun);
    move |context| {
        begun
            .lock()
            .expect("not poisoned")
            .send(())
            .expect("the test waits");
        while !(context.is_asked()
            && context.tell(None)
            && context.boundary(&mut ())? == Boundary::Checkpoint)
        {
            std::thread::yield_now();
        }
        Ok(())
    }
}

fn await_two(begun: &Receiver<()>) {
    for _ in 0..2 {
        begun.recv_timeout(DEADLINE).expect("a map begins");
    }
}

#[test]
fn cancelled_job_ends_at_a_boundary_and_leaves_nothing() {
    let (sender, begun) = channel();
    let scene = Scene::new();
    let job = scene.start(endless(sender));
    await_two(&begun);
    job.cancel("enough");
    let ended = job.wait();
    assert!(
        matches!(&ended, Err(JobError::Killed { reason, .. }) if reason == "enough"),
        "{ended:?}"
    );
    assert!(!scene.output().exists());
}

#[test]
fn dropped_job_leaves_nothing() {
    let (sender, begun) = channel();
    let scene = Scene::new();
    let job = scene.start(endless(sender));
    await_two(&begun);
    drop(job);
    assert!(
        begun.try_recv().is_err(),
        "no attempt is left or was retried"
    );
    assert!(!scene.output().exists());
}
