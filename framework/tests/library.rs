//! Jobs as values of a program. The test is a program of its own, since task processes execute it again.

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use napreduce::program::{Error, JobError, SideFile};
use napreduce::run::Local;
use napreduce::{Dataset, Driver, Emit, Job, Program, TaskError, words};
use serde::{Deserialize, Serialize};

fn count(least: &usize) -> Job {
    let least = *least;
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            for word in words(line).filter(|word| word.len() >= least) {
                out.emit(word, 1);
            }
        })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// All words as typed pairs.
fn pairs() -> Job<(String, u64)> {
    Job::text().flat_map(words).count()
}

fn frequent(least: &u64) -> Job {
    let least = *least;
    Job::records::<String, u64>().map_only(move |(word, count), out| {
        if count >= least {
            out.emit(word, count);
        }
    })
}

/// Fails for a line that is not a number.
fn doubled() -> Job {
    Job::text().map_only(|line: &str, out| -> Result<(), TaskError> {
        let number: u64 = line
            .parse()
            .map_err(|_| TaskError::fatal(format!("{line:?} is not a number")))?;
        out.emit(2 * number, ());
        Ok(())
    })
}

#[derive(Serialize, Deserialize)]
struct Gate {
    path: PathBuf,
}

/// Waits in each map until a file exists.
fn gated(gate: &Gate) -> Job {
    let path = gate.path.clone();
    Job::text().map_only(move |line: &str, out| {
        while !path.exists() {
            napreduce::progress();
            thread::yield_now();
        }
        out.emit(line, ());
    })
}

const TEXT: &str = "to be or\nnot to be that is\n";

fn local() -> Local {
    Local::default().slots(2)
}

fn job_on_text(text: &Path) -> Result<Vec<String>, Error> {
    napreduce::job(count)
        .parameters(&2)
        .inputs([text])
        .reduces(1)
        .run(&local())?
        .collect()
}

fn driver_without_command_line_writes_output(text: &Path) -> Result<(), Error> {
    let output = text.with_file_name("out");
    let read = Program::new().run(&output, |driver: &mut Driver| -> Result<String, Error> {
        let report = driver
            .job(count)
            .parameters(&2_usize)
            .inputs([text])
            .reduces(1)
            .run()?;
        assert_eq!(report.counters.get("MAP_INPUT_RECORDS"), 2);
        let again = driver.job(count).parameters(&2_usize).inputs([text]).run();
        let error = again.expect_err("the output is there").to_string();
        assert!(error.contains("exists"), "{error}");
        driver.read_text(&output)
    })?;
    assert_eq!(read, "be\t2\nis\t1\nnot\t1\nor\t1\nthat\t1\nto\t2\n");
    Ok(())
}

fn result_of_job_is_a_value(text: &Path) -> Result<(), Error> {
    assert_eq!(
        job_on_text(text)?,
        ["be\t2", "is\t1", "not\t1", "or\t1", "that\t1", "to\t2"]
    );
    let counts = napreduce::job(pairs)
        .inputs([text])
        .reduces(1)
        .run(&local())?;
    assert_eq!(
        counts
            .report()
            .expect("a job made it")
            .counters
            .get("MAP_INPUT_RECORDS"),
        2
    );
    assert_eq!(
        counts.collect()?[..2],
        [("be".to_owned(), 2), ("is".to_owned(), 1)]
    );
    assert_eq!(counts.fold(0, |sum, (_, count)| sum + count)?, 8);
    Ok(())
}

fn closure_is_a_definition(text: &Path) -> Result<(), Error> {
    let upper = napreduce::job(|| {
        Job::text().map_only(|line: &str, out| out.emit(line.to_uppercase(), ()))
    });
    assert_eq!(
        upper.inputs([text]).run(&local())?.collect()?,
        ["TO BE OR", "NOT TO BE THAT IS"]
    );
    Ok(())
}

fn dataset_is_input_of_next_job_and_removed_with_last_clone() -> Result<(), Error> {
    let lines = Dataset::lines(TEXT.lines())?;
    let counts = napreduce::job(pairs)
        .inputs([&lines])
        .reduces(1)
        .run(&local())?;
    let directory = counts.path().to_owned();
    let request = napreduce::job(frequent).parameters(&2).inputs([&counts]);
    drop((lines, counts));
    assert!(directory.exists(), "a request keeps its inputs");
    assert_eq!(request.run(&local())?.collect()?, ["be\t2", "to\t2"]);
    assert!(
        !directory.exists(),
        "{} was not removed",
        directory.display()
    );
    Ok(())
}

fn jobs_run_at_once_and_do_not_disturb_each_other(text: &Path) -> Result<(), Error> {
    let gate = Gate {
        path: text.with_file_name("gate"),
    };
    let waits = napreduce::job(gated)
        .parameters(&gate)
        .inputs([text])
        .start(&local())?;
    let cancelled = napreduce::job(gated)
        .parameters(&gate)
        .inputs([text])
        .start(&local())?;
    let failing = napreduce::job(doubled).inputs([text]).start(&local())?;
    let good: Vec<_> = (0..6)
        .map(|least| {
            napreduce::job(count)
                .parameters(&least)
                .inputs([text])
                .reduces(1)
                .start(&local())
        })
        .collect::<Result<_, _>>()?;
    for (least, handle) in good.into_iter().enumerate() {
        let words = handle.wait()?.collect()?;
        assert_eq!(words.len(), [6, 6, 6, 2, 1, 0][least]);
    }
    let error = failing.wait().expect_err("the lines are no numbers");
    assert!(
        error.to_string().contains("\"to be or\" is not a number"),
        "{error}"
    );
    cancelled.cancel("nobody waits for it");
    match cancelled.wait() {
        Err(Error::Job(JobError::Killed { reason, .. })) => {
            assert!(reason.contains("nobody waits for it"))
        }
        other => panic!("{other:?}"),
    }
    assert!(!waits.has_ended());
    fs::write(&gate.path, "").expect("the gate opens");
    assert_eq!(waits.wait()?.collect()?, TEXT.lines().collect::<Vec<_>>());
    Ok(())
}

/// Waits for a future as an async runtime does.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(ended) => return ended,
            Poll::Pending => thread::park(),
        }
    }
}

/// A web service keeps handles in tasks that move between threads.
fn handle_is_sent_between_threads(text: &Path) -> Result<(), Error> {
    let handle = napreduce::job(count)
        .parameters(&2)
        .inputs([text])
        .start(&local())?;
    let waits = thread::spawn(move || handle.wait());
    assert_eq!(
        waits.join().expect("it does not panic")?.collect()?.len(),
        6
    );
    Ok(())
}

fn handle_is_a_future_and_progress_a_stream(text: &Path) -> Result<(), Error> {
    let handle = napreduce::job(count)
        .parameters(&2)
        .inputs([text])
        .start(&local())?;
    let mut watch = handle.watch();
    let counts = block_on(async {
        let counts = handle.await;
        let mut last = watch.get();
        while let Some(progress) = watch.next().await {
            last = progress;
        }
        assert_eq!((last.map.tasks, last.map.done), (1, 1));
        counts
    })?;
    assert_eq!(counts.collect()?.len(), 6);
    Ok(())
}

/// The jobs of these tests run on threads, too, with the same results.
fn threads_replace_processes(text: &Path) -> Result<(), Error> {
    let threads = Local::threads();
    let lines = napreduce::job(count)
        .parameters(&2)
        .inputs([text])
        .reduces(1)
        .run(&threads)?
        .collect()?;
    assert_eq!(lines, job_on_text(text)?);
    let failed = napreduce::job(doubled)
        .inputs([text])
        .run(&threads)
        .expect_err("lines are no numbers");
    assert!(
        failed.to_string().contains("\"to be or\" is not a number"),
        "{failed}"
    );
    let counts = napreduce::job(pairs).inputs([text]).run(&threads)?;
    let frequent = napreduce::job(frequent)
        .parameters(&2)
        .inputs([&counts])
        .run(&threads)?
        .collect()?;
    assert_eq!(frequent.len(), 2);
    Ok(())
}

/// Lines with the content of the side file `title`.
fn titled() -> Job {
    let title = SideFile::new("title", |path| fs::read_to_string(path));
    Job::text().map_only(move |line: &str, out| out.emit(title.get(), line))
}

/// Jobs that run at once may have different files of one name.
fn side_files_belong_to_their_job(text: &Path) -> Result<(), Error> {
    for local in [local(), Local::threads()] {
        let jobs = ["one", "two", "three"].map(|title| {
            let path = text.with_file_name(title);
            fs::write(&path, title).expect("a side file");
            (
                title,
                napreduce::job(titled)
                    .inputs([text])
                    .side_file("title", &path)
                    .start(&local),
            )
        });
        for (title, job) in jobs {
            let lines = job?.wait()?.collect()?;
            assert!(
                lines
                    .iter()
                    .all(|line| line.starts_with(&format!("{title}\t"))),
                "{lines:?}"
            );
        }
    }
    let without = napreduce::job(titled)
        .inputs([text])
        .run(&local())
        .expect_err("it has no file");
    assert!(
        without.to_string().contains("unknown side file \"title\""),
        "{without}"
    );
    Ok(())
}

fn mistakes_are_errors_before_anything_runs(text: &Path) -> Result<(), Error> {
    let refusal =
        |request: Result<Dataset<String>, Error>| request.expect_err("it is refused").to_string();
    let missing = text.with_file_name("missing");
    let error = refusal(
        napreduce::job(count)
            .parameters(&2)
            .inputs([&missing])
            .run(&local()),
    );
    assert_eq!(error, format!("input {} does not exist", missing.display()));
    let error = refusal(
        napreduce::job(count)
            .parameters(&"two")
            .inputs([text])
            .run(&local()),
    );
    assert!(
        error.starts_with("parameters of the job cannot be decoded: "),
        "{error}"
    );
    let error = refusal(napreduce::job(count).parameters(&2).run(&local()));
    assert_eq!(error, "the job has no input; call `inputs`");
    Ok(())
}

fn main() -> Result<ExitCode, Error> {
    napreduce::init();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("library");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    let text = folder.join("text");
    fs::write(&text, TEXT).expect("an input");
    driver_without_command_line_writes_output(&text)?;
    result_of_job_is_a_value(&text)?;
    closure_is_a_definition(&text)?;
    dataset_is_input_of_next_job_and_removed_with_last_clone()?;
    jobs_run_at_once_and_do_not_disturb_each_other(&text)?;
    handle_is_sent_between_threads(&text)?;
    handle_is_a_future_and_progress_a_stream(&text)?;
    threads_replace_processes(&text)?;
    side_files_belong_to_their_job(&text)?;
    mistakes_are_errors_before_anything_runs(&text)?;
    fs::remove_dir_all(&folder).expect("nothing is left");
    Ok(ExitCode::SUCCESS)
}
