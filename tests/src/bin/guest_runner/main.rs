//! A minimal engine for guests. It runs them one after another as docs/spark.md describes, and interleaves
//! their frames at random. Tests use it as `--on exec:guest_runner`.
//!
//! It shares no code with the protocol, so the tests check the documentation. Settings: `seed`, `chunk`
//! (maximum length), `break` (a rule to violate), `frames` (expected minimum), `hold` (attempts wait for a
//! file), `remade` (attempt number of the maps whose frames a retried reduce receives).

mod breaks;
mod frames;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use frames::{Frame, Frames};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The failed task of a job, and the reason.
type Failure = (String, String);

fn main() {
    let directory = PathBuf::from(
        std::env::args_os()
            .nth(1)
            .expect("the directory is the argument"),
    );
    let engine = read(&directory.join("engine.json"));
    assert_eq!(engine["format"], "napreduce-engine/1");
    let submitter = format!("/proc/{}", engine["submitter"]);
    let mut number = 1;
    while Path::new(&submitter).exists() && !directory.join("end").exists() {
        let path = directory.join(format!("jobs/{number}.json"));
        if !path.exists() {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let mut job = EngineJob::new(&directory, read(&path), &engine["settings"]);
        match job.run() {
            Ok(()) => {
                print_event(json!({"event": "done", "number": number, "failed_maps": job.failed}))
            }
            Err((task, reason)) => {
                print_event(
                    json!({"event": "failed", "number": number, "task": task, "reason": reason}),
                );
            }
        }
        number += 1;
    }
}

fn read(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn print_event(event: Value) {
    let mut out = std::io::stdout().lock();
    // Fails if the submitter has ended.
    let _ = writeln!(out, "\x1e{event}");
}

/// A pseudorandom generator, deterministic for each seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }
}

struct EngineJob {
    request: Value,
    /// The directory of the scratch and side files of attempts.
    place: PathBuf,
    random: Random,
    chunk_max: usize,
    breaks: String,
    frames_min: u64,
    /// Attempts after the first wait for a file with their ID in this directory.
    hold: Option<PathBuf>,
    /// Maps run again for a retried reduce, with this attempt number.
    remade: Option<u64>,
    failed: u64,
}

impl EngineJob {
    fn new(directory: &Path, request: Value, settings: &Value) -> EngineJob {
        let setting = |name: &str| settings[name].as_str().map(str::to_owned);
        let number = |name: &str| setting(name).and_then(|text| text.parse().ok());
        let place = directory.join(format!("work-{}", request["number"]));
        let files = place.join("files");
        fs::create_dir_all(&files).expect("a directory of its own");
        for file in request["files"].as_array().expect("a list of files") {
            let path = file["path"].as_str().expect("a path");
            let name = file["name"].as_str().expect("a name");
            fs::copy(path, files.join(name)).expect("a file that can be copied");
        }
        EngineJob {
            request,
            place,
            random: Random(number("seed").unwrap_or(1)),
            chunk_max: number("chunk").unwrap_or(1 << 20) as usize,
            breaks: setting("break").unwrap_or_default(),
            frames_min: number("frames").unwrap_or(0),
            hold: setting("hold").map(PathBuf::from),
            remade: number("remade"),
            failed: 0,
        }
    }

    fn run(&mut self) -> Result<(), Failure> {
        let number = self.request["number"].clone();
        let moved = self.maps(1)?;
        let frames: usize = moved.iter().flat_map(BTreeMap::values).map(Vec::len).sum();
        assert!(
            frames as u64 >= self.frames_min,
            "there are {frames} frames only"
        );
        for (reduce, of_maps) in moved.into_iter().enumerate() {
            let broken = if reduce == 0 {
                self.breaks.clone()
            } else {
                String::new()
            };
            let stream = breaks::broken(&broken, of_maps, |bound| self.random.below(bound));
            let report = self.guest("r", reduce, 1, stream)?;
            self.print_report(&number, &report);
        }
        Ok(())
    }

    /// Runs the maps, beginning with this attempt number; returns their frames by partition, then by map.
    fn maps(&mut self, first: u64) -> Result<Vec<BTreeMap<u32, Vec<Frame>>>, Failure> {
        let number = self.request["number"].clone();
        let maps = self.request["inputs"].as_array().map_or(0, Vec::len);
        let reduces = self.request["reduces"].as_u64().expect("a number") as usize;
        let mut moved: Vec<BTreeMap<u32, Vec<Frame>>> =
            (0..reduces).map(|_| BTreeMap::new()).collect();
        for map in 0..maps {
            let output = self.guest("m", map, first, Vec::new())?;
            for mut frame in Frames::of(&output) {
                let map = frame.map;
                if reduces == 0 {
                    self.print_report(&number, &frame.payload);
                    continue;
                }
                let partition = if frame.is_report() {
                    map as usize % reduces
                } else {
                    frame.partition as usize
                };
                if self.breaks == "bad report" && frame.is_report() {
                    frame.payload[12] ^= 1;
                }
                moved[partition].entry(map).or_default().push(frame);
            }
        }
        Ok(moved)
    }

    /// Returns the inputs of a retried reduce: the same, or those of other map attempts.
    fn stream_again(&mut self, reduce: usize, stream: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let Some(first) = self.remade else {
            return Ok(stream);
        };
        let of_maps = self.maps(first)?.swap_remove(reduce);
        Ok(breaks::broken("", of_maps, |bound| {
            self.random.below(bound)
        }))
    }

    fn print_report(&self, number: &Value, report: &[u8]) {
        let mut report: Value = serde_json::from_slice(report).expect("a report is JSON");
        let task = report["task"].as_str().expect("a task").to_owned();
        let is_first = task.ends_with("_0000");
        if is_first && self.breaks == "unreported" {
            return;
        }
        if is_first && self.breaks == "foreign part" {
            report["part"]["pending"]["file"] = json!("/etc/hostname");
        }
        let times = if is_first && self.breaks == "reported twice" {
            2
        } else {
            1
        };
        for _ in 0..times {
            print_event(json!({"event": "report", "number": number, "report": report}));
        }
    }

    fn is_cancelled(&self) -> bool {
        self.place
            .with_file_name(format!("jobs/{}.cancel", self.request["number"]))
            .exists()
    }

    fn await_beginning(&self, id: &str) {
        while self
            .hold
            .as_ref()
            .is_some_and(|place| !place.join(id).exists())
            && !self.is_cancelled()
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs a guest, with as many retries as the job allows; returns its output.
    fn guest(
        &mut self,
        kind: &str,
        task: usize,
        first: u64,
        mut stream: Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        let name = format!(
            "{}_{kind}_{task:04}",
            self.request["job"].as_str().expect("an id")
        );
        let attempts = first + self.request["attempts_max"].as_u64().expect("a number") - 1;
        let mut attempt = first;
        loop {
            if attempt > first {
                self.await_beginning(&format!("{name}.{attempt}"));
            }
            let ended = self.attempt((kind, task, &name), attempt, &stream);
            if ended.status.success() {
                return Ok(ended.stdout);
            }
            self.failed += u64::from(kind == "m");
            let errors = String::from_utf8_lossy(&ended.stderr).into_owned();
            let status = ended.status.code();
            if self.is_cancelled() {
                return Err((name, "the job was cancelled".to_owned()));
            }
            if status == Some(65) || attempt == attempts || !self.breaks.is_empty() {
                return Err((name, format!("{} {errors}", ended.status)));
            }
            attempt += 1;
            if kind == "r" {
                stream = self.stream_again(task, stream)?;
            }
        }
    }

    fn attempt(
        &mut self,
        (kind, task, name): (&str, usize, &str),
        attempt: u64,
        stream: &[u8],
    ) -> Output {
        let text = |name: &str| self.request[name].as_str().expect("text").to_owned();
        let id = format!("{name}.{attempt}");
        let scratch = self.place.join(&id);
        let mut command = Command::new(text("program"));
        command.args([
            "--napreduce-guest",
            if kind == "m" { "map" } else { "reduce" },
            "--plan",
            &text("plan"),
        ]);
        command.arg("--scratch").arg(&scratch).args([
            "--task",
            &task.to_string(),
            "--attempt",
            &attempt.to_string(),
        ]);
        command.args(["--die-with", &std::process::id().to_string()]);
        if kind == "r" || self.request["reduces"] == 0 {
            command
                .arg("--part")
                .arg(Path::new(&text("parts")).join(&id));
        }
        let job = text("job");
        let chunk_max = self.chunk_max;
        if kind == "m" {
            let chunk = 1 + chunk_max / 2 + self.random.below(chunk_max / 2);
            command.args(["--chunk", &chunk.to_string()]);
        }
        command
            .env("NAPREDUCE_JOB_ID", job)
            .env("NAPREDUCE_TASK_ID", name)
            .env("NAPREDUCE_ATTEMPT_ID", &id);
        command
            .env("NAPREDUCE_FILES_DIR", self.place.join("files"))
            .env_remove("NAPREDUCE_INPUT_FILE");
        if let Some(input) = self.request["inputs"][task]
            .as_str()
            .filter(|_| kind == "m")
        {
            command.env("NAPREDUCE_INPUT_FILE", input);
        }
        command
            .current_dir(&self.place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be run");
        let guest = Pid::from_raw(child.id().cast_signed()).expect("a process");
        // The guest may end before it has read all of its input; its status is checked below.
        let _ = child.stdin.take().expect("a pipe").write_all(stream);
        let has_ended = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    if self.is_cancelled() {
                        // The guest has just ended.
                        let _ = kill_process(guest, Signal::KILL);
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
            let ended = child.wait_with_output().expect("its end can be awaited");
            has_ended.store(true, Ordering::Relaxed);
            ended
        });
        // A killed guest leaves its scratch directory.
        let _ = fs::remove_dir_all(scratch);
        ended
    }
}
