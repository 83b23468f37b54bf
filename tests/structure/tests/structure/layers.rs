//! Checks which crate may depend on which. Integration tests and benchmarks are exempt.

use super::files::{SourceFile, Violation};

/// The folder of each crate, and the crates of this repository that its code may name.
const LAYERS: &[(&str, &[&str])] = &[
    ("datagen", &[]),
    ("runtime/engine", &[]),
    ("runtime/data", &[]),
    ("runtime/schedulers", &["napreduce-engine"]),
    (
        "runtime/sim",
        &[
            "napreduce-engine",
            "napreduce-schedulers",
            "napreduce-protocol",
            "napreduce-history",
        ],
    ),
    ("runtime/protocol", &["napreduce-engine"]),
    ("framework/connectors", &["napreduce-protocol"]),
    (
        "runtime/task",
        &["napreduce-engine", "napreduce-data", "napreduce-protocol"],
    ),
    (
        "runtime/history",
        &["napreduce-engine", "napreduce-protocol"],
    ),
    (
        "runtime/answers",
        &[
            "napreduce-engine",
            "napreduce-protocol",
            "napreduce-history",
        ],
    ),
    (
        "runtime/local",
        &[
            "napreduce-engine",
            "napreduce-data",
            "napreduce-protocol",
            "napreduce-task",
            "napreduce-history",
        ],
    ),
    (
        "runtime/cluster",
        &[
            "napreduce-engine",
            "napreduce-data",
            "napreduce-protocol",
            "napreduce-task",
            "napreduce-history",
            "napreduce-local",
        ],
    ),
    (
        "runtime/web",
        &[
            "napreduce-engine",
            "napreduce-protocol",
            "napreduce-history",
            "napreduce-answers",
            "napreduce-cluster",
        ],
    ),
    ("framework/derive", &[]),
    (
        "framework/guests",
        &[
            "napreduce-engine",
            "napreduce-data",
            "napreduce-protocol",
            "napreduce-task",
            "napreduce-local",
        ],
    ),
    (
        "framework",
        &[
            "napreduce-engine",
            "napreduce-data",
            "napreduce-connectors",
            "napreduce-derive",
            "napreduce-guests",
            "napreduce-protocol",
            "napreduce-task",
            "napreduce-cluster",
            "napreduce-local",
        ],
    ),
    ("framework/mistakes", &["napreduce"]),
    ("examples", &["napreduce"]),
    ("examples/matching-lines", &["napreduce"]),
    ("examples/service", &["napreduce"]),
    ("examples/formats", &["napreduce", "napreduce-cli"]),
    (
        "lab",
        &[
            "datagen",
            "napreduce",
            "napreduce-engine",
            "napreduce-schedulers",
            "napreduce-protocol",
            "napreduce-task",
            "napreduce-cluster",
            "napreduce-local",
            "napreduce-sim",
        ],
    ),
    (
        "runtime/cli",
        &[
            "napreduce",
            "napreduce-engine",
            "napreduce-schedulers",
            "napreduce-protocol",
            "napreduce-task",
            "napreduce-history",
            "napreduce-cluster",
            "napreduce-local",
            "napreduce-sim",
            "napreduce-answers",
            "napreduce-web",
        ],
    ),
    (
        "runtime/world",
        &[
            "napreduce-engine",
            "napreduce-schedulers",
            "napreduce-protocol",
            "napreduce-task",
            "napreduce-history",
            "napreduce-local",
            "napreduce-cluster",
        ],
    ),
    ("tests", &["napreduce"]),
    ("tests/structure", &[]),
    ("tests/dependencies", &[]),
];

/// Exempt crates: fuzz targets use internals of the code under test, and the crates outside the workspace
/// stand for those of users.
const APART: [&str; 5] = [
    "runtime/protocol/fuzz",
    "tests/outside",
    "lab/seven-jobs/napreduce",
    "lab/seven-jobs/datafusion",
    "lab/seven-jobs/rayon",
];

pub fn one_direction(files: &[SourceFile]) -> Vec<Violation> {
    files.iter().flat_map(against_the_table).collect()
}

fn against_the_table(file: &SourceFile) -> Vec<Violation> {
    let Some(folder) = file
        .path
        .strip_suffix("/Cargo.toml")
        .filter(|folder| !APART.contains(folder))
    else {
        return Vec::new();
    };
    let Some((_, allowed)) = LAYERS.iter().find(|(known, _)| *known == folder) else {
        return vec![file.at(
            0,
            "a crate that is in no layer; say in the table what it may name",
        )];
    };
    let mut table = "";
    let mut violations = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.starts_with('[') {
            table = line.trim_end();
        }
        let of_program = table.ends_with("dependencies]") && !table.ends_with("dev-dependencies]");
        // `[dependencies.NAME]` is a table of its own.
        let (own_table, line) = match line.strip_prefix("[dependencies.") {
            Some(rest) => (true, rest.trim_end_matches(']')),
            None => (false, line),
        };
        let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
        let is_ours = name.starts_with("napreduce") || name == "datagen";
        if (of_program || own_table) && is_ours && !allowed.contains(&name) {
            violations.push(file.at(index + 1, format!("{folder} may not name {name}")));
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::super::files::{check_caught, check_passes};
    use super::*;

    #[test]
    fn crate_naming_upper_layer_is_refused() {
        let schedulers = |text: &str| SourceFile::sample("runtime/schedulers/Cargo.toml", text);
        check_passes(
            one_direction,
            schedulers("[dependencies]\nnapreduce-engine.workspace = true\n"),
        );
        check_passes(
            one_direction,
            schedulers("[dev-dependencies]\nnapreduce-sim.workspace = true\n"),
        );
        check_caught(
            one_direction,
            schedulers(
                "[dependencies]\nserde = \"1\"\nnapreduce-local = { path = \"../local\" }\n",
            ),
            "Cargo.toml:3: runtime/schedulers may not name napreduce-local",
        );
        for table in [
            "[build-dependencies]\n",
            "[target.'cfg(unix)'.dependencies]\n",
            "\n[dependencies.",
        ] {
            let end = if table.ends_with('.') {
                "]"
            } else {
                " = \"1\""
            };
            check_caught(
                one_direction,
                schedulers(&format!("{table}napreduce-local{end}\n")),
                "Cargo.toml:2",
            );
        }
        let unknown = SourceFile::sample("runtime/dreams/Cargo.toml", "[dependencies]\n");
        check_caught(one_direction, unknown, "in no layer");
    }
}
