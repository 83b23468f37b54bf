//! A shell script in place of `nap sim`, with its output and histories.

use std::path::Path;

use napreduce_engine::JobId;
use napreduce_history::{EndedJob, RecordedCluster, write_simulated};
use napreduce_protocol::{JobDetail, JobEnd, JobPhase};
use napreduce_web::WhatIfSettings;
use serde_json::json;
use tempfile::TempDir;

/// Script that writes two runs and their fidelity.
pub const SIMULATES: &str = r#"
here=$(dirname "$0")
for word; do case $word in --record=*) record=${word#--record=};; esac; done
echo "$@" > "$here/line"
cp -r "$here/made" "$record"
cat "$here/said"
"#;

/// Output of a simulation whose recorded jobs end later than they did, by the factor `ratio`.
pub fn said(ratio: f64, doubtful: &[&str]) -> String {
    let off = json!({ "recorded": 2.0, "simulated": 2.0 * ratio, "ratio": ratio });
    let fidelity = json!({
        "sojourn_mean": off, "makespan": off, "deviation_median": 0.01, "deviation_largest": 0.3,
        "largest_of": "job_0001", "doubtful": doubtful, "jobs": [],
    });
    json!({ "recorded": { "remarks": ["a remark"], "fidelity": fidelity } }).to_string()
}

/// Creates a directory with the script and its files.
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("simulate", SIMULATES);
    write("said", &said(1.02, &[]));
    for (name, scheduler, took) in [
        ("fifo-as-recorded.0", "fifo", 2_000),
        ("fair.0", "fair", 1_500),
    ] {
        let run = folder.path().join("made").join(name);
        std::fs::create_dir_all(&run).expect("a folder");
        write_simulated(&run, &ended(scheduler, took)).expect("a history");
    }
    folder
}

/// What-ifs that run this script.
pub fn settings(folder: &Path) -> WhatIfSettings {
    let mut settings = WhatIfSettings::new("/bin/sh".into(), folder.join("kept"));
    settings.begin = vec![folder.join("simulate").into()];
    settings.schedulers = ["fifo", "fair"].map(str::to_owned).to_vec();
    settings
}

fn ended(scheduler: &str, took: u64) -> EndedJob {
    let mut summary = super::summary(1, JobPhase::Succeeded);
    (summary.submitted_millis, summary.ended_millis) = (0, Some(took));
    let detail = JobDetail::new(summary);
    let cluster = RecordedCluster {
        scheduler: scheduler.to_owned(),
        ..RecordedCluster::default()
    };
    let end = JobEnd::Killed {
        job: JobId(1),
        reason: String::new(),
    };
    EndedJob {
        token: 1,
        end,
        detail,
        cluster: Some(cluster),
        logs: Vec::new(),
    }
}
