//! A job over several named inputs from the command line, embedded and on a cluster.

use std::process::Command;

use napreduce_tests::{Folder, OwnCluster, joined, program, run};

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("users/a.csv", "1,ann\n");
    folder.write("users/b.csv", "2,bob\n");
    folder.write("orders.csv", "2,30\n1,12\n3,99\n");
    folder.write("late=orders.csv", "2,5\n");
    folder
}

fn join(folder: &Folder, rest: &[&str]) -> Command {
    let mut command = program("join-orders");
    command
        .env_remove("NAPREDUCE_CLUSTER")
        .env_remove("NAPREDUCE_DIR")
        .current_dir(folder.root());
    command
        .args(rest)
        .args(["--output", "named", "--overwrite", "--reduces", "1"]);
    command
}

const PATHS: [&str; 4] = [
    "orders=orders.csv",
    "users=users",
    "orders=late=orders.csv",
    "--split-size=8B",
];
const NAMED: &str = "1\tann\t12\n2\tbob\t5\n2\tbob\t30\n";

#[test]
fn named_inputs_are_joined_embedded_and_on_cluster() {
    let folder = folder();
    run(&mut join(&folder, &PATHS)).succeeded();
    let embedded = joined(&folder.path("named"));
    assert_eq!(String::from_utf8_lossy(&embedded), NAMED);
    let cluster = OwnCluster::start(&folder, 2, "fifo", "");
    run(join(&folder, &PATHS)
        .arg("--cluster")
        .arg(cluster.directory()))
    .succeeded();
    assert!(joined(&folder.path("named")) == embedded);
}

#[test]
fn unnamed_or_unknown_inputs_are_refused() {
    let folder = folder();
    for (paths, says) in [
        (
            &["orders.csv"][..],
            "orders.csv has no name; pass users=orders.csv or orders=orders.csv",
        ),
        (
            &["user=users", "orders=orders.csv"],
            "the job has no input \"user\"; pass users=PATH or orders=PATH",
        ),
        (
            &["users=users"],
            "input orders has no path; pass orders=PATH",
        ),
        (
            &["users=", "orders=orders.csv"],
            "input users has an empty path; pass users=PATH",
        ),
        (&["users=nobody.csv", "orders=orders.csv"], "nobody.csv"),
    ] {
        run(&mut join(&folder, paths)).failed(2, &[says]);
        assert!(!folder.has("named"));
    }
}

#[test]
fn help_names_inputs() {
    let folder = folder();
    let help = run(program("join-orders").arg("--help")).succeeded().stdout;
    assert!(help.contains("<NAME=PATH>..."), "{help}");
    assert!(help.contains("users=PATH, orders=PATH"), "{help}");
    run(&mut join(&folder, &[])).failed(2, &["<NAME=PATH>..."]);
    let plain = run(program("wordcount").arg("--help")).succeeded().stdout;
    assert!(plain.contains("<INPUT>..."), "{plain}");
}

#[test]
fn stdin_is_split_embedded_and_refused_on_cluster() {
    let folder = folder();
    let mut command = join(&folder, &["orders=-", "users=users", "--split-size=8B"]);
    let orders = std::fs::File::open(folder.path("orders.csv")).expect("a file");
    run(command.stdin(orders)).succeeded();
    assert_eq!(
        String::from_utf8_lossy(&joined(&folder.path("named"))),
        "1\tann\t12\n2\tbob\t30\n"
    );
    let nowhere = folder.path("nowhere");
    let mut command = join(&folder, &["orders=-", "users=users"]);
    run(command.arg("--cluster").arg(nowhere)).failed(
        2,
        &["standard input (-) is not visible to the tasks of a cluster"],
    );
}
