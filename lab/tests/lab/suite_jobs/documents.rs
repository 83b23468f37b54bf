//! Jobs over the words of documents: short lines, ties, empty files.

#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/inverted_index.rs"]
mod inverted_index;
#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/ranked_inverted_index.rs"]
mod ranked_inverted_index;
#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/sequence_count.rs"]
mod sequence_count;
#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/term_vector.rs"]
mod term_vector;

use napreduce::testing::{JobTest, assert_preemption_safe};

use super::{check, data, reference, sizes, test};

const TERM_VECTOR: fn() -> napreduce::Job = || term_vector::term_vector(&());
const INVERTED_INDEX: fn() -> napreduce::Job = || inverted_index::inverted_index(&());
const SEQUENCE_COUNT: fn() -> napreduce::Job = || sequence_count::sequence_count(&());
const RANKED: fn() -> napreduce::Job = || ranked_inverted_index::ranked_inverted_index(&());

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn term_vectors_match_the_reference() {
    for texts in sizes().into_iter().flat_map(|bytes| [data::texts(bytes, 2), data::texts(bytes, 10)]) {
        check(TERM_VECTOR, &texts, &reference::term_vector(&texts));
    }
}

#[test]
fn frequent_words_are_sorted_by_count_then_word() {
    let texts = owned(&["", &"b a ".repeat(10), &format!("{} z\n{}", "c ".repeat(11), "d ".repeat(9))]);
    assert_eq!(
        test(TERM_VECTOR, &texts).run().text(),
        "input-0001\ta:10\ninput-0001\tb:10\ninput-0002\tc:11\n"
    );
    check(TERM_VECTOR, &texts, &reference::term_vector(&texts));
}

#[test]
fn indexes_match_the_reference() {
    for texts in sizes().into_iter().flat_map(|bytes| [data::texts(bytes, 1), data::texts(bytes, 12)]) {
        check(INVERTED_INDEX, &texts, &reference::inverted_index(&texts));
    }
}

#[test]
fn sequences_and_ranks_match_the_reference() {
    for bytes in sizes() {
        let texts = data::texts(bytes, 3);
        let counts = reference::sequence_count(&texts);
        check(SEQUENCE_COUNT, &texts, &counts);
        check(RANKED, std::slice::from_ref(&counts), &reference::ranked_inverted_index(&counts));
    }
}

#[test]
fn short_line_has_no_sequence() {
    let texts = owned(&["a\n\na b\n  \nc", "a b c\n", ""]);
    assert_eq!(test(SEQUENCE_COUNT, &texts).run().text(), "a|b|c|input-0001\t1\n");
    check(SEQUENCE_COUNT, &texts, &reference::sequence_count(&texts));
}

#[test]
fn documents_of_equal_count_are_sorted_by_name() {
    let counts = "a|b|c|two\t3\na|b|c|one\t3\na|b|c|all\t10\nx|y|z|one\t1\n";
    let expected = "a|b|c\t10|all\na|b|c\t3|one\na|b|c\t3|two\nx|y|z\t1|one\n";
    assert_eq!(JobTest::new(RANKED).input(counts).run().text(), expected);
    check(RANKED, &owned(&[counts]), &reference::ranked_inverted_index(counts));
}

#[test]
#[should_panic(expected = "expected WORD|WORD|WORD|DOCUMENT, a tab and a count, but found \"a|b|c\\tmany\"")]
fn invalid_sequence_is_quoted() {
    let _ = JobTest::new(RANKED).input("a|b|c\tmany\n").run();
}

#[test]
fn document_jobs_are_preemption_safe() {
    let texts = owned(&["to be or not to be\nto\n", &"nap ".repeat(12), "be or not\n"]);
    for job in [TERM_VECTOR, INVERTED_INDEX, SEQUENCE_COUNT] {
        test(job, &texts).split_size(12).assert_preemption_safe();
    }
    assert_preemption_safe(RANKED, "a|b|c|two\t3\na|b|c|one\t3\nx|y|z|one\t1\n");
}
