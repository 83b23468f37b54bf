//! An emulation of the part of Hadoop streaming that job programs use: map and reduce commands, typed bytes,
//! partitioner, sort and retries. It follows Hadoop's documentation and shares no code with the programs.
//! Tests use it as `--on hadoop --on-submit streaming_hadoop`.

mod records;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use records::Record;

/// The command line.
struct Job {
    settings: BTreeMap<String, String>,
    files: Vec<PathBuf>,
    input: PathBuf,
    output: PathBuf,
    mapper: String,
    reducer: Option<String>,
    reduces: usize,
    /// The directory in which attempts run.
    work: PathBuf,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|first| first == "job") {
        // No process runs outside the client.
        return;
    }
    let job = Job::parse(&words);
    eprintln!("INFO mapreduce.Job: Running job: job_emulated_0001");
    let ended = job.run();
    let _ = fs::remove_dir_all(&job.work);
    match ended {
        Ok([maps, reduces]) => {
            eprintln!("INFO mapreduce.Job:  map 100% reduce 100%");
            for (kind, failed) in [("map", maps), ("reduce", reduces)] {
                if failed > 0 {
                    eprintln!("\t\tFailed {kind} tasks={failed}");
                }
            }
        }
        Err(task) => {
            eprintln!("ERROR streaming.StreamJob: Job not successful: {task}");
            std::process::exit(1);
        }
    }
}

impl Job {
    fn parse(words: &[String]) -> Job {
        assert_eq!(words[0], "jar");
        assert!(Path::new(&words[1]).is_file(), "{} is the jar", words[1]);
        let mut settings = BTreeMap::new();
        let mut one = BTreeMap::new();
        for pair in words[2..].chunks(2) {
            let [flag, value] = pair else {
                panic!("{pair:?} is a flag without a value")
            };
            match flag.as_str() {
                "-D" => {
                    let (key, value) = value.split_once('=').expect("KEY=VALUE");
                    settings.insert(key.to_owned(), value.to_owned());
                }
                _ => {
                    one.insert(flag.as_str(), value.clone());
                }
            }
        }
        assert_eq!(
            one["-inputformat"],
            "org.apache.hadoop.mapred.lib.NLineInputFormat"
        );
        let output = path(&one["-output"]);
        Job {
            files: one["-files"].split(',').map(path).collect(),
            input: path(&one["-input"]),
            mapper: one["-mapper"].clone(),
            reducer: one.get("-reducer").cloned(),
            reduces: one["-numReduceTasks"].parse().expect("a number"),
            work: output.with_file_name("emulated-work"),
            output,
            settings,
        }
    }

    fn setting(&self, key: &str) -> &str {
        self.settings.get(key).map_or("", String::as_str)
    }

    /// Runs the job. Returns the numbers of failed map and reduce attempts, or the task that failed too
    /// often.
    fn run(&self) -> Result<[usize; 2], String> {
        fs::create_dir_all(&self.output).expect("a folder for the output");
        let lines = fs::read_to_string(&self.input).expect("the input");
        let mut partitions: Vec<Vec<Record>> = (0..self.reduces).map(|_| Vec::new()).collect();
        let mut failed = [0, 0];
        let mut at = 0;
        for (task, line) in lines.lines().enumerate() {
            let given = format!("{at}\t{line}\n");
            at += line.len() + 1;
            let written = self.task(("m", task), &self.mapper, given.as_bytes(), &mut failed[0])?;
            if self.reduces == 0 {
                assert_eq!(self.setting("stream.map.output"), "text");
                self.write(&format!("part-{task:05}"), &written);
                continue;
            }
            assert_eq!(self.setting("stream.map.output"), "typedbytes");
            for record in records::read(&written) {
                partitions[record.partition(self.reduces)].push(record);
            }
        }
        eprintln!("INFO mapreduce.Job:  map 100% reduce 0%");
        for (task, mut of_it) in partitions.into_iter().enumerate() {
            of_it.sort_by(|a, b| a.key.cmp(&b.key));
            let given: Vec<u8> = of_it.iter().flat_map(Record::bytes).collect();
            let command = self
                .reducer
                .as_ref()
                .expect("a job with reduces has a command for them");
            let written = self.task(("r", task), command, &given, &mut failed[1])?;
            // Output of a reduce without input is dropped, as in Hadoop's PipeMapRed.
            let kept = if of_it.is_empty() {
                Vec::new()
            } else {
                written
            };
            self.write(&format!("part-{task:05}"), &kept);
        }
        self.write("_SUCCESS", b"");
        Ok(failed)
    }

    /// Writes text as Hadoop does, with the tab before an empty value.
    fn write(&self, name: &str, bytes: &[u8]) {
        let text = String::from_utf8(bytes.to_vec())
            .expect("text")
            .replace('\n', "\t\n");
        fs::write(self.output.join(name), text).expect("a part can be written");
    }

    fn task(
        &self,
        (kind, task): (&str, usize),
        command: &str,
        given: &[u8],
        failed: &mut usize,
    ) -> Result<Vec<u8>, String> {
        let name = format!("attempt_emulated_0001_{kind}_{task:06}");
        let key = if kind == "m" {
            "mapreduce.map.maxattempts"
        } else {
            "mapreduce.reduce.maxattempts"
        };
        let attempts: usize = self.setting(key).parse().expect("a number of attempts");
        for attempt in 0..attempts {
            let place = self.work.join(format!("{name}_{attempt}"));
            fs::create_dir_all(&place).expect("a folder for the attempt");
            for file in &self.files {
                let name = file.file_name().expect("a name");
                symlink(
                    fs::canonicalize(file).expect("a file that is there"),
                    place.join(name),
                )
                .expect("a link");
            }
            let words: Vec<&str> = command.split(' ').collect();
            let mut child = Command::new(place.join(words[0]))
                .args(&words[1..])
                .env("mapreduce_task_attempt_id", format!("{name}_{attempt}"))
                .env("mapreduce_task_partition", task.to_string())
                .current_dir(&place)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the command can be run");
            let mut input = child.stdin.take().expect("a pipe");
            let ended = std::thread::scope(|scope| {
                // The command may end before it has read all of its input; its status is checked below.
                scope.spawn(move || input.write_all(given));
                child.wait_with_output().expect("its end")
            });
            if ended.status.success() {
                return Ok(ended.stdout);
            }
            *failed += 1;
        }
        Err(name)
    }
}

/// Returns the path of a URI.
fn path(uri: &str) -> PathBuf {
    let coded = uri.strip_prefix("file://").expect("a file");
    let mut bytes = Vec::new();
    let mut rest = coded.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().expect("a digit"), rest.next().expect("a digit")];
                let digits = str::from_utf8(&digits).expect("text");
                bytes.push(u8::from_str_radix(digits, 16).expect("hexadecimal"));
            }
            other => bytes.push(other),
        }
    }
    PathBuf::from(String::from_utf8(bytes).expect("text"))
}
