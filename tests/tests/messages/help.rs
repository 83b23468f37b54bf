//! The help of `nap`, with one snapshot for each of its commands, and the help of a job program.

use napreduce_tests::run;

use super::{assert_snapshot, in_80_columns};

/// Options of job programs that are hidden without the feature `guests`, which builds of `nap` alone lack.
const GUEST_OPTIONS: [&str; 5] = [
    "--on <",
    "--on-conf <",
    "--on-submit <",
    "--checkpoints <",
    "--checkpoint-interval <",
];

/// Commands that pass their arguments on: each prints the help of a job program or its own.
const PASS_ARGUMENTS_ON: [&str; 3] = ["streaming", "frames", "lab"];

fn help(program: &str, line: &[String]) -> String {
    let ended = run(in_80_columns(program).args(line).arg("--help")).succeeded();
    ended
        .stdout
        .lines()
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

/// Returns the names in the section "Commands:", except `help`.
fn commands(help: &str) -> Vec<String> {
    let Some((_, section)) = help.split_once("Commands:\n") else {
        return Vec::new();
    };
    let lines = section.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name != "help").collect()
}

/// Removes the sections that every command of `nap` has.
fn without_common_options(help: &str) -> String {
    let mut text = String::new();
    let mut in_common = false;
    for line in help.lines() {
        in_common = match line {
            "Cluster:" => true,
            _ => in_common && (line.is_empty() || line.starts_with(' ')),
        };
        if !in_common {
            text += &format!("{line}\n");
        }
    }
    let help_flag = "  -h, --help\n          Print help (see a summary with '-h')\n\n";
    let only_help = "Options:\n  -h, --help  Print help\n\n";
    text.replace(help_flag, "")
        .replace(only_help, "")
        .replace("  -h, --help  Print help\n\n", "")
}

/// Splits the help into the options of all builds and those of some builds.
fn split_guest_options(help: &str) -> (String, String) {
    let (of_guests, others): (Vec<&str>, Vec<&str>) =
        help.split_inclusive("\n\n").partition(|option| {
            GUEST_OPTIONS
                .iter()
                .any(|name| option.trim_start().starts_with(name))
        });
    (others.concat(), of_guests.concat())
}

/// Returns the help of a command of `nap` and of all its subcommands.
fn tree(line: &[String]) -> String {
    let own = help("nap", line);
    let mut text = format!(
        "$ nap {} --help\n{}\n",
        line.join(" "),
        without_common_options(&own)
    );
    for name in commands(&own) {
        text += &tree(&[line, &[name]].concat());
    }
    text
}

#[test]
fn nap_help_equals_snapshots() {
    let root = help("nap", &[]);
    assert_snapshot("nap", &root);
    let all = commands(&root);
    assert!(all.len() > 10, "{all:?}");
    for name in all {
        if !PASS_ARGUMENTS_ON.contains(&name.as_str()) {
            assert_snapshot(&format!("nap-{name}"), &tree(&[name]));
        }
    }
}

#[test]
fn job_program_help_equals_snapshots() {
    let (own, of_guests) = split_guest_options(&help("wordcount", &[]));
    assert_snapshot("job-program", &own);
    if !of_guests.is_empty() {
        assert_snapshot("job-program-guests", &of_guests);
    }
}

#[test]
fn streaming_and_frames_help_equals_snapshots() {
    for name in ["streaming", "frames"] {
        let (own, _) = split_guest_options(&help("nap", &[name.to_owned()]));
        // The options after this line are those of every job program.
        let (before, rest) = own
            .split_once("      --recursive\n")
            .expect("the options of every job program");
        let (_, examples) = rest.split_once("Examples:\n").expect("examples");
        let (examples, _) = examples
            .split_once("Settings for --conf:")
            .expect("settings");
        assert_snapshot(
            &format!("nap-{name}"),
            &format!("{before}      (options of every job program)\n\nExamples:\n{examples}"),
        );
    }
}
