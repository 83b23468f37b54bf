//! Checks where features of third-party crates are enabled. Cargo builds a workspace with the union of all
//! features, so a member can work there and behave differently as a dependency of a user. Also checks the
//! tables of features for users.

use super::files::{SourceFile, Violation};
use std::collections::BTreeSet;
use toml::{Table, Value};

/// Features that only add items: code that needs a missing one does not compile. Any other feature belongs in
/// the workspace table, so that every member has it.
const ADD_ITEMS: [(&str, &str); 18] = [
    ("bincode", "serde"),
    ("hyper-util", "client-legacy"),
    ("lz4_flex", "frame"),
    ("lzma-rust2", "encoder"),
    ("num-rational", "num-bigint-std"),
    ("object_store", "aws-base"),
    ("object_store", "azure-base"),
    ("object_store", "cloud-base"),
    ("object_store", "gcp-base"),
    ("parquet", "zstd"),
    ("rustix", "param"),
    ("rustix", "stdio"),
    ("rustix", "system"),
    ("rustix", "termios"),
    ("rustls-pki-types", "std"),
    ("syn", "extra-traits"),
    ("tokio", "test-util"),
    ("toml", "display"),
];

pub fn for_all_members(files: &[SourceFile]) -> Vec<Violation> {
    let manifests = files
        .iter()
        .filter(|file| file.path.ends_with("Cargo.toml"));
    manifests.flat_map(switched_on_alone).collect()
}

fn switched_on_alone(file: &SourceFile) -> Vec<Violation> {
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![file.at(0, format!("cannot be parsed: {error}"))],
    };
    // Excludes the workspace itself and crates that are built separately.
    if manifest.contains_key("workspace") {
        return Vec::new();
    }
    let mut named = Vec::new();
    collect(&manifest, &mut named);
    let is_ours = |name: &str| name.starts_with("napreduce") || name == "datagen";
    let alone = named.into_iter().filter(|(name, feature)| {
        !is_ours(name) && !ADD_ITEMS.contains(&(name.as_str(), feature.as_str()))
    });
    let what = "is switched on for one member; do so for all in the workspace's Cargo.toml";
    alone
        .map(|(name, feature)| file.at(0, format!("feature {feature} of {name} {what}")))
        .collect()
}

/// Collects the dependencies and features of a manifest table, including those of some targets.
fn collect(table: &Table, named: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let Value::Table(inner) = value else { continue };
        if key == "features" {
            let switched = inner
                .values()
                .filter_map(Value::as_array)
                .flatten()
                .filter_map(Value::as_str);
            let others = switched.filter_map(|entry| entry.split_once('/'));
            named.extend(others.map(|(name, feature)| {
                (name.trim_end_matches('?').to_owned(), feature.to_owned())
            }));
        } else if key.ends_with("dependencies") {
            for (name, dependency) in inner {
                let features = dependency
                    .get("features")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten();
                named.extend(
                    features
                        .filter_map(Value::as_str)
                        .map(|feature| (name.clone(), feature.to_owned())),
                );
            }
        } else {
            collect(inner, named);
        }
    }
}

/// Pages with a table of features: names (with "(default)" behind those that are on), what they add, and the
/// crates that they compile.
const TABLES: [&str; 2] = ["framework/README.md", "framework/src/lib.rs"];

/// Features that no program names.
const INTERNAL: [&str; 2] = ["default", "storage"];

/// The tables for users list every feature of `napreduce` once, with the crates that it compiles besides those
/// that every program compiles.
pub fn tables_match_manifest(files: &[SourceFile]) -> Vec<Violation> {
    let manifest = |path: &str| {
        files
            .iter()
            .find(|file| file.path == path)?
            .text
            .parse::<Table>()
            .ok()
    };
    let Some(features) = manifest("framework/Cargo.toml").map(Features::new) else {
        return Vec::new();
    };
    let connectors = manifest("framework/connectors/Cargo.toml")
        .map(Features::new)
        .unwrap_or_default();
    let pages = files
        .iter()
        .filter(|file| TABLES.contains(&file.path.as_str()));
    pages
        .flat_map(|page| wrong_rows(page, &features, &connectors))
        .collect()
}

/// The features of a crate, and the crates that it compiles without them.
#[derive(Default)]
struct Features {
    entries: Table,
    always: BTreeSet<String>,
}

impl Features {
    fn new(manifest: Table) -> Features {
        let table = |name| {
            manifest
                .get(name)
                .and_then(Value::as_table)
                .cloned()
                .unwrap_or_default()
        };
        let is_optional = |dependency: &Value| dependency.get("optional").is_some();
        let always = table("dependencies")
            .into_iter()
            .filter(|(_, dependency)| !is_optional(dependency));
        Features {
            entries: table("features"),
            always: always.map(|(name, _)| name).collect(),
        }
    }

    fn entries(&self, feature: &str) -> impl Iterator<Item = &str> {
        self.entries
            .get(feature)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// Collects the crates that a feature compiles.
    fn collect_crates(&self, feature: &str, connectors: &Features, found: &mut BTreeSet<String>) {
        for entry in self.entries(feature) {
            if let Some(name) = entry.strip_prefix("dep:") {
                found.insert(name.to_owned());
            } else if let Some(feature) = entry.strip_prefix("napreduce-connectors/") {
                connectors.collect_crates(feature, connectors, found);
            } else if !entry.contains('/') {
                self.collect_crates(entry, connectors, found);
            }
        }
    }
}

fn wrong_rows(page: &SourceFile, features: &Features, connectors: &Features) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut missing: BTreeSet<&str> = features.entries.keys().map(String::as_str).collect();
    missing.retain(|name| !INTERNAL.contains(name));
    let lines = page
        .text
        .lines()
        .map(|line| line.trim_start_matches("//! "))
        .enumerate();
    let table = lines
        .skip_while(|(_, line)| !line.starts_with("| feature |"))
        .skip(2);
    for (index, line) in table.take_while(|(_, line)| line.starts_with('|')) {
        let mut at = |what| violations.push(page.at(index + 1, what));
        let [_, names, _, crates, _] = line.split('|').collect::<Vec<_>>()[..] else {
            at("a row of features has three columns".to_owned());
            continue;
        };
        let mut compiled = BTreeSet::new();
        for name in in_backticks(names) {
            if !missing.remove(name) {
                at(format!("`{name}` is not a feature, or listed twice"));
            }
            if features.entries("default").any(|default| default == name)
                != names.contains("(default)")
            {
                at(format!(
                    "`{name}` is (default) either here or in Cargo.toml"
                ));
            }
            features.collect_crates(name, connectors, &mut compiled);
        }
        compiled.retain(|name| !features.always.contains(name));
        let listed: BTreeSet<String> = in_backticks(crates).map(str::to_owned).collect();
        if listed != compiled {
            at(format!("the crates of {} are {compiled:?}", names.trim()));
        }
    }
    violations.extend(
        missing
            .into_iter()
            .map(|name| page.at(0, format!("the feature `{name}` is missing"))),
    );
    violations
}

/// Returns the texts between backticks.
fn in_backticks(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

    #[test]
    fn table_of_features_must_match_the_manifest() {
        let wrong = |rows: &str| {
            let files = [
                SourceFile::sample(
                    "framework/Cargo.toml",
                    "[features]\ndefault = [\"cli\"]\ncli = [\"dep:clap\"]\n\
                     csv = [\"napreduce-connectors/csv\"]\n[dependencies]\nserde = \"1\"\n",
                ),
                SourceFile::sample(
                    "framework/connectors/Cargo.toml",
                    "[features]\ncsv = [\"dep:csv\", \"dep:serde\"]\n",
                ),
                SourceFile::sample(
                    "framework/src/lib.rs",
                    &format!("//! | feature | adds | compiles |\n//! |---|---|---|\n{rows}"),
                ),
            ];
            let violations = tables_match_manifest(&files).into_iter();
            violations
                .map(|violation| violation.what)
                .collect::<Vec<_>>()
        };
        let cli = "//! | `cli` (default) | flags | `clap` |\n";
        let csv = "//! | `csv` | rows | `csv` |\n";
        assert_eq!(wrong(&format!("{cli}{csv}")), [""; 0]);
        assert_eq!(wrong(cli), ["the feature `csv` is missing"]);
        assert_eq!(
            wrong(&format!("{cli}{csv}{csv}")),
            ["`csv` is not a feature, or listed twice"]
        );
        assert_eq!(
            wrong(&format!("{cli}{}", csv.replace("| `csv` |\n", "| |\n"))),
            ["the crates of `csv` are {\"csv\"}"]
        );
        assert_eq!(
            wrong(&format!("{}{csv}", cli.replace(" (default)", ""))),
            ["`cli` is (default) either here or in Cargo.toml"]
        );
    }

    #[test]
    fn feature_of_one_member_is_refused_unless_additive() {
        let lab = |text: &str| SourceFile::sample("lab/Cargo.toml", text);
        for text in [
            "[dependencies]\nserde_json = { workspace = true, features = [\"float_roundtrip\"] }",
            "[dev-dependencies.serde_json]\nworkspace = true\nfeatures = [\"float_roundtrip\"]",
            "[target.'cfg(unix)'.build-dependencies]\nserde_json = { version = \"1\", features = [\"float_roundtrip\"] }",
            "[features]\nexact = [\"serde_json?/float_roundtrip\"]",
        ] {
            check_caught(
                for_all_members,
                lab(text),
                "feature float_roundtrip of serde_json is switched on for one",
            );
        }
        check_caught(for_all_members, lab("[dependencies"), "cannot be parsed");
        check_passes(
            for_all_members,
            lab("[dependencies]\ntoml = { workspace = true, features = [\"display\"] }"),
        );
        check_passes(
            for_all_members,
            lab("[features]\ns3 = [\"napreduce/s3\", \"dep:bytes\", \"stores\"]"),
        );
        let table = "[workspace.dependencies]\nserde_json = { version = \"1\", features = [\"float_roundtrip\"] }";
        check_passes(for_all_members, SourceFile::sample("Cargo.toml", table));
    }
}
