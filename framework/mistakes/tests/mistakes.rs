//! Compiler errors for common mistakes; the expected text is in the `.stderr` files.
//!
//! After a change run `TRYBUILD=overwrite cargo test -p napreduce-mistakes` and review the diff.

#[test]
fn compile_errors_name_remedy() {
    let cases = trybuild::TestCases::new();
    for mistake in [
        "closure_that_captures_an_rc",
        "closure_that_changes_a_capture",
        "count_of_a_key_without_text",
        "emit_of_another_value",
        "emit_without_types",
        "field_that_is_not_serde",
        "flat_map_of_another_type",
        "group_that_does_not_begin_the_key",
        "input_that_is_no_format",
        "job_that_is_not_returned",
        "join_of_rows_without_keys",
        "key_without_the_trait",
        "loop_over_values_of_text",
        "map_of_another_record",
        "map_only_that_emits",
        "map_that_returns_a_value",
        "output_that_is_no_format",
        "reducer_of_another_group",
        "reducer_of_another_output",
        "state_that_is_not_resumable",
        "sum_of_text",
        "text_of_a_struct",
        "value_without_the_trait",
    ] {
        cases.compile_fail(format!("tests/mistakes/{mistake}.rs"));
    }
}
