//! Jobs whose user code panics, fails, kills itself, damages files or never ends.

use napreduce::input::TextLines;
use napreduce::output::FixedBytes;
use napreduce::{Emit, Job, Mapper, Save, TaskError, TaskInfo};

use crate::Choice;

/// Returns the attempt number from the environment of the task process.
fn attempt_number() -> u64 {
    let id = std::env::var("NAPREDUCE_ATTEMPT_ID").unwrap_or_default();
    id.rsplit('.')
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Kills this process with SIGKILL, as the out-of-memory killer would.
fn kill_myself() {
    let this = rustix::process::getpid();
    rustix::process::kill_process(this, rustix::process::Signal::KILL)
        .expect("a process may kill itself");
}

/// The first attempt of each map is killed at record `number`.
pub fn killed_map(choice: &Choice) -> Job {
    let at = choice.number;
    let seen = std::sync::atomic::AtomicU64::new(0);
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            if attempt_number() == 1
                && seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == at
            {
                kill_myself();
            }
            line.split_ascii_whitespace()
                .for_each(|word| out.emit(word, 1));
        })
        .combine(|count, more| *count += more)
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// The first attempt of each reduce is killed at group `number`.
pub fn killed_reduce(choice: &Choice) -> Job {
    let at = choice.number;
    let seen = std::sync::atomic::AtomicU64::new(0);
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            line.split_ascii_whitespace()
                .for_each(|word| out.emit(word, 1));
        })
        .combine(|count, more| *count += more)
        .reduce(move |word, counts, out| {
            if attempt_number() == 1
                && seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == at
            {
                kill_myself();
            }
            out.emit(word, counts.sum());
        })
}

/// Each attempt at a map gives its records other keys. A line names a folder and ends in a number; a reduce waits until
/// that folder has a file with its name, such as `r_0001`.
pub fn scattered(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<u64, String>| {
            let (_, number) = line.rsplit_once('\t').expect("a folder and a number");
            let number: u64 = number.parse().expect("a number");
            let seed = u64::from(std::process::id());
            out.emit((number + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15), line);
        })
        .reduce(|_, lines, out| {
            while let Some(line) = lines.next() {
                let (folder, number) = line.rsplit_once('\t').expect("a folder and a number");
                wait_for_gate(folder);
                out.emit(number, ());
            }
        })
}

/// Writes the number of each line, and the process of the attempt. Each map waits for the file with its name, such as
/// `m_0001`, in the folder that its lines name.
pub fn scattered_lines(_: &Choice) -> Job {
    Job::text().map_only(|line: &str, out| {
        let (folder, number) = line.rsplit_once('\t').expect("a folder and a number");
        wait_for_gate(folder);
        out.emit(number, std::process::id());
    })
}

fn wait_for_gate(folder: &str) {
    let attempt = std::env::var("NAPREDUCE_ATTEMPT_ID").expect("a task process");
    let (task, _) = attempt.rsplit_once('.').expect("an attempt");
    let (_, name) = task.split_at(task.len() - "r_0000".len());
    while !std::path::Path::new(folder).join(name).exists() {
        napreduce::progress();
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Each map keeps files open up to the limit of its process, and then emits more than fits in memory.
pub fn open_files(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            let limit = rustix::process::Rlimit {
                current: Some(64),
                maximum: Some(64),
            };
            rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)
                .expect("a lower limit");
            let mut files = Vec::new();
            while let Ok(file) = std::fs::File::open("/dev/null") {
                files.push(file);
            }
            for number in 0..400_000 {
                out.emit(&format!("{line}{number}"), 1);
            }
        })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// Each map kills its worker.
pub fn kills_its_worker(_: &Choice) -> Job {
    Job::text().map_only(|line: &str, out| {
        if let Some(worker) = rustix::process::getppid() {
            rustix::process::kill_process(worker, rustix::process::Signal::KILL)
                .expect("its own user's");
        }
        out.emit(line, ());
    })
}

pub fn panic_in_map(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| {
            assert!(line != "bad", "bad row");
            out.emit(line, 1);
        })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

pub fn panic_in_combine(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
        .combine(|count, _| panic!("cannot combine {count}"))
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

pub fn panic_in_reduce(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, u64>| out.emit(line, 1))
        .reduce(|word, counts, out| {
            assert!(word != "bad", "bad group");
            out.emit(word, counts.sum());
        })
}

pub fn error_in_map(_: &Choice) -> Job {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<u64, ()>| -> Result<(), std::num::ParseIntError> {
                out.emit(line.parse()?, ());
                Ok(())
            },
        )
        .reduce(|number, _, out| out.emit(number, ()))
}

/// The line `bad` causes a fatal error, which is not retried; each attempt leaves a file next to the input.
pub fn fatal_in_map(_: &Choice) -> Job {
    Job::text()
        .map(
            |line: &str, out: &mut Emit<String, ()>| -> Result<(), TaskError> {
                if line == "bad" {
                    let input = std::env::var("NAPREDUCE_INPUT_FILE").expect("every map has it");
                    let attempts = std::fs::OpenOptions::new()
                        .create(true)
                        .append(true)
                        .open(format!("{input}.attempts"));
                    let written = attempts
                        .and_then(|mut file| std::io::Write::write_all(&mut file, b"one\n"));
                    written.expect("a writable folder");
                    let place = out.input();
                    let path = place.path().display().to_string();
                    let number = place.line().unwrap_or(0);
                    return Err(TaskError::fatal(format!(
                        "{path} line {number}: this line is invalid"
                    )));
                }
                out.emit(line, ());
                Ok(())
            },
        )
        .reduce(|line, _, out| out.emit(line, ()))
}

/// Chooses a partition that does not exist.
pub fn bad_partition(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, ()>| out.emit(line, ()))
        .partition_by(|_, partitions| partitions)
        .reduce(|line, _, out| out.emit(line, ()))
}

/// Writes records whose length differs from that of the output format.
pub fn bad_length(_: &Choice) -> Job<Vec<u8>> {
    Job::bytes()
        .map(|line: &[u8], out: &mut Emit<Vec<u8>, ()>| out.emit(line, ()))
        .output(FixedBytes { length: 10 })
        .reduce(|line, _, out| out.write(line))
}

/// Counts words; the first attempt of map 2 flips one bit of the sealed output of map 1.
#[derive(Clone)]
struct Vandal {
    /// The offset of the byte to damage, modulo the file's length.
    at: u64,
}

impl Mapper for Vandal {
    type Input = TextLines;
    type Key = String;
    type Value = u64;

    fn setup(&mut self, task: &TaskInfo<'_>) -> Result<(), TaskError> {
        if !task.attempt().to_string().ends_with("_m_0002.1") {
            return Ok(());
        }
        let path = sealed_output_of_map_1();
        let failed =
            |error: std::io::Error| TaskError::task(format!("{}: {error}", path.display()));
        let mut bytes = std::fs::read(&path).map_err(failed)?;
        let at = (self.at % bytes.len() as u64) as usize;
        bytes[at] ^= 1;
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .map_err(failed)?;
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64).map_err(failed)
    }

    fn map(&mut self, line: &str, out: &mut Emit<String, u64>) -> Result<(), TaskError> {
        line.split_ascii_whitespace()
            .for_each(|word| out.emit(word, 1));
        Ok(())
    }

    fn save(&self, _: &mut Vec<u8>) -> Result<Save, TaskError> {
        Ok(Save::Stateless)
    }
}

/// Waits for the output of map 1: in the output directory of an embedded job, or in the directory of one of
/// the cluster's workers, which are siblings.
fn sealed_output_of_map_1() -> std::path::PathBuf {
    let job = std::env::var("NAPREDUCE_JOB_ID").expect("every task process has it");
    let name = format!("{job}_m_0001.1.segment");
    let files =
        std::path::PathBuf::from(std::env::var_os("NAPREDUCE_FILES_DIR").unwrap_or_default());
    let began = std::time::Instant::now();
    while began.elapsed() < std::time::Duration::from_secs(30) {
        let workers = files
            .ancestors()
            .nth(4)
            .and_then(|workers| std::fs::read_dir(workers).ok());
        let workers = workers.into_iter().flatten().flatten();
        let shuffles = workers.map(|worker| worker.path().join("jobs").join(&job).join("shuffle"));
        // An embedded job has a work directory for each claim.
        let claims = std::fs::read_dir("out/_temporary")
            .into_iter()
            .flatten()
            .flatten();
        let embedded = claims.map(|claim| claim.path().join("shuffle"));
        let mut paths = shuffles.chain(embedded).map(|shuffle| shuffle.join(&name));
        if let Some(path) = paths.find(|path| path.exists()) {
            return path;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("{name} does not exist");
}

pub fn damaged(choice: &Choice) -> Job {
    Job::text()
        .mapper(Vandal { at: choice.number })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// Runs until it is interrupted. Writes its process ID to a file next to the input.
pub fn endless(_: &Choice) -> Job {
    Job::text()
        .map(|line: &str, out: &mut Emit<String, ()>| {
            let id = std::env::var("NAPREDUCE_ATTEMPT_ID").unwrap_or_default();
            let input = std::env::var("NAPREDUCE_INPUT_FILE").expect("every map has it");
            let unfinished = format!("{input}.unfinished");
            let path = format!("{input}.running");
            let written = std::fs::write(&unfinished, format!("{id} {}", std::process::id()));
            written
                .and_then(|()| std::fs::rename(unfinished, path))
                .expect("a writable folder");
            out.emit(line, ());
            while !line.is_empty() {
                std::thread::park();
            }
        })
        .reduce(|line, _, out| out.emit(line, ()))
}

/// Counts words; the first attempt of the last map sleeps for `number` seconds before it begins.
pub fn straggler(choice: &Choice) -> Job {
    let nap = std::time::Duration::from_secs(choice.number);
    let slept = std::sync::atomic::AtomicBool::new(false);
    Job::text()
        .map(move |line: &str, out: &mut Emit<String, u64>| {
            let id = std::env::var("NAPREDUCE_ATTEMPT_ID").unwrap_or_default();
            if id.ends_with("_m_0005.1") && !slept.swap(true, std::sync::atomic::Ordering::Relaxed)
            {
                std::thread::sleep(nap);
            }
            line.split_ascii_whitespace()
                .for_each(|word| out.emit(word, 1));
        })
        .reduce(|word, counts, out| out.emit(word, counts.sum()))
}

/// A line that begins with `hungry` allocates `number` MiB of memory and writes to all of it.
pub fn hungry(choice: &Choice) -> Job {
    let bytes = choice.number << 20;
    Job::text().map_only(move |line: &str, out| {
        let held: Vec<u8> = if line.starts_with("hungry") {
            vec![7; bytes as usize]
        } else {
            Vec::new()
        };
        out.emit(
            line,
            held.iter()
                .step_by(4096)
                .map(|byte| u64::from(*byte))
                .sum::<u64>(),
        );
    })
}

/// Writes the environment of a task: names of variables, and targets of descriptors.
pub fn surroundings(_: &Choice) -> Job {
    Job::text().map_only(|line: &str, out| {
        for (name, _) in std::env::vars_os() {
            out.emit(line, name.to_string_lossy().into_owned());
        }
        for entry in std::fs::read_dir("/proc/self/fd")
            .expect("descriptors")
            .flatten()
        {
            let target = std::fs::read_link(entry.path()).unwrap_or_default();
            out.emit(line, target.display().to_string());
        }
    })
}

/// The first attempt of a map converts its input to capitals and dies.
pub fn spoils_its_input(_: &Choice) -> Job {
    Job::text().map_only(|line: &str, out| {
        if attempt_number() == 1 {
            let input = std::env::var("NAPREDUCE_INPUT_FILE").expect("every map has it");
            let text = std::fs::read_to_string(&input).expect("an input");
            std::fs::write(&input, text.to_uppercase()).expect("written");
            kill_myself();
        }
        out.emit(line, ());
    })
}
