//! Jobs over movies: no reviews, no common rater, clusters without members, invalid lines.

#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/classification.rs"]
mod classification;
#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/histogram_movies.rs"]
mod histogram_movies;
#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/histogram_ratings.rs"]
mod histogram_ratings;
#[allow(dead_code, reason = "only its job is of interest here, not its main")]
#[path = "../../../src/bin/suite/kmeans_movies.rs"]
mod kmeans_movies;

use napreduce::testing::{JobTest, assert_preemption_safe};
use napreduce_lab::records::Centroids;

use super::{check, check_with, data, reference, sizes};
use classification::classification;
use kmeans_movies::kmeans;

/// Two centroids with raters 1 and 2, and one with a rater that no movie has.
const CENTROIDS: &str = "0 0 30 2 1_5,2_1\n1 0 20 2 1_1,2_5\n2 0 10 1 99_3\n";

#[test]
fn histograms_match_the_reference() {
    for bytes in sizes() {
        let texts = data::movies(bytes);
        check(
            histogram_movies::histogram,
            &texts,
            &reference::histogram_movies(&texts[0]),
        );
        check(
            histogram_ratings::histogram,
            &texts,
            &reference::histogram_ratings(&texts[0]),
        );
    }
}

#[test]
fn bins_end_above_their_means() {
    let text = "1:1_5\n2:1_3,2_4\n3:1_3,2_3,3_4\n4:\n5:7_5,8_5\n";
    let output = JobTest::new(histogram_movies::histogram).input(text).run();
    assert_eq!(output.text(), "3.5\t1\n4.0\t1\n5.5\t2\n");
    assert_eq!(output.counters.get("movies without reviews"), 1);
    assert_eq!(
        JobTest::new(histogram_ratings::histogram)
            .input(text)
            .run()
            .text(),
        "3\t3\n4\t2\n5\t3\n"
    );
}

#[test]
fn clusters_and_classes_match_the_reference() {
    for bytes in sizes() {
        let texts = data::movies(bytes);
        let centroids = data::centroids(&texts[0]);
        let files = [("centroids", centroids.as_str())];
        check_with(
            &files,
            kmeans,
            &texts,
            &reference::kmeans(&texts[0], &centroids),
        );
        check_with(
            &files,
            classification,
            &texts,
            &reference::classification(&texts[0], &centroids),
        );
    }
}

#[test]
fn movie_joins_the_first_of_the_nearest_centroids() {
    let text = "7:1_4,2_1\n8:1_2,2_5\n9:50_5\n6:1_3\n5:\n";
    let test = |job: fn() -> napreduce::Job| {
        JobTest::new(job)
            .input(text)
            .side_file("centroids", CENTROIDS)
    };
    assert_eq!(
        test(classification).run().text(),
        "0\t7\n0\t9\n0\t6\n0\t5\n1\t8\n"
    );
    // The mean of cluster 0 is about 0.5, to which 0 is closer than 1; cluster 2 is empty.
    let output = test(kmeans).run().text();
    assert_eq!(output, reference::kmeans(text, CENTROIDS));
    let centroids: Vec<&str> = output.lines().filter(|line| !line.contains('\t')).collect();
    assert_eq!(centroids.len(), 2, "{output}");
    assert!(
        centroids[1].starts_with("1 0.9") && centroids[1].ends_with(" 8 2 1_2,2_5"),
        "{output}"
    );
}

#[test]
fn reviews_of_a_centroid_end_at_a_comma() {
    let reviews: Vec<String> = (0..400).map(|rater| format!("{rater}_3")).collect();
    let text = format!("1:{}\n", reviews.join(","));
    let line = napreduce_lab::records::centroid(4, 0.5, text.trim_end()).unwrap();
    let kept = line.strip_prefix("4 0.5 1 400 ").unwrap();
    assert!(
        text.starts_with(&format!("1:{kept},")) && (998..1005).contains(&kept.len()),
        "{line}"
    );
}

#[test]
fn invalid_centroids_and_movies_are_quoted() {
    let refused = |text: &str| Centroids::parse(text).unwrap_err();
    assert_eq!(refused(""), "expected 1 to 16 centroids, but found 0");
    assert_eq!(
        refused(&"0 0 1 1 1_1\n".repeat(17)),
        "expected 1 to 16 centroids, but found 17"
    );
    assert_eq!(
        refused("0 0 1 1 1_1\n2 0 1 1 1_1\n"),
        "line 2 of the centroids: expected 1 SIMILARITY MOVIE COUNT REVIEWS"
    );
    let wrong = refused("0 0 1 1 1_9\n");
    assert!(
        wrong
            .ends_with("movie 1: expected RATER_RATING with a rating of 1 to 5, but found \"1_9\""),
        "{wrong}"
    );
    for (line, expected) in [
        (
            "no movie",
            "expected MOVIE:RATER_RATING,..., but found \"no movie\"",
        ),
        ("1:2", "found \"2\""),
        ("1:2_3,", "found \"\""),
    ] {
        let read = napreduce_lab::records::Movie::parse(line)
            .and_then(|movie| movie.reviews().collect::<Result<Vec<_>, _>>());
        assert!(
            read.as_ref().is_err_and(|error| error.contains(expected)),
            "{line}: {read:?}"
        );
    }
}

#[test]
fn movie_jobs_are_preemption_safe() {
    let text = "7:1_4,2_1\n8:1_2,2_5\n9:50_5\n6:1_3\n5:\n";
    assert_preemption_safe(histogram_movies::histogram, text);
    assert_preemption_safe(histogram_ratings::histogram, text);
    for job in [classification, kmeans] {
        JobTest::new(job)
            .input(text)
            .side_file("centroids", CENTROIDS)
            .assert_preemption_safe();
    }
}
