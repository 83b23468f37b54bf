//! Generated text: exact size, line lengths, determinism, and frequencies of words.
//!
//! Owns what `text::generate` writes. Words and the distribution by themselves are tested where they are
//! defined.

use datagen::output::OutputSettings;
use datagen::text::{self, TextError, TextSettings, Vocabulary};
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs;

/// Generates with `change` applied to the standard settings of a small vocabulary; returns the text of each
/// file.
fn generate(bytes: u64, change: impl FnOnce(&mut TextSettings)) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings::new(directory.path().join("in"));
    let mut settings = TextSettings { vocabulary: 2000, ..TextSettings::new(bytes, output) };
    change(&mut settings);
    let written = text::generate(&settings).unwrap();
    assert_eq!(written.bytes, bytes);
    written.files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn the_text_is_pinned() {
    // A change of these bytes is a change of the data format: everybody's old data would stop being
    // reproducible.
    let text = generate(300_000, |settings| settings.vocabulary = 200_000).concat();
    assert_eq!(
        text.lines().next().unwrap(),
        "uk rasul u educavef vuhekug uk iwem elimakegah dofi uk nurupud buz zekolag tijico"
    );
    assert_eq!(crc32fast::hash(text.as_bytes()), 0x2e69_1d07);
}

#[test]
fn lines_have_sixty_to_a_hundred_bytes_of_words() {
    let text = generate(1_000_000, |_| {}).concat();
    assert_eq!(text.len(), 1_000_000);
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        assert!((60..=100).contains(&(line.len() + 1)), "{line:?}");
        assert!(
            line.split(' ')
                .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase()))
        );
    }
}

#[test]
fn words_are_the_vocabulary_in_zipf_proportion() {
    let text = generate(3_000_000, |_| {}).concat();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for word in text.split_ascii_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    let vocabulary = Vocabulary::new(2000);
    let total: u32 = counts.values().sum();
    assert!(counts.len() <= 2000 && counts.len() > 1950, "{} different words", counts.len());
    let weights: f64 = (1..=2000).map(|rank| f64::from(rank).powf(-1.05)).sum();
    // The ends of the 64 KiB chunks are filled by length, so short frequent words are a little over.
    for rank in [0u32, 3, 9, 99, 999] {
        let expected = f64::from(total) * f64::from(rank + 1).powf(-1.05) / weights;
        let counted = f64::from(counts.get(vocabulary.word(rank)).copied().unwrap_or(0));
        assert!(
            (counted - expected).abs() < 5.0 * expected.sqrt(),
            "rank {rank}: {counted}, expected {expected}"
        );
    }
}

#[test]
fn the_number_of_threads_and_files_changes_nothing() {
    let whole = generate(2_500_000, |settings| settings.output.threads = 1);
    assert_eq!(whole.len(), 1);
    for (files, threads) in [(1, 3), (2, 1), (7, 2), (1000, 3)] {
        let parts = generate(2_500_000, |settings| {
            settings.output.files = files;
            settings.output.threads = threads;
        });
        assert!(parts.concat() == whole[0], "{files} files by {threads} threads");
        // Files are alike in size: each ends with the line that its share ends in.
        let share = 2_500_000 / files as usize;
        for part in &parts {
            assert!(
                part.ends_with('\n') && part.len().abs_diff(share) <= 101,
                "{} bytes of {share}",
                part.len()
            );
        }
    }
}

#[test]
fn the_seed_chooses_the_text() {
    let [first, again, other] =
        [1, 1, 2].map(|seed| generate(10_000, |settings| settings.seed = seed).concat());
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn wrong_settings_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings::new(directory.path().join("in"));
    let settings = TextSettings::new(10, output);
    let refused = text::generate(&TextSettings { vocabulary: 1, ..settings.clone() });
    assert!(matches!(refused, Err(TextError::Vocabulary { words: 1 })), "{refused:?}");
    let refused = text::generate(&TextSettings { exponent: f64::NAN, ..settings });
    assert!(matches!(refused, Err(TextError::Exponent { .. })), "{refused:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_size_ends_exactly(bytes in prop_oneof![0u64..600, 65_000u64..66_500], words in 2u32..40, files in 1u32..5) {
        let text = generate(bytes, |settings| {
            settings.vocabulary = words;
            settings.output.files = files;
        }).concat();
        prop_assert_eq!(text.len() as u64, bytes);
        prop_assert!(bytes == 0 || text.ends_with('\n'));
        for line in text.lines() {
            prop_assert!(line.len() < 100 && !line.ends_with(' ') && !line.starts_with(' '), "{:?}", line);
        }
    }
}
