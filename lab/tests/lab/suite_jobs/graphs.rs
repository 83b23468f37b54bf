//! Jobs over associations, edges and matches: lines without a comma, repeated lines, too many neighbours,
//! ties.

#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/adjacency_list.rs"]
mod adjacency_list;
#[allow(dead_code, reason = "only its jobs are of interest here, not its main")]
#[path = "../../../src/bin/suite/count_matches.rs"]
mod count_matches;
#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/self_join.rs"]
mod self_join;

use napreduce::testing::{JobTest, assert_preemption_safe};

use super::{check, data, reference, same, sizes, test};
use adjacency_list::adjacency_list;
use count_matches::{Search, by_count};
use self_join::self_join;

const TWO_NEIGHBOURS: fn() -> napreduce::Job = || adjacency_list::with_at_most(2);

#[test]
fn joins_match_the_reference() {
    for bytes in sizes() {
        let texts = data::associations(bytes);
        check(self_join, &texts, &reference::self_join(&texts[0]));
    }
}

#[test]
fn repeated_associations_and_lines_without_a_comma_are_skipped() {
    let text = "a,b,d\nnothing\na,b,c\na,b,d\n\na,x,y\n,q\n,p\n";
    let output = JobTest::new(self_join).input(text).run();
    assert_eq!(output.text(), "\tp,q\na,b\tc,d\n");
    assert_eq!(output.counters.get("lines without a comma"), 2);
    check(self_join, &[text.to_owned()], &reference::self_join(text));
}

#[test]
fn neighbours_match_the_reference() {
    for bytes in sizes() {
        let texts = data::edges(bytes);
        check(
            adjacency_list,
            &texts,
            &reference::adjacency_list(&texts[0], 200_000),
        );
        check(
            TWO_NEIGHBOURS,
            &texts,
            &reference::adjacency_list(&texts[0], 2),
        );
    }
}

#[test]
fn neighbours_are_unique_and_bounded() {
    let text = "a,b\nc,b\na,b\nd,b\nalone\nb,a\n";
    let output = JobTest::new(TWO_NEIGHBOURS).input(text).run();
    let expected = "a\tfrom{b}:to{b}\nb\tfrom{a,c}:to{a}\nc\tfrom{}:to{b}\nd\tfrom{}:to{b}\n";
    assert_eq!(
        (
            output.text().as_str(),
            output.counters.get("lines without a comma")
        ),
        (expected, 1)
    );
}

/// Runs both jobs, the second one on the output of the first.
fn ranked(texts: &[String], search: &Search) -> String {
    let counted = test(|| count_matches::count(search), texts)
        .split_size(100_000)
        .reduces(3)
        .for_next_job()
        .run();
    let ranked = counted
        .parts
        .iter()
        .fold(JobTest::new(by_count), JobTest::input);
    ranked.run().text()
}

#[test]
fn matches_match_the_reference() {
    for bytes in sizes() {
        let texts = data::texts(bytes, 1);
        for (pattern, group) in [
            ("[aeiou]{2}", 0),
            ("(t|n)([a-z])", 2),
            ("never found: [0-9]", 0),
        ] {
            let search = Search {
                pattern: pattern.to_owned(),
                group,
            };
            same(
                &ranked(&texts, &search),
                &reference::matches(&texts[0], pattern, group),
            );
        }
    }
}

#[test]
fn match_jobs_are_preemption_safe() {
    let search = || Search {
        pattern: "[ab]+|(c)".to_owned(),
        group: 1,
    };
    assert_preemption_safe(|| count_matches::count(&search()), "ab c\nc\nabab c c\n");
    let counted = JobTest::new(|| {
        count_matches::count(&Search {
            group: 0,
            ..search()
        })
    })
    .input("ab c\nc\nba\n")
    .for_next_job()
    .run();
    assert_preemption_safe(by_count, counted.parts.concat());
}

#[test]
fn graph_jobs_are_preemption_safe() {
    assert_preemption_safe(self_join, "a,b,d\nnothing\na,b,c\na,b,d\na,x,y\n");
    assert_preemption_safe(TWO_NEIGHBOURS, "a,b\nc,b\na,b\nd,b\nb,a\n");
}
