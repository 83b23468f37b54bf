//! Several concurrent sequences of jobs, each compared with the output of an undisturbed run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::Duration;

use napreduce_tests::{Ended, Folder, parts, program, run};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use rustix::process::Signal;

use crate::mounts::{Shared as SharedFolder, can_mount};
use crate::processes::{Process, wait_until};

/// Concurrent jobs.
const SUBMITTERS: u64 = 3;
/// Deadline for running jobs after the last fault.
const END: Duration = Duration::from_secs(120);

/// A job: the program and its arguments, without input and output.
struct Spec {
    program: &'static str,
    arguments: &'static [&'static str],
    input: &'static str,
}

const SPECS: [Spec; 5] = [
    Spec {
        program: "wordcount",
        arguments: &["--split-size", "64KiB", "--reduces", "3"],
        input: "text",
    },
    Spec {
        program: "testjobs",
        arguments: &[
            "--job",
            "slow",
            "--number",
            "2000",
            "--split-size",
            "48KiB",
            "--reduces",
            "4",
        ],
        input: "short",
    },
    Spec {
        program: "testjobs",
        arguments: &[
            "--job",
            "slow-lines",
            "--number",
            "2000",
            "--split-size",
            "48KiB",
        ],
        input: "short",
    },
    Spec {
        program: "testjobs",
        arguments: &[
            "--job",
            "words-without-combiner",
            "--split-size",
            "64KiB",
            "--reduces",
            "5",
        ],
        input: "text",
    },
    Spec {
        program: "terasort",
        arguments: &["--split-size", "100KiB", "--reduces", "2"],
        input: "rows",
    },
];

type Parts = Vec<(String, Vec<u8>)>;

/// Inputs, and the outputs of undisturbed runs.
#[derive(Clone)]
pub struct Reference {
    root: PathBuf,
    outputs: Arc<Vec<Parts>>,
}

impl Reference {
    pub fn make(folder: &Folder) -> Reference {
        let mut random = Pcg64::seed_from_u64(11);
        folder.write("text", text(&mut random, 9, 1 << 20));
        folder.write("short", text(&mut random, 4, 384 << 10));
        let rows = folder.path("rows").display().to_string();
        run(program("datagen").args(["tera", "--records", "10000", "--output", &rows])).succeeded();
        let outputs = SPECS.iter().enumerate().map(|(index, spec)| {
            let output = folder.path(&format!("expected-{index}"));
            let mut command = program(spec.program);
            command
                .arg(folder.path(spec.input))
                .arg("--output")
                .arg(&output)
                .args(spec.arguments);
            run(command.arg("--quiet")).succeeded();
            parts(&output)
        });
        Reference {
            root: folder.root().to_owned(),
            outputs: Arc::new(outputs.collect()),
        }
    }
}

/// Generates words with fewer letters than `letters`.
fn text(random: &mut Pcg64, letters: u32, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        let length = random.random_range(1..letters);
        text.extend((0..length).map(|_| char::from(random.random_range(b'a'..b'g'))));
        text.push(if random.random_ratio(1, 40) {
            '\n'
        } else {
            ' '
        });
    }
    text
}

/// Running submitters.
pub struct Workload {
    shared: Arc<Shared>,
    submitters: Vec<JoinHandle<()>>,
    outputs: Option<SharedFolder>,
}

#[derive(Default)]
struct Shared {
    enough: AtomicBool,
    jobs: AtomicU32,
    failure: Mutex<Option<String>>,
    /// The submitters' processes, which wait for their jobs.
    programs: Mutex<Vec<Process>>,
    /// Locked for reading while the outputs must be reachable: from the start of a submission until its
    /// output is claimed, and while the output of a job is read.
    outputs_needed: RwLock<()>,
}

impl Workload {
    /// Starts several submitters, each of which runs jobs in sequence until `finish`.
    pub fn start(reference: &Reference, folder: &Folder, cluster: &Path, seed: u64) -> Workload {
        let shared = Arc::new(Shared::default());
        let outputs = can_mount()
            .then(|| SharedFolder::mount(folder.path("outputs"), folder.path("outputs-content")));
        let submitters = (0..SUBMITTERS).map(|number| {
            let mut submitter = Submitter {
                reference: reference.clone(),
                outputs: folder.path(&format!("outputs/{number}")),
                cluster: cluster.to_owned(),
                random: Pcg64::seed_from_u64(seed.wrapping_mul(1_000) + number),
                shared: Arc::clone(&shared),
            };
            std::thread::spawn(move || submitter.work())
        });
        let submitters = submitters.collect();
        Workload {
            shared,
            submitters,
            outputs,
        }
    }

    /// Returns the folder of all outputs, if it can be hidden.
    pub fn outputs(&self) -> Option<&SharedFolder> {
        self.outputs.as_ref()
    }

    /// Waits until all jobs have claimed their outputs. While the guard is held, only the cluster accesses
    /// outputs.
    pub fn leave_outputs_alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.shared.outputs_needed.write().expect("no panic")
    }

    /// Returns the first failure.
    pub fn failure(&self) -> Option<String> {
        self.shared.failure.lock().expect("no panic").clone()
    }

    /// Waits for the running jobs; returns the total number of jobs. If they do not end, `why` explains the
    /// reason.
    pub fn finish(self, why: impl FnOnce() -> String) -> Result<u32, String> {
        self.shared.enough.store(true, Ordering::SeqCst);
        let ended = wait_until("the end of the jobs that run", END, || {
            self.submitters.iter().all(JoinHandle::is_finished)
        });
        if let Err(error) = ended {
            let error = format!("{error}\n{}", why());
            self.shared
                .failure
                .lock()
                .expect("no panic")
                .get_or_insert(error);
            for program in self.shared.programs.lock().expect("no panic").iter() {
                program.signal(Signal::KILL);
            }
        }
        for submitter in self.submitters {
            submitter
                .join()
                .map_err(|_| "a submitter panicked".to_owned())?;
        }
        let failure = self.shared.failure.lock().expect("no panic").take();
        failure.map_or_else(|| Ok(self.shared.jobs.load(Ordering::SeqCst)), Err)
    }
}

struct Submitter {
    reference: Reference,
    outputs: PathBuf,
    cluster: PathBuf,
    random: Pcg64,
    shared: Arc<Shared>,
}

impl Submitter {
    fn work(&mut self) {
        let mut number = 0;
        while !self.shared.enough.load(Ordering::SeqCst) {
            number += 1;
            let index = self.random.random_range(0..SPECS.len());
            let output = self.outputs.join(number.to_string());
            if let Err(error) = self.run(index, &output) {
                self.shared
                    .failure
                    .lock()
                    .expect("no panic")
                    .get_or_insert(error);
                return;
            }
            self.shared.jobs.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Runs a program. Outputs cannot be hidden until its output is claimed.
    fn submit(&self, command: &mut Command, output: &Path) -> Ended {
        let claiming = self.shared.outputs_needed.read().expect("no panic");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a program");
        let process = Process::of(child.id()).expect("one that nobody has waited for");
        self.shared.programs.lock().expect("no panic").push(process);
        // A program that has ended will not claim an output.
        while !output.join("_temporary").exists() && !output.join("_SUCCESS").exists() {
            if !matches!(child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(claiming);
        let ended = child.wait_with_output().expect("its output");
        self.shared
            .programs
            .lock()
            .expect("no panic")
            .retain(|known| known.number != process.number);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended {
            status: ended.status,
            stdout: text(&ended.stdout),
            stderr: text(&ended.stderr),
        }
    }

    fn run(&self, index: usize, output: &Path) -> Result<(), String> {
        let spec = &SPECS[index];
        let mut command = program(spec.program);
        command
            .arg(self.reference.root.join(spec.input))
            .arg("--output")
            .arg(output)
            .args(spec.arguments);
        // Kills from outside count as failures, and they are frequent here.
        command.args(["--conf", "attempts-max=100", "--quiet"]);
        let ended = self.submit(command.arg("--cluster").arg(&self.cluster), output);
        let what = format!(
            "{} {:?} into {}",
            spec.program,
            spec.arguments,
            output.display()
        );
        if !ended.status.success() {
            return Err(format!("{what}: {}\n{}", ended.status, ended.stderr));
        }
        let _reading = self.shared.outputs_needed.read().expect("no panic");
        let expected = &self.reference.outputs[index];
        let found = parts(output);
        if found != *expected {
            let sizes = |parts: &Parts| {
                parts
                    .iter()
                    .map(|(name, part)| (name.clone(), part.len()))
                    .collect::<Vec<_>>()
            };
            return Err(format!(
                "{what}: {:?} instead of {:?}",
                sizes(&found),
                sizes(expected)
            ));
        }
        if output.join("_temporary").exists() || !output.join("_SUCCESS").exists() {
            return Err(format!("{what}: not committed cleanly"));
        }
        std::fs::remove_dir_all(output).map_err(|error| format!("{what}: {error}"))
    }
}
