//! Generated text: exact size, line lengths, determinism and word frequencies.

use datagen::output::OutputSettings;
use datagen::text::{self, TextError, TextSettings, Vocabulary};
use proptest::prelude::*;
use std::collections::HashMap;
use std::fs;

/// Generates text with `change` applied to the settings of a small vocabulary; returns the text of each file.
fn generate(bytes: u64, change: impl FnOnce(&mut TextSettings)) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings::new(directory.path().join("in"));
    let mut settings = TextSettings {
        vocabulary: 2000,
        ..TextSettings::new(bytes, output)
    };
    change(&mut settings);
    let written = text::generate(&settings).unwrap();
    assert_eq!(written.bytes, bytes);
    written
        .files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap())
        .collect()
}

#[test]
fn text_matches_pinned_checksum() {
    // Different bytes would be another data format: older data sets could not be reproduced.
    let text = generate(300_000, |settings| settings.vocabulary = 200_000).concat();
    assert_eq!(
        text.lines().next().unwrap(),
        "uk rasul u educavef vuhekug uk iwem elimakegah dofi uk nurupud buz zekolag tijico"
    );
    assert_eq!(crc32fast::hash(text.as_bytes()), 0x2e69_1d07);
}

#[test]
fn text_lines_have_60_to_100_bytes() {
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
fn text_word_frequencies_follow_zipf() {
    let text = generate(3_000_000, |_| {}).concat();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for word in text.split_ascii_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    let vocabulary = Vocabulary::new(2000);
    let total: u32 = counts.values().sum();
    assert!(
        counts.len() <= 2000 && counts.len() > 1950,
        "{} different words",
        counts.len()
    );
    let weights: f64 = (1..=2000).map(|rank| f64::from(rank).powf(-1.05)).sum();
    // Words at the ends of the 64 KiB chunks are chosen by length, so short words are slightly too frequent.
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
fn text_is_independent_of_threads_and_files() {
    let whole = generate(2_500_000, |settings| settings.output.threads = 1);
    assert_eq!(whole.len(), 1);
    for (files, threads) in [(1, 3), (2, 1), (7, 2), (1000, 3)] {
        let parts = generate(2_500_000, |settings| {
            settings.output.files = files;
            settings.output.threads = threads;
        });
        assert!(
            parts.concat() == whole[0],
            "{files} files by {threads} threads"
        );
        // Files have nearly equal sizes: each ends with the line that contains the end of its share.
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
fn text_depends_on_the_seed() {
    let [first, again, other] =
        [1, 1, 2].map(|seed| generate(10_000, |settings| settings.seed = seed).concat());
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[test]
fn text_out_of_range_settings_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let output = OutputSettings::new(directory.path().join("in"));
    let settings = TextSettings::new(10, output);
    let result = text::generate(&TextSettings {
        vocabulary: 1,
        ..settings.clone()
    });
    assert!(
        matches!(result, Err(TextError::Vocabulary { words: 1 })),
        "{result:?}"
    );
    let result = text::generate(&TextSettings {
        exponent: f64::NAN,
        ..settings
    });
    assert!(
        matches!(result, Err(TextError::Exponent { .. })),
        "{result:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn text_of_any_size_is_exact(bytes in prop_oneof![0u64..600, 65_000u64..66_500], words in 2u32..40, files in 1u32..5) {
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
