//! Commands as mappers and reducers in real task loops.

use std::num::NonZeroU32;

use napreduce::streaming::{CommandMapper, CommandReducer, Commands, job};
use napreduce::testing::JobTest;
use napreduce::{Emit, Job};

fn commands(mapper: &str, reducer: &str) -> impl Fn() -> Job + use<> {
    let commands = Commands {
        reducer: Some(reducer.to_owned()),
        ..Commands::mapper(mapper)
    };
    move || job(&commands)
}

fn mapped(command: &str) -> impl Fn() -> Job + use<> {
    let commands = Commands::mapper(command);
    move || job(&commands)
}

/// Returns the error of a failing job.
fn failure(test: JobTest<impl Fn() -> Job>) -> String {
    let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test.run()));
    let panic = ended.expect_err("the job fails");
    panic.downcast_ref::<String>().expect("a text").clone()
}

#[test]
fn command_maps_and_reduces_lines() {
    let output = JobTest::new(mapped("cat")).input("b\ta\n\nlast").run();
    assert_eq!(output.text(), "b\ta\n\nlast\n");
    assert_eq!(output.counters.get("MAP_INPUT_RECORDS"), 3);
    assert_eq!(output.counters.get("MAP_OUTPUT_RECORDS"), 3);
}

#[test]
fn records_are_sorted_by_key_bytes() {
    let output = JobTest::new(commands("cat", "cat"))
        .input("b\t2\n\u{e9}\t4\nb\t1\na\tx\ty\nB\n")
        .run();
    assert_eq!(output.text(), "B\t\na\tx\ty\nb\t2\nb\t1\n\u{e9}\t4\n");
    assert_eq!(output.counters.get("REDUCE_INPUT_GROUPS"), 4);
}

#[test]
fn lines_may_be_any_bytes() {
    let every: Vec<u8> = (0..=255).filter(|byte| !b"\n\r\t".contains(byte)).collect();
    let line = [&every[..], b"\t", &every[..]].concat();
    let output = JobTest::new(commands("cat", "cat")).input(&line).run();
    assert_eq!(output.parts[0], [&line[..], b"\n"].concat());
}

#[test]
fn every_attempt_runs_one_command() {
    let output = JobTest::new(commands("wc -l", "wc -l"))
        .input("a\nb\n")
        .input("")
        .reduces(2)
        .run();
    let lines: Vec<String> = output
        .parts
        .iter()
        .map(|part| String::from_utf8_lossy(part).trim().to_owned())
        .collect();
    assert_eq!(
        lines.len(),
        2,
        "a reduce without records has its command, too: {lines:?}"
    );
    let read: u32 = lines
        .iter()
        .map(|line| line.parse::<u32>().expect("a number"))
        .sum();
    assert_eq!(read, 1, "an empty file is no split; the other one is");
}

#[test]
fn large_input_and_output_do_not_deadlock() {
    let line = "x".repeat(1_000) + "\n";
    let much = line.repeat(2_000);
    let output = JobTest::new(mapped(
        "while read -r line; do echo \"$line$line$line\"; done",
    ))
    .input(&much)
    .run();
    assert_eq!(output.parts[0].len(), 2_000 * 3_001);
    // One command writes all output before it reads; the other reads all input before it writes.
    let writes_first = "head -c 3000000 /dev/zero | tr '\\0' '\\n'; cat > /dev/null";
    assert_eq!(
        JobTest::new(mapped(writes_first)).input(&much).run().parts[0].len(),
        3_000_000
    );
    let reads_first = "cat > /dev/null; head -c 3000000 /dev/zero | tr '\\0' '\\n'";
    assert_eq!(
        JobTest::new(mapped(reads_first)).input(&much).run().parts[0].len(),
        3_000_000
    );
}

#[test]
fn command_may_ignore_rest_of_input() {
    let much = "line\n".repeat(500_000);
    let output = JobTest::new(mapped("head -n 2")).input(&much).run();
    assert_eq!(output.text(), "line\nline\n");
    assert_eq!(output.counters.get("MAP_INPUT_RECORDS"), 500_000);
    let closes = "exec < /dev/null; echo said; echo more";
    assert_eq!(
        JobTest::new(mapped(closes)).input(&much).run().text(),
        "said\nmore\n"
    );
    assert_eq!(
        JobTest::new(commands("cat", "head -n 1"))
            .input(&much)
            .run()
            .text(),
        "line\t\n"
    );
}

#[test]
fn broken_pipe_ends_writer_inside_command() {
    assert_eq!(
        JobTest::new(mapped("yes | head -n 3"))
            .input("x\n")
            .run()
            .text(),
        "y\ny\ny\n"
    );
}

#[test]
fn command_and_rust_can_be_combined() {
    let mapper = || {
        Job::bytes()
            .map(|line: &[u8], out: &mut Emit<Vec<u8>, Vec<u8>>| {
                line.split(|byte| *byte == b' ')
                    .for_each(|word| out.emit(word, b"1"));
            })
            .reducer(CommandReducer::new("cut -f 1 | uniq -c | sed 's/^ *//'"))
    };
    assert_eq!(
        JobTest::new(mapper)
            .input("to be or\nnot to be")
            .run()
            .text(),
        "2 be\n1 not\n1 or\n2 to\n"
    );
    let reducer = || {
        Job::bytes()
            .mapper(CommandMapper::new("tr ' ' '\\n'"))
            .reduce(|word, values, out| out.emit(word, values.count()))
    };
    assert_eq!(
        JobTest::new(reducer)
            .input("to be or\nnot to be")
            .run()
            .text(),
        "be\t2\nnot\t1\nor\t1\nto\t2\n"
    );
}

#[test]
fn failed_command_is_named_with_status() {
    for (test, says) in [
        (
            JobTest::new(commands("exit 3", "cat")),
            "the mapper `exit 3` exited with status 3",
        ),
        (
            JobTest::new(commands("cat", "cat; exit 4")),
            "the reducer `cat; exit 4` exited with status 4",
        ),
        (
            JobTest::new(commands("kill -9 $$", "cat")),
            "the mapper `kill -9 $$` was killed by signal 9 (SIGKILL)",
        ),
        (
            JobTest::new(commands("no-such-program-here", "cat")),
            "exited with status 127 (command not found)",
        ),
        (
            JobTest::new(commands("/", "cat")),
            "the mapper `/` exited with status 126",
        ),
        (
            JobTest::new(commands("head -n 1; exit 5", "cat")),
            "exited with status 5",
        ),
    ] {
        let message = failure(test.input("a\tb\n".repeat(100_000)));
        assert!(message.contains(says), "{says}: {message}");
    }
    let message = failure(JobTest::new(mapped("exit 6")).input("a\n"));
    assert!(
        message.contains("the mapper `exit 6` exited with status 6"),
        "{message}"
    );
}

#[test]
fn endless_line_is_rejected_at_task_memory() {
    let endless = "tr '\\0' x < /dev/zero";
    let says = format!("`{endless}` wrote a line longer than 1048576 bytes");
    let message = failure(
        JobTest::new(mapped(endless))
            .input("a\n")
            .task_memory(1 << 20),
    );
    assert!(message.contains(&says), "{message}");
    let message = failure(
        JobTest::new(commands("cat", endless))
            .input("a\n")
            .task_memory(1 << 20),
    );
    assert!(message.contains(&says), "{message}");
}

#[test]
fn command_jobs_are_suspend_safe() {
    let lines = "b 1\na 2\nb 3\na 4\n";
    let test = |mapper: &str, reducer: &str| JobTest::new(commands(mapper, reducer)).input(lines);
    test("tr ' ' '\\t'", "cat").assert_suspend_safe();
    // The shell stops itself on request and resumes. A `wait` that a signal interrupts returns a status of
    // its own, which must not be the last one if the child has ended meanwhile.
    let stops = "trap 'kill -STOP $$' TSTP; exec 3<&0; tr ' ' '\\t' <&3 & while kill -0 $!; do wait $!; done 2> /dev/null; true";
    test(stops, stops).assert_suspend_safe();
    JobTest::new(mapped("trap '' TSTP; cat"))
        .input(lines)
        .assert_suspend_safe();
}

#[test]
fn total_order_over_command_is_rejected() {
    let job = || {
        Job::bytes()
            .mapper(CommandMapper::new("cat"))
            .total_order()
            .reduce(|word, values, out| out.emit(word, values.count()))
    };
    let message = failure(JobTest::new(job).input("a\n").reduces(2));
    assert!(
        message.contains("`cat` cannot be sampled for a total order"),
        "{message}"
    );
}

fn combining(mapper: &str, combiner: &str) -> impl Fn() -> Job + use<> {
    let [mapper, combiner] = [mapper, combiner].map(str::to_owned);
    let commands = Commands {
        combiner: Some(combiner),
        reducer: Some(SUM.to_owned()),
        ..Commands::mapper(mapper)
    };
    move || job(&commands)
}

/// Adds up the numbers of each key; the lines of a key are adjacent.
const SUM: &str = r#"awk -F '\t' 'NR > 1 && $1 != k { print k "\t" n; n = 0 } { k = $1; n += $2 } END { if (NR) print k "\t" n }'"#;
const WORDS: &str = r#"tr -s ' ' '\n' | awk '{ print $1 "\t1" }' # words"#;

#[test]
fn combiner_reads_sorted_output_of_each_map() {
    let input = "to be or not to be\nto nap\n";
    let test = |job| {
        JobTest::new(job)
            .input(input)
            .input("be\n")
            .combine_files(false)
    };
    let output = JobTest::new(combining(WORDS, SUM))
        .input(input)
        .input("be\n")
        .combine_files(false)
        .run();
    assert_eq!(output.text(), "be\t3\nnap\t1\nnot\t1\nor\t1\nto\t3\n");
    let plain = test(commands(WORDS, SUM)).run();
    assert_eq!(output.parts, plain.parts);
    // Five words of the first file and one of the second.
    assert_eq!(output.counters.get("MAP_OUTPUT_RECORDS"), 6);
    assert_eq!(plain.counters.get("MAP_OUTPUT_RECORDS"), 9);
}

#[test]
fn failing_mapper_or_combiner_fails_task() {
    for (mapper, combiner, status) in [
        ("cat; exit 3", "cat", "3"),
        ("cat", "cat; exit 4", "4"),
        ("exit 5", "exit 6", "6"),
    ] {
        let failed = failure(JobTest::new(combining(mapper, combiner)).input("a\t1\n"));
        assert!(
            failed.contains(&format!("exited with status {status}")),
            "{mapper}, {combiner}: {failed}"
        );
    }
}

#[test]
fn failed_combiner_is_named_without_script() {
    for (mapper, combiner, says) in [
        (
            "cat",
            "cat; exit 4",
            "the combiner `cat; exit 4` exited with status 4",
        ),
        (
            "cat; exit 3",
            "cat",
            "the mapper `cat; exit 3` exited with status 3",
        ),
        (
            "cat",
            "no-such-program-here",
            "the combiner `no-such-program-here` exited with status 127",
        ),
        (
            "sh -c 'kill -9 $$'",
            "cat",
            "the mapper `sh -c 'kill -9 $$'` exited with status 137",
        ),
    ] {
        let failed = failure(JobTest::new(combining(mapper, combiner)).input("a\t1\n"));
        assert!(failed.contains(says), "{mapper}, {combiner}: {failed}");
        assert!(!failed.contains("LC_ALL"), "{failed}");
    }
}

#[test]
fn pipefail_fails_task() {
    let documented = "bash -o pipefail -c 'cat | false | cat'";
    let failed = failure(JobTest::new(commands(documented, "cat")).input("a\n"));
    assert!(failed.contains("exited with status 1"), "{failed}");
}

#[test]
fn combiner_may_ignore_rest_of_input() {
    let many = "a\t1\n".repeat(200_000);
    let output = JobTest::new(combining("cat", "head -n 1"))
        .input(&many)
        .run();
    assert_eq!(output.text(), "a\t1\n");
}

#[test]
fn command_increments_counters_on_stderr() {
    let script = |name: &str| {
        format!(
            "while read -r line; do echo \"$line\"; echo reporter:counter:Words,{name},2 >&2; done; echo a note >&2"
        )
    };
    let output = JobTest::new(commands(&script("mapped"), &script("reduced")))
        .input("a\nb\na\n")
        .run();
    let counted = ["Words: mapped", "Words: reduced"].map(|name| output.counters.get(name));
    assert_eq!(counted, [6, 6]);
}

fn divided(key_fields: u32, partition_fields: u32) -> impl Fn() -> Job {
    let fields = |fields| NonZeroU32::new(fields).expect("not 0");
    let key_fields = fields(key_fields);
    let partition_fields = Some(fields(partition_fields));
    let reducer = Some("cat".to_owned());
    move || {
        job(&Commands {
            reducer: reducer.clone(),
            key_fields,
            partition_fields,
            ..Commands::mapper("cat")
        })
    }
}

#[test]
fn partition_fields_select_reduce() {
    let line = |number: u32| format!("{}\t{:03}\t{number}\n", number % 23, (number * 37) % 101);
    let input: String = (0..500).map(line).collect();
    let output = JobTest::new(divided(2, 1)).input(&input).reduces(5).run();
    let mut all = Vec::new();
    let mut used = 0;
    for part in &output.parts {
        let lines: Vec<&str> = str::from_utf8(part).expect("text").lines().collect();
        let keys: Vec<&str> = lines
            .iter()
            .map(|line| line.rsplit_once('\t').expect("three fields").0)
            .collect();
        assert!(keys.is_sorted(), "{keys:?}");
        let mut first: Vec<&str> = keys
            .iter()
            .map(|key| key.split('\t').next().expect("a field"))
            .collect();
        first.dedup();
        used += usize::from(!first.is_empty());
        all.extend(first);
    }
    // Each first field is in one part only, with all its lines.
    all.sort_unstable();
    let mut expected: Vec<String> = (0..23).map(|number| number.to_string()).collect();
    expected.sort_unstable();
    assert_eq!(all, expected);
    assert!(used > 1, "all in one part");
}

#[test]
fn command_may_write_much_to_stderr() {
    let output = JobTest::new(mapped(
        "cat; head -c 300000 /dev/zero | tr '\\0' '\\n' | sed s/^/reporter:counter:Many,lines,1/ >&2",
    ));
    let output = output.input("a\n").run();
    assert_eq!(
        (output.text().as_str(), output.counters.get("Many: lines")),
        ("a\n", 300_000)
    );
}
