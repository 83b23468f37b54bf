//! Task processes that fail in every possible way, and the effect on the job. The tests of the engine cover
//! the counting of failures.

use crate::scenario::Scenario;

const WORDS: [&str; 2] = ["a b c a", "b c"];
const COUNTS: &str = "a\t2\nb\t2\nc\t2\n";

#[test]
fn job_counts_words() {
    let job = Scenario::new(&WORDS).with("reduces=2");
    let ended = job.run();
    ended.assert_success();
    assert_eq!(job.counts(), COUNTS);
    assert_eq!(
        job.output_names(),
        ["_SUCCESS", "part-r-00000", "part-r-00001"]
    );
    assert_eq!(ended.counter("MAP_INPUT_RECORDS"), 6);
    assert_eq!(ended.counter("words seen"), 6);
    assert_eq!(ended.counter("TOTAL_LAUNCHED_MAPS"), 2);
    assert_eq!(ended.counter("TOTAL_LAUNCHED_REDUCES"), 2);
    assert_eq!(ended.counter("NUM_FAILED_MAPS"), 0);
    assert!(ended.counter("PEAK_ANON_BYTES") > 0);
    assert_eq!(ended.stderr, "");
}

#[test]
fn map_only_job_writes_a_part_per_map() {
    let job = Scenario::new(&WORDS)
        .with("reduces=0")
        .with("extension=txt");
    job.run().assert_success();
    assert_eq!(
        job.output_names(),
        ["_SUCCESS", "part-m-00000.txt", "part-m-00001.txt"]
    );
}

#[test]
fn job_without_input_writes_empty_parts() {
    let job = Scenario::new(&[]).with("reduces=2");
    job.run().assert_success();
    assert_eq!(job.counts(), "");
    assert_eq!(
        job.output_names(),
        ["_SUCCESS", "part-r-00000", "part-r-00001"]
    );
}

#[test]
fn killed_map_is_retried() {
    let job = Scenario::new(&WORDS).pause("m_0001.1", "work");
    let running = job.start();
    running.moment().kill();
    let ended = running.end();
    ended.assert_success();
    assert_eq!(job.counts(), COUNTS);
    assert_eq!(ended.counter("NUM_FAILED_MAPS"), 1);
    assert_eq!(ended.counter("TOTAL_LAUNCHED_MAPS"), 3);
    assert_eq!(
        ended.counter("words seen"),
        6,
        "the killed attempt must not be counted"
    );
}

#[test]
fn reduce_killed_after_writing_is_retried() {
    let job = Scenario::new(&WORDS).pause("r_0000.1", "written");
    let running = job.start();
    running.moment().kill();
    let ended = running.end();
    ended.assert_success();
    assert_eq!(job.counts(), COUNTS);
    assert_eq!(ended.counter("NUM_FAILED_REDUCES"), 1);
    assert_eq!(job.output_names(), ["_SUCCESS", "part-r-00000"]);
}

#[test]
fn task_killed_every_time_fails_job() {
    let job = Scenario::new(&WORDS)
        .pause("*", "work")
        .with("slots=1")
        .with("attempts_max=2");
    let running = job.start();
    running.moment().kill();
    running.moment().kill();
    let reason = "job_0001_m_0000 failed 2 times; last: host: process ended by signal 9 (SIGKILL)";
    running.end().assert_failure(1, &[reason]);
    assert!(!job.output().exists());
}

#[test]
fn panic_error_names_message_and_positions() {
    let job = Scenario::new(&["a b c a", "good rows BAD rows"]);
    let ended = job.run();
    let input = job.path("in/1.txt");
    let reading = format!(", reading {} byte 10", input.display());
    let place = "panicked at 'bad row', runtime/local/fixture/body.rs:";
    ended.assert_failure(
        1,
        &["job_0001_m_0001 failed 4 times; last: ", place, &reading],
    );
    assert_eq!(job.output_names(), [""; 0]);
}

#[test]
fn panicked_reduce_is_retried() {
    let job = Scenario::new(&WORDS).rule("r_0000.1 work panic not yet");
    let ended = job.run();
    ended.assert_success();
    assert_eq!(ended.counter("NUM_FAILED_REDUCES"), 1);
    assert_eq!(job.counts(), COUNTS);
}

#[test]
fn exit_in_user_code_fails_attempt() {
    let job = Scenario::new(&WORDS)
        .rule("m_0000.1 work exit 0")
        .rule("m_0000.2 work exit 3");
    let ended = job.run();
    ended.assert_success();
    assert_eq!(ended.counter("NUM_FAILED_MAPS"), 2);

    let job = Scenario::new(&WORDS)
        .rule("* work exit 3")
        .with("attempts_max=1");
    job.run().assert_failure(
        1,
        &["failed 1 time; last: process exited with status 3 before finishing"],
    );
}

#[test]
fn abort_in_user_code_is_reported() {
    let job = Scenario::new(&WORDS)
        .rule("* work abort")
        .with("attempts_max=1");
    job.run()
        .assert_failure(1, &["process ended by signal 6 (SIGABRT)"]);
}

#[test]
fn fatal_error_is_not_retried() {
    let job = Scenario::new(&WORDS)
        .rule("m_0000.1 work fatal no space")
        .with("slots=1");
    let ended = job.run();
    ended.assert_failure(1, &["job_0001_m_0000 is not retried: no space"]);
}

#[test]
fn job_error_lists_different_reasons() {
    let job = Scenario::new(&WORDS)
        .rule("m_0000.1 work fail first")
        .rule("m_0000.2 work fail second")
        .rule("m_0000.3 work fail second")
        .with("attempts_max=3");
    let text = "job_0001_m_0000 failed 3 times; last: second; before: first (1 time)";
    job.run().assert_failure(1, &[text]);
}

#[test]
fn unknown_definition_is_not_retried() {
    let job = Scenario::new(&WORDS).with("definition=other");
    job.run()
        .assert_failure(1, &["no job definition is called other"]);
}

#[test]
fn lost_segment_reruns_only_its_map() {
    let job = Scenario::new(&["a", "b", "c"]);
    let segment = job
        .output()
        .join("_temporary/*/shuffle/job_0001_m_0001.1.segment");
    let job = job.rule(&format!("r_0000.1 work remove {}", segment.display()));
    let ended = job.run();
    ended.assert_success();
    assert_eq!(job.counts(), "a\t1\nb\t1\nc\t1\n");
    assert_eq!(ended.counter("TOTAL_LAUNCHED_MAPS"), 4);
    assert_eq!(ended.counter("TOTAL_LAUNCHED_REDUCES"), 2);
    assert_eq!(
        ended.counter("words seen"),
        3,
        "the first attempt of the map does not count"
    );
}

#[test]
fn task_output_goes_to_standard_error() {
    let job = Scenario::new(&["a"]).rule("* work print hello from a task");
    let ended = job.run();
    ended.assert_success();
    assert!(ended.stderr.contains("hello from a task"));
    assert!(!ended.stdout.contains("hello from a task"));
}

#[test]
fn task_receives_its_identity() {
    let job = Scenario::new(&["a"])
        .rule("m_0000.1 work environment")
        .with("attempts_max=1");
    let input = job.path("in/0.txt");
    let text = format!(
        "job_0001 job_0001_m_0000 job_0001_m_0000.1 {}",
        input.display()
    );
    job.run().assert_failure(1, &[&text]);

    let job = Scenario::new(&["a"])
        .rule("r_0000.1 work environment")
        .with("attempts_max=1");
    job.run()
        .assert_failure(1, &["job_0001 job_0001_r_0000 job_0001_r_0000.1 none"]);
}

#[test]
fn peak_task_memory_is_counted() {
    let job = Scenario::new(&["a", "b"]).rule("m_0001.1 work hold 100");
    let ended = job.run();
    ended.assert_success();
    let peak = ended.counter("PEAK_ANON_BYTES");
    assert!((100 << 20..150 << 20).contains(&peak), "{peak}");
}

#[test]
fn jobs_of_one_program_are_numbered() {
    let job = Scenario::new(&WORDS).with("jobs=3").with("overwrite=yes");
    let ended = job.run();
    ended.assert_success();
    assert_eq!(ended.outcome()["job"], "job_0003");
}
