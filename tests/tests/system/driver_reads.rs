//! A driver that reads the output of a job and passes it to the next one as a side file, embedded and on a
//! cluster.

use napreduce_tests::{Folder, OwnCluster, joined, program, run};

#[test]
fn each_round_reads_output_of_previous_round() {
    let folder = Folder::new();
    folder.write("in", "a b c a b a\nd\n");
    let cluster = OwnCluster::start(&folder, 1, "fifo", "");
    for cluster in [None, Some(&cluster)] {
        let mut command = program("testjobs");
        command
            .env_remove("NAPREDUCE_CLUSTER")
            .env_remove("NAPREDUCE_DIR")
            .current_dir(folder.root());
        command.args([
            "in",
            "--job",
            "rounds",
            "--number",
            "2",
            "--output",
            "left",
            "--overwrite",
            "--reduces",
            "1",
        ]);
        if let Some(cluster) = cluster {
            command.arg("--cluster").arg(cluster.directory());
        }
        run(&mut command).succeeded();
        assert_eq!(
            String::from_utf8_lossy(&joined(&folder.path("left"))),
            "c\t1\nd\t1\n"
        );
    }
}
