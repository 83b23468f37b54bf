//! Workers that join, leave, repeat messages and fall silent.

use napreduce_engine::WorkerId;
use napreduce_protocol::{Hello, ToWorker};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::timeout;

use super::script::{Stage, check, check_also_with_snapshots};
use super::{ClusterInput, DEADLINE, LastHeard};

#[test]
fn repeated_report_counts_once() {
    check(
        "worker w 1
         submit 1 maps 2 reduces 1       > launch m0.1 on w
         does m0.1
         started m0.1 as 1
         started m0.1 as 2               > launch m1.1 on w
         heartbeat w                     > w: received 2",
    );
}

#[test]
fn gap_in_reports_ends_connection() {
    check(
        "worker w 1
         submit 1 maps 1 reduces 1       > launch m0.1 on w
         started m0.1 as 7               > w: closed
         reconnect w
         does m0.1                       > launch r0.1 on w",
    );
}

/// Numbers have no gaps: an order that was not acknowledged is sent again under its number.
#[test]
fn unacknowledged_orders_are_resent_with_same_numbers() {
    check(
        "worker w 2
         submit 1 maps 2                 > w: define 1
                                         > launch m0.1 on w
         received w 1
         reconnect w                     > launch m0.1 on w",
    );
}

#[test]
fn later_start_supersedes_earlier_one() {
    check(
        "worker w 1
         submit 1 maps 1                 > launch m0.1 on w
         started m0.1
         disconnect w
         worker w 1 again                > w is worker 2 now
                                         > launch m0.2 on w",
    );
}

/// Sends hello on a new connection; returns the answer.
async fn answer_to_hello(stage: &Stage, connection: u64, hello: Hello) -> ToWorker {
    let (messages, mut answers) = unbounded_channel();
    let connected = ClusterInput::Connected {
        connection,
        hello: Box::new(hello),
        messages,
        heard: LastHeard::now(),
    };
    stage
        .running()
        .inputs
        .send(connected)
        .expect("the coordinator runs");
    let answer = timeout(DEADLINE, answers.recv()).await;
    answer.expect("an answer in time").expect("an answer")
}

#[tokio::test]
async fn second_worker_of_same_name_is_refused() {
    let mut stage = Stage::new();
    stage.play("worker w 1").await;
    for (incarnation, directory) in [(2, "/nowhere"), (3, "/elsewhere")] {
        let mut hello = stage.worker("w").hello.clone();
        (hello.incarnation, hello.before, hello.received) = (incarnation, None, 0);
        hello.directory = directory.into();
        match answer_to_hello(&stage, 90 + incarnation, hello).await {
            ToWorker::Refused {
                reason,
                name_free_in_millis: Some(60_000),
            } => {
                assert!(
                    reason.contains("worker_0001") && reason.contains("--name"),
                    "{reason}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    stage.play("ask workers > 1 w up").await;
    stage.end().await;
}

/// The numbers of another journal mean other orders, even if they are equal.
#[tokio::test]
async fn worker_with_number_of_another_journal_does_not_continue() {
    let mut stage = Stage::new();
    stage.play("worker w 1").await;
    let mut hello = stage.worker("w").hello.clone();
    let (journal, number) = hello.before.expect("a number");
    hello.before = Some((journal ^ 1, number));
    match answer_to_hello(&stage, 98, hello).await {
        ToWorker::Welcome { worker, .. } => assert_eq!(worker, WorkerId(2)),
        other => panic!("{other:?}"),
    }
    stage.end().await;
}

/// Under another number, the worker sees that it is a new one and gives up its orders.
#[tokio::test]
async fn worker_whose_number_was_lost_with_the_journal_gets_another() {
    let mut stage = Stage::new();
    stage.play("worker w 1").await;
    let mut hello = stage.worker("w").hello.clone();
    let (journal, _) = hello.before.expect("a number");
    hello.name = "forgotten".to_owned();
    hello.incarnation = 7;
    hello.before = Some((journal, WorkerId(2)));
    match answer_to_hello(&stage, 97, hello).await {
        ToWorker::Welcome { worker, .. } => assert_eq!(worker, WorkerId(3)),
        other => panic!("{other:?}"),
    }
    stage.end().await;
}

#[test]
fn silent_worker_is_lost_and_superseded() {
    check(
        "set liveness 300ms
         worker silent 1
         submit 1 maps 1                 > launch m0.1 on silent
         started m0.1                    > silent: closed
         reconnect silent                > silent is worker 2 now
                                         > launch m0.2 on silent",
    );
}

/// Liveness counts from the arrival of bytes, not from their processing by the loop.
#[tokio::test]
async fn backpressured_worker_is_not_lost() {
    let mut stage = Stage::new();
    stage.play("set liveness 300ms \n worker heard 1").await;
    stage.worker("heard").heard.move_on(DEADLINE);
    stage.play("worker waits 1").await;
    let _waiting = stage.worker("waits").heard.free_room();
    stage.worker("waits").heard.move_back(DEADLINE);
    stage.play("worker silent 1").await;
    stage.worker("silent").heard.move_back(DEADLINE);
    // The coordinator drops the connection of a lost worker.
    while stage.worker("silent").messages.recv().await.is_some() {}
    let expected = "ask workers                     > 1 heard up
                                                    > 2 waits up
                                                    > 3 silent lost: no message for 0.3 s";
    stage.play(expected).await;
    stage.end().await;
}

/// Recovering the journal took longer than the liveness limit.
#[tokio::test]
async fn long_restart_loses_no_worker() {
    let mut stage = Stage::new();
    stage.play("worker w 1 \n kill coordinator").await;
    let silent = 2 * stage.scene.configuration.liveness;
    stage.running = Some(stage.scene.start_changed(|coordinator| {
        let links = coordinator.local.state().links().values();
        links.for_each(|link| link.heard.move_back(silent));
    }));
    stage.play("reconnect w").await;
    stage.end().await;
}

#[test]
fn drained_worker_gets_no_tasks_and_leaves() {
    check(
        "worker w 1
         submit 1 maps 2                 > launch m0.1 on w
         started m0.1
         drain w now: a new disk         > kill m0.1
         killed m0.1                     > w: leave
         disconnect w
         until workers                   > 1 w left: no longer needed (drained: a new disk)
         drain w now                     > refused: there is no worker_0001; see: nap worker list",
    );
}

/// The order of an upgrade: workers are drained and replaced one after another. Restarts of the coordinator, which is the
/// last one, are tested in `recovery`.
#[test]
fn workers_replaced_one_after_another_keep_job() {
    check_also_with_snapshots(
        "worker v 1
         submit 1 maps 2                 > launch m0.1 on v
         started m0.1
         worker w 1                      > launch m1.1 on w
         started m1.1
         drain v now: an upgrade         > kill m0.1
         killed m0.1                     > v: leave
         disconnect v
         worker v 1 again                > v is worker 3 now > launch m0.2 on v
         drain w now: an upgrade         > kill m1.1
         killed m1.1                     > w: leave
         disconnect w
         worker w 1 again                > w is worker 4 now > launch m1.2 on w
         does m0.2
         does m1.2
         ask end 1                       > succeeded: ...",
    );
}

#[test]
fn gone_workers_are_listed_after_restart() {
    check_also_with_snapshots(
        "worker w 1
         acknowledges w 5
         worker w 1 again                > w is worker 2 now
         ask workers
             > 1 w lost: acknowledgement of message 5, but only 0 were sent; the peer has the state of another sender
             > 2 w up
         restart
         ask workers                     > 1 w lost: acknowledgement of message 5...
                                         > 2 w up
         restart
         ask workers                     > 1 w lost: acknowledgement of message 5...
                                         > 2 w up",
    );
}
