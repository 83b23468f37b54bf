//! Jobs that operators hold and change, and workers that they drain and undrain, also across restarts.

use std::fs;

use napreduce_schedulers::SchedulerConfiguration;

use super::script::{Stage, check, check_also_with_snapshots};
use crate::coordinator::check_journal;

#[test]
fn changed_priority_and_queue_survive_restart() {
    let is_so = "ask job 1                       > waiting, priority 7, queue nightly
                 ask events 1                    > ...
                                                 > it has priority 7, queue nightly from now on: ada waits
                 ask queues                      > fair wants 2+0
                                                 > ...
                                                 > nightly wants 2+0, 1 waiting
                                                 > ...";
    check_also_with_snapshots(&format!(
        "set scheduler fair
         submit 1 maps 2
         change 1 priority 7 queue nightly: ada waits
         change 1 priority 7: ada waits
             > refused: job_0001 cannot have priority 7 under the scheduler fair: it has priority 7 already
         {is_so}
         restart
         {is_so}"
    ));
}

#[test]
fn change_unsupported_by_scheduler_is_refused() {
    check(
        "set scheduler fifo
         submit 1 maps 1
         change 1 queue nightly: ada waits
             > refused: unknown queue nightly: the scheduler fifo has ...
         change 1 priority -3: ada waits
         change 9 priority 1: ada waits  > refused: there is no job_0009; see: nap job list
         ask queues                      > fifo wants 1+0
                                         > no queues",
    );
    check(
        "set scheduler hfsp
         submit 1 maps 1
         change 1 priority 5: ada waits
             > refused: job_0001 cannot have priority 5 under the scheduler hfsp: hfsp orders jobs by size...",
    );
}

/// Running attempts may finish; no new ones start.
#[test]
fn hold_of_job_survives_restart() {
    check_also_with_snapshots(
        "worker w 1
         submit 1 maps 2 reduces 1       > launch m0.1 on w
         started m0.1
         hold 1: at night
         hold 1: at night                > refused: cannot hold job_0001: already held
         restart
         ask job 1                       > held, priority 0, queue default: at night
         ask why 1                       > ...
                                         > release it with: nap job release job_0001
                                         > ...
         done m0.1
         release 1: at night
         release 1: at night             > refused: cannot release job_0001: it is not held
                                         > launch m1.1 on w
         ask events 1                    > ...
                                         > held: at night
                                         > ...",
    );
}

#[test]
fn drain_and_its_reason_survive_restart() {
    check_also_with_snapshots(
        "worker w 1
         submit 1 maps 2                 > launch m0.1 on w
         started m0.1
         drain w: a new disk
         restart
         ask workers                     > 1 w draining: a new disk
         undrain w: a new disk
         ask workers                     > 1 w up
         undrain w: a new disk           > refused: cannot undrain worker_0001: it is not draining",
    );
}

#[tokio::test]
async fn journal_check_changes_nothing() {
    let mut stage = Stage::new();
    stage
        .play("worker w 1 \n submit 1 maps 2 \n kill coordinator")
        .await;
    let directory = stage.scene.configuration.directory.coordinator_directory();
    let check = check_journal(&directory, SchedulerConfiguration::read).expect("it is whole");
    let content = check.content.expect("a content");
    assert_eq!(
        (content.workers, content.jobs.len(), check.remarks.len()),
        (1, 1, 0)
    );
    assert!(
        content.entries >= 2 && content.last_millis >= content.begun_millis,
        "{content:?}"
    );
    assert_eq!((check.damage, check.lost.entries), (None, 0));
    let file = directory.join("journal-00000001.log");
    let whole = fs::read(&file).expect("the journal");
    fs::write(&file, &whole[..whole.len() - 3]).expect("written");
    let torn =
        check_journal(&directory, SchedulerConfiguration::read).expect("a torn end is no damage");
    let kept = torn.content.expect("a content");
    assert_eq!((kept.entries, torn.damage), (content.entries - 1, None));
    assert!(
        torn.remarks[0].contains("ends inside an entry"),
        "{:?}",
        torn.remarks
    );
    assert_eq!(
        fs::read(&file).expect("there").len(),
        whole.len() - 3,
        "nothing is changed"
    );
    let mut damaged = whole.clone();
    damaged[20] ^= 1;
    fs::write(&file, &damaged).expect("written");
    let check = check_journal(&directory, SchedulerConfiguration::read).expect("it can be read");
    let damage = check.damage.expect("a damage");
    assert!(damage.contains("is damaged at byte 0"), "{damage}");
    assert_eq!(check.content, None);
    assert_eq!(
        (check.lost.entries, check.lost.jobs.len()),
        (content.entries, 1)
    );
    assert_eq!(fs::read(&file).expect("there"), damaged);
    let none = check_journal(&directory.join("nowhere"), SchedulerConfiguration::read)
        .expect_err("there is none")
        .to_string();
    assert!(none.contains("no coordinator journal in "), "{none}");
}
