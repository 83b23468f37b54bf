//! Jobs inside a program that has an async runtime, signal handlers and children of its own.
//! `fixture/host.rs` is that program.

use crate::scenario::Scenario;

#[test]
fn jobs_run_side_by_side_without_disturbing_their_program() {
    let host = Scenario::new(&["a b", "b c"]);
    let ended = host.run_host();
    ended.assert_success();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    for succeeded in [0, 1, 2, 3, 8, 9] {
        let output = host.path(&format!("out-{succeeded}"));
        assert_eq!(
            std::fs::read_to_string(output.join("part-r-00000")).expect("a part"),
            "a\t1\nb\t2\nc\t1\n"
        );
        assert_eq!(
            crate::scenario::names(&output),
            ["_SUCCESS", "part-r-00000"]
        );
    }
    for left_out in [4, 5, 6, 7] {
        assert!(
            !host.path(&format!("out-{left_out}")).exists(),
            "job {left_out} left its output"
        );
    }
}
