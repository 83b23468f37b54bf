//! A job without a command line. The test is a program of its own, since an embedded job runs its own
//! executable for each task.

use std::fs;
use std::path::Path;

use napreduce::program::Error;
use napreduce::{Emit, Job, Program, words};

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

fn main() -> Result<(), Error> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedded");
    let (input, output) = (folder.join("in"), folder.join("out"));
    let text = Program::new().job("count", count).run(&output, |driver| -> Result<String, Error> {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(&input, "to be or\nnot to be that is\n").expect("an input");
        let report = driver.job("count").parameters(&2_usize).inputs([&input]).reduces(1).run()?;
        assert_eq!(report.counters.get("MAP_INPUT_RECORDS"), 2);
        let again = driver.job("count").parameters(&2_usize).inputs([&input]).run();
        let error = again.expect_err("the output is there").to_string();
        assert!(error.contains("exists"), "{error}");
        driver.read_text(&output)
    })?;
    assert_eq!(text, "be\t2\nis\t1\nnot\t1\nor\t1\nthat\t1\nto\t2\n");
    Ok(())
}
