//! Generated data, with generator settings for small sizes.

use datagen::Watch;
use datagen::associations::{self, AssociationsSettings};
use datagen::centroids::{self, CentroidsSettings};
use datagen::graph::{self, GraphSettings};
use datagen::movies::{self, MoviesSettings};
use datagen::output::{OutputSettings, WrittenFiles};
use datagen::rows::Amount;
use datagen::text::{self, TextSettings};

fn made(generate: impl FnOnce(OutputSettings) -> WrittenFiles) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let written = generate(OutputSettings::new(folder.path().join("data")));
    written
        .files
        .iter()
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect()
}

/// Returns the documents. Tests of jobs name them `input-0000` and so on.
pub fn texts(bytes: u64, documents: u32) -> Vec<String> {
    made(|output| {
        let output = OutputSettings {
            files: documents,
            ..output
        };
        text::generate(&TextSettings {
            vocabulary: 400,
            ..TextSettings::new(bytes, output)
        })
        .unwrap()
    })
}

pub fn movies(bytes: u64) -> Vec<String> {
    made(|output| {
        let settings = MoviesSettings::new(Amount::Bytes(bytes), output);
        movies::generate(&MoviesSettings {
            raters: 2000,
            reviews_exponent: 1.3,
            ..settings
        })
        .unwrap()
    })
}

pub fn associations(bytes: u64) -> Vec<String> {
    made(|output| {
        let settings = AssociationsSettings::new(Amount::Bytes(bytes), output);
        associations::generate(&AssociationsSettings {
            items: 100,
            arity: 3,
            ..settings
        })
        .unwrap()
    })
}

pub fn edges(bytes: u64) -> Vec<String> {
    made(|output| {
        let settings = GraphSettings::new(Amount::Bytes(bytes), output);
        graph::generate(&GraphSettings {
            vertices: 1000,
            ..settings
        })
        .unwrap()
    })
}

/// Centroids from the movies, as many as possible.
pub fn centroids(movies: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["movies", "centroids"].map(|name| folder.path().join(name));
    std::fs::write(&from, movies).unwrap();
    let clusters = movies.lines().count().min(16) as u32;
    let settings = CentroidsSettings {
        movies: vec![from],
        clusters,
        seed: 1,
        file: to.clone(),
        overwrite: false,
        watch: Watch::default(),
    };
    centroids::generate(&settings).unwrap();
    std::fs::read_to_string(to).unwrap()
}
