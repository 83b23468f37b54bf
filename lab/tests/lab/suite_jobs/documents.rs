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
use inverted_index::inverted_index;
use ranked_inverted_index::ranked_inverted_index;
use sequence_count::sequence_count;
use term_vector::term_vector;

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn term_vectors_match_the_reference() {
    for texts in sizes()
        .into_iter()
        .flat_map(|bytes| [data::texts(bytes, 2), data::texts(bytes, 10)])
    {
        check(term_vector, &texts, &reference::term_vector(&texts));
    }
}

#[test]
fn frequent_words_are_sorted_by_count_then_word() {
    let texts = owned(&[
        "",
        &"b a ".repeat(10),
        &format!("{} z\n{}", "c ".repeat(11), "d ".repeat(9)),
    ]);
    assert_eq!(
        test(term_vector, &texts).run().text(),
        "input-0001\ta:10\ninput-0001\tb:10\ninput-0002\tc:11\n"
    );
    check(term_vector, &texts, &reference::term_vector(&texts));
}

#[test]
fn indexes_match_the_reference() {
    for texts in sizes()
        .into_iter()
        .flat_map(|bytes| [data::texts(bytes, 1), data::texts(bytes, 12)])
    {
        check(inverted_index, &texts, &reference::inverted_index(&texts));
    }
}

#[test]
fn sequences_and_ranks_match_the_reference() {
    for bytes in sizes() {
        let texts = data::texts(bytes, 3);
        let counts = reference::sequence_count(&texts);
        check(sequence_count, &texts, &counts);
        check(
            ranked_inverted_index,
            std::slice::from_ref(&counts),
            &reference::ranked_inverted_index(&counts),
        );
    }
}

#[test]
fn short_line_has_no_sequence() {
    let texts = owned(&["a\n\na b\n  \nc", "a b c\n", ""]);
    assert_eq!(
        test(sequence_count, &texts).run().text(),
        "a|b|c|input-0001\t1\n"
    );
    check(sequence_count, &texts, &reference::sequence_count(&texts));
}

#[test]
fn documents_of_equal_count_are_sorted_by_name() {
    let counts = "a|b|c|two\t3\na|b|c|one\t3\na|b|c|all\t10\nx|y|z|one\t1\n";
    let expected = "a|b|c\t10|all\na|b|c\t3|one\na|b|c\t3|two\nx|y|z\t1|one\n";
    assert_eq!(
        JobTest::new(ranked_inverted_index)
            .input(counts)
            .run()
            .text(),
        expected
    );
    check(
        ranked_inverted_index,
        &owned(&[counts]),
        &reference::ranked_inverted_index(counts),
    );
}

#[test]
#[should_panic(
    expected = "expected WORD|WORD|WORD|DOCUMENT, a tab and a count, but found \"a|b|c\\tmany\""
)]
fn invalid_sequence_is_quoted() {
    let _ = JobTest::new(ranked_inverted_index)
        .input("a|b|c\tmany\n")
        .run();
}

#[test]
fn document_jobs_are_preemption_safe() {
    let texts = owned(&[
        "to be or not to be\nto\n",
        &"nap ".repeat(12),
        "be or not\n",
    ]);
    test(term_vector, &texts)
        .split_size(12)
        .assert_preemption_safe();
    test(inverted_index, &texts)
        .split_size(12)
        .assert_preemption_safe();
    test(sequence_count, &texts)
        .split_size(12)
        .assert_preemption_safe();
    assert_preemption_safe(
        ranked_inverted_index,
        "a|b|c|two\t3\na|b|c|one\t3\nx|y|z|one\t1\n",
    );
}
