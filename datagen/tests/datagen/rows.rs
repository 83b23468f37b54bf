//! Generated rows: amounts, files and contents of movies, centroids, associations and graphs.

use datagen::Watch;
use datagen::associations::{self, AssociationsSettings};
use datagen::centroids::{self, CentroidsError, CentroidsSettings};
use datagen::graph::{self, GraphSettings};
use datagen::movies::{self, MoviesSettings};
use datagen::output::{FileNames, OutputSettings, WrittenFiles};
use datagen::rows::{Amount, RowsError};
use datagen::text::{self, TextSettings};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

type Generator = fn(Amount, u64, OutputSettings) -> Result<WrittenFiles, RowsError>;

const GENERATORS: [(&str, Generator); 3] = [
    ("movies", |amount, seed, output| {
        movies::generate(&MoviesSettings {
            seed,
            raters: 3000,
            ..MoviesSettings::new(amount, output)
        })
    }),
    ("associations", |amount, seed, output| {
        associations::generate(&AssociationsSettings {
            seed,
            ..AssociationsSettings::new(amount, output)
        })
    }),
    ("graph", |amount, seed, output| {
        graph::generate(&GraphSettings {
            seed,
            vertices: 500,
            ..GraphSettings::new(amount, output)
        })
    }),
];

/// Returns the text of each file.
fn generate(
    generator: Generator,
    amount: Amount,
    change: impl FnOnce(&mut OutputSettings),
) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let mut output = OutputSettings::new(directory.path().join("in"));
    change(&mut output);
    let written = generator(amount, 7, output).unwrap();
    let texts: Vec<String> = written
        .files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect();
    assert_eq!(
        texts.iter().map(String::len).sum::<usize>() as u64,
        written.bytes
    );
    texts
}

#[test]
fn rows_match_the_amount_in_rows_or_bytes() {
    for (name, generator) in GENERATORS {
        let all = generate(generator, Amount::Rows(2000), |_| {}).concat();
        for rows in [0, 1, 511, 512, 513, 1999] {
            let some = generate(generator, Amount::Rows(rows), |_| {}).concat();
            assert!(
                all.starts_with(&some) && some.lines().count() as u64 == rows,
                "{rows} of {name}"
            );
        }
        for bytes in [0, 1, 100, 8191, all.len() as u64] {
            let some = generate(generator, Amount::Bytes(bytes), |_| {}).concat();
            assert!(
                all.starts_with(&some) && some.len() as u64 >= bytes,
                "{bytes} bytes of {name}"
            );
            let last = some
                .trim_end_matches('\n')
                .rfind('\n')
                .map_or(0, |at| at + 1);
            assert!(
                bytes == 0 && some.is_empty() || (last as u64) < bytes,
                "{bytes} bytes of {name}"
            );
            assert!(some.is_empty() || some.ends_with('\n'), "{name}");
        }
    }
}

#[test]
fn rows_are_independent_of_threads_and_files() {
    for (name, generator) in GENERATORS {
        let whole = generate(generator, Amount::Bytes(200_000), |output| {
            output.threads = 1
        })
        .concat();
        for (files, threads) in [(1, 3), (2, 1), (7, 2), (300, 3)] {
            let parts = generate(generator, Amount::Bytes(200_000), |output| {
                (output.files, output.threads) = (files, threads);
            });
            assert!(
                parts.concat() == whole,
                "{name}: {files} files by {threads} threads"
            );
            assert!(
                parts
                    .iter()
                    .all(|part| part.is_empty() || part.ends_with('\n')),
                "{name}"
            );
        }
    }
}

#[test]
fn rows_match_pinned_checksums() {
    // Different rows would be another data format: older data sets could not be reproduced.
    let checksums = GENERATORS.map(|(name, generator)| {
        (
            name,
            crc32fast::hash(
                generate(generator, Amount::Rows(1000), |_| {})
                    .concat()
                    .as_bytes(),
            ),
        )
    });
    assert_eq!(checksums, PINNED);
}

const PINNED: [(&str, u32); 3] = [
    ("movies", 418_732_338),
    ("associations", 765_122_747),
    ("graph", 1_411_217_631),
];

#[test]
fn movies_have_distinct_raters_and_valid_ratings() {
    let text = generate(GENERATORS[0].1, Amount::Rows(1000), |_| {}).concat();
    let mut means = BTreeSet::new();
    let mut lengths = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let (movie, reviews) = line.split_once(':').unwrap();
        assert_eq!(movie, (number + 1).to_string());
        let pairs: Vec<(u32, u32)> = reviews
            .split(',')
            .map(|review| review.split_once('_').unwrap())
            .map(|(rater, rating)| (rater.parse().unwrap(), rating.parse().unwrap()))
            .collect();
        let raters: BTreeSet<u32> = pairs.iter().map(|(rater, _)| *rater).collect();
        assert!(
            raters.len() == pairs.len() && raters.iter().all(|rater| *rater < 3000),
            "{line}"
        );
        assert!(
            pairs.iter().all(|(_, rating)| (1..=5).contains(rating)),
            "{line}"
        );
        let sum: u32 = pairs.iter().map(|(_, rating)| rating).sum();
        means.insert(sum * 2 / pairs.len() as u32);
        *lengths.entry(pairs.len()).or_insert(0) += 1;
    }
    assert_eq!(means.len(), 9, "all bins from 1.5 to 5.5: {means:?}");
    assert!(
        lengths[&1] > 100 && *lengths.keys().last().unwrap() > 500,
        "few and many reviews: {lengths:?}"
    );
}

#[test]
fn associations_are_sorted_and_share_prefixes() {
    let text = generate(GENERATORS[1].1, Amount::Rows(50_000), |_| {}).concat();
    let mut sharing: BTreeMap<&str, u32> = BTreeMap::new();
    for line in text.lines() {
        let items: Vec<&str> = line.split(',').collect();
        assert!(
            items.len() == 4 && items.is_sorted() && items.iter().all(|item| item.len() == 4),
            "{line}"
        );
        *sharing.entry(line.rsplit_once(',').unwrap().0).or_default() += 1;
    }
    let mean = 50_000 / sharing.len();
    assert!(
        (7..=9).contains(&mean),
        "{mean} associations share a prefix"
    );
    assert!(
        *sharing.values().max().unwrap() < 40,
        "a prefix is shared too often"
    );
}

#[test]
fn graph_has_no_loops_and_skewed_degrees() {
    let text = generate(GENERATORS[2].1, Amount::Rows(20_000), |_| {}).concat();
    let mut degrees = [vec![0; 500], vec![0; 500]];
    for line in text.lines() {
        let (from, to) = line.split_once(',').unwrap();
        assert_ne!(from, to);
        degrees[0][from.parse::<usize>().unwrap()] += 1;
        degrees[1][to.parse::<usize>().unwrap()] += 1;
    }
    for degree in degrees {
        assert!(
            degree.iter().max().unwrap() > &400 && degree.iter().min().unwrap() < &40,
            "{degree:?}"
        );
    }
}

#[test]
fn generators_out_of_range_settings_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let output = || OutputSettings::new(directory.path().join("in"));
    let ten = Amount::Rows(10);
    let message = |result: Result<WrittenFiles, RowsError>| result.unwrap_err().to_string();
    let no_raters = movies::generate(&MoviesSettings {
        raters: 0,
        ..MoviesSettings::new(ten, output())
    });
    assert_eq!(
        message(no_raters),
        "invalid number of raters: 0; choose 1 to 4294967295"
    );
    let steep = MoviesSettings {
        reviews_exponent: 11.0,
        ..MoviesSettings::new(ten, output())
    };
    assert_eq!(
        message(movies::generate(&steep)),
        "invalid exponent: 11; choose 0 to 10"
    );
    let few = AssociationsSettings {
        items: 3,
        ..AssociationsSettings::new(ten, output())
    };
    assert_eq!(
        message(associations::generate(&few)),
        "invalid number of items: 3; choose 4 to 4294967295"
    );
    let alone = GraphSettings {
        vertices: 1,
        ..GraphSettings::new(ten, output())
    };
    assert_eq!(
        message(graph::generate(&alone)),
        "invalid number of vertices: 1; choose 2 to 4294967295"
    );
    assert!(!directory.path().join("in").exists());
}

#[test]
fn documents_are_named_and_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings {
        files: 2,
        names: FileNames::Documents,
        ..OutputSettings::new(directory.path())
    };
    for overwrite in [false, true] {
        let output = OutputSettings {
            overwrite,
            ..output.clone()
        };
        text::generate(&TextSettings {
            vocabulary: 10,
            ..TextSettings::new(500, output)
        })
        .unwrap();
    }
    let names = ["document-00000.txt", "document-00001.txt"];
    let mut found: Vec<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|file| file.unwrap().file_name())
        .collect();
    found.sort();
    assert_eq!(found, names);
}

fn draw(movies: &Path, clusters: u32, seed: u64) -> Result<String, CentroidsError> {
    let file = movies.with_extension("centroids");
    let settings = CentroidsSettings {
        movies: vec![movies.to_owned()],
        clusters,
        seed,
        file: file.clone(),
        overwrite: true,
        watch: Watch::default(),
    };
    centroids::generate(&settings).map(|()| fs::read_to_string(file).unwrap())
}

#[test]
fn centroids_are_movies_in_descending_order() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("movies");
    let text = generate(GENERATORS[0].1, Amount::Rows(300), |_| {}).concat();
    fs::write(&path, &text).unwrap();
    let drawn = draw(&path, 16, 1).unwrap();
    let mut last = u64::MAX;
    for (k, line) in drawn.lines().enumerate() {
        let fields: Vec<&str> = line.split(' ').collect();
        assert_eq!(fields[..2], [k.to_string().as_str(), "0"]);
        let movie = fields[2].parse::<u64>().unwrap();
        let whole = text.lines().nth(movie as usize - 1).unwrap();
        let reviews = whole.split_once(':').unwrap().1;
        assert_eq!(fields[3], reviews.split(',').count().to_string());
        assert!(
            movie < last
                && reviews.starts_with(fields[4])
                && whole.len().min(990) <= fields[4].len() + 10,
            "{line}"
        );
        last = movie;
    }
    assert_eq!(drawn.lines().count(), 16);
    assert_eq!(draw(&path, 16, 1).unwrap(), drawn);
    assert_ne!(draw(&path, 16, 2).unwrap(), drawn);
}

#[test]
fn centroids_invalid_movies_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("movies");
    fs::write(&path, "1:1_5\n2:\n3:4_4\n").unwrap();
    assert_eq!(draw(&path, 2, 1).unwrap(), "0 0 3 1 4_4\n1 0 1 1 1_5\n");
    let message = |clusters| draw(&path, clusters, 1).unwrap_err().to_string();
    assert_eq!(message(0), "invalid number of centroids 0; choose 1 to 16");
    let few =
        "too few movies for 3 centroids: 2 have reviews; pass --clusters 2 or give more movies";
    assert_eq!(message(3), few);
    fs::write(&path, "1:1_5\nnot a movie\n").unwrap();
    let invalid = message(1);
    assert!(
        invalid.starts_with("/")
            && invalid.ends_with(
                ", line 2: not a movie; expected MOVIE:RATER_RATING,... with a number as the movie"
            ),
        "{invalid}"
    );
    fs::remove_file(&path).unwrap();
    assert!(message(1).starts_with("cannot read "), "{}", message(1));
}
