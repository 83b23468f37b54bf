//! What the README builds second reuses what it built first: features of the crates of others are the same in both builds.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use super::files;

/// Crates of this repository with more features in `nap` than in a job program. They are compiled again.
const OWN: [&str; 3] = ["napreduce", "napreduce-cluster", "napreduce-history"];

/// Returns the sets of features with which each crate is compiled, once for programs and once for macros.
fn features_of_build(arguments: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(files::top()).args([
        "tree",
        "--offline",
        "--locked",
        "--edges",
        "normal,build",
    ]);
    command
        .args(["--prefix", "none", "--format", "{p}\t{f}"])
        .args(arguments);
    let listed = command.output().unwrap();
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let mut features: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(listed.stdout).unwrap().lines() {
        // An empty line is between members.
        let Some((package, of_package)) = line.trim_end_matches(" (*)").split_once('\t') else {
            continue;
        };
        features
            .entry(package.to_owned())
            .or_default()
            .insert(of_package.to_owned());
    }
    features
}

#[test]
fn building_nap_after_an_example_compiles_no_crate_of_others_again() {
    let of_example = features_of_build(&["-p", "napreduce-examples"]);
    let of_all = features_of_build(&[]);
    let mut again = Vec::new();
    for (package, features) in &of_example {
        let name = package.split(' ').next().unwrap();
        let reused = of_all
            .get(package)
            .is_some_and(|all| features.is_subset(all));
        if !reused && !OWN.contains(&name) {
            again.push(format!(
                "{package}: {features:?} in an example, {:?} with nap",
                of_all.get(package)
            ));
        }
    }
    assert!(
        again.is_empty(),
        "give examples/Cargo.toml the same features:\n{}",
        again.join("\n")
    );
}
