//! Checks where features of third-party crates are enabled. Cargo builds a workspace with the union of all
//! features, so a member can work there and behave differently as a dependency of a user.

use super::files::{SourceFile, Violation};
use toml::{Table, Value};

/// Features that only add items: code that needs a missing one does not compile. Any other feature belongs in
/// the workspace table, so that every member has it.
const ADD_ITEMS: [(&str, &str); 16] = [
    ("bincode", "serde"),
    ("clap", "env"),
    ("hyper-util", "client-legacy"),
    ("lz4_flex", "frame"),
    ("lzma-rust2", "encoder"),
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
    ("toml", "display"),
];

pub fn for_all_members(files: &[SourceFile]) -> Vec<Violation> {
    let manifests = files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
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
    let alone = named
        .into_iter()
        .filter(|(name, feature)| !is_ours(name) && !ADD_ITEMS.contains(&(name.as_str(), feature.as_str())));
    let what = "is switched on for one member; do so for all in the workspace's Cargo.toml";
    alone.map(|(name, feature)| file.at(0, format!("feature {feature} of {name} {what}"))).collect()
}

/// Collects the dependencies and features of a manifest table, including those of some targets.
fn collect(table: &Table, named: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let Value::Table(inner) = value else { continue };
        if key == "features" {
            let switched = inner.values().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
            let others = switched.filter_map(|entry| entry.split_once('/'));
            named.extend(
                others.map(|(name, feature)| (name.trim_end_matches('?').to_owned(), feature.to_owned())),
            );
        } else if key.ends_with("dependencies") {
            for (name, dependency) in inner {
                let features = dependency.get("features").and_then(Value::as_array).into_iter().flatten();
                named.extend(
                    features.filter_map(Value::as_str).map(|feature| (name.clone(), feature.to_owned())),
                );
            }
        } else {
            collect(inner, named);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

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
        check_passes(for_all_members, lab("[features]\ns3 = [\"napreduce/s3\", \"dep:bytes\", \"stores\"]"));
        let table =
            "[workspace.dependencies]\nserde_json = { version = \"1\", features = [\"float_roundtrip\"] }";
        check_passes(for_all_members, SourceFile::sample("Cargo.toml", table));
    }
}
