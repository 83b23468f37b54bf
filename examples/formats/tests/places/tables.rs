//! Parquet in a store: readers seek between columns.

use napreduce_tests::{Folder, parts, run};

use super::server::{Bucket, Server, on_each_server};

fn parquet_is_read_from_a_store(server: Server) {
    let Some(bucket) = Bucket::create(server, "tables") else {
        return;
    };
    let folder = Folder::new();
    let rows = |row: usize| format!("TXL,C{},{}\n", row % 13, row % 31);
    folder.write(
        "flights.csv",
        format!(
            "from,carrier,delay\n{}",
            (0..20_000).map(rows).collect::<String>()
        ),
    );
    let program = |path: &str, arguments: &[&str]| {
        run(bucket
            .program(path, &bucket.address)
            .current_dir(folder.root())
            .args(arguments))
        .succeeded();
    };
    program(
        env!("CARGO_BIN_EXE_to-parquet"),
        &["flights.csv", "--output", "flights", "--quiet"],
    );
    bucket.put_all(&folder.path("flights"), "flights/");
    let delays = env!("CARGO_BIN_EXE_delays");
    program(
        delays,
        &[
            "flights",
            "--output",
            "of-files",
            "--reduces",
            "1",
            "--quiet",
        ],
    );
    let whole = bucket.uri("flights/");
    let cut = bucket.uri("flights/part-*");
    program(
        delays,
        &[
            &whole,
            "--output",
            "of-objects",
            "--reduces",
            "1",
            "--quiet",
        ],
    );
    program(
        delays,
        &[
            &cut,
            "--output",
            "cut",
            "--reduces",
            "1",
            "--split-size",
            "2000",
            "--quiet",
        ],
    );
    let expected = parts(&folder.path("of-files"));
    assert!(expected.iter().any(|(_, bytes)| bytes.len() > 100));
    assert!(
        parts(&folder.path("of-objects")) == expected && parts(&folder.path("cut")) == expected
    );
}

on_each_server! {
    parquet_is_read_from_a_store,
}
