//! Every row of the state table, and orders that arrive in quick succession.

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};

use super::*;

const ATTEMPT: AttemptId = AttemptId {
    task: TaskId {
        job: JobId(1),
        kind: TaskKind::Map,
        index: 0,
    },
    number: 1,
};
const SUSPEND: Input = Input::Ordered(Order::Suspend { attempt: ATTEMPT });
const RESUME: Input = Input::Ordered(Order::Resume { attempt: ATTEMPT });
const CHECKPOINT: Input = Input::Ordered(Order::Checkpoint { attempt: ATTEMPT });
const STAGES: [Stage; 9] = [
    Stage::Starting,
    Stage::Running,
    Stage::Suspending { epoch: 1 },
    Stage::Stopping {
        epoch: 1,
        again: false,
    },
    Stage::Stopping {
        epoch: 1,
        again: true,
    },
    Stage::Suspended { epoch: 1 },
    Stage::Undoing { epoch: 1 },
    Stage::Resuming { epoch: 1 },
    Stage::Checkpointing,
];
const INPUTS: [Input; 13] = [
    Input::Hello,
    SUSPEND,
    RESUME,
    CHECKPOINT,
    Input::Granted,
    Input::Ready {
        epoch: 1,
        saves: true,
    },
    Input::Ready {
        epoch: 1,
        saves: false,
    },
    Input::GraceOver,
    Input::Stopped,
    Input::StillRuns {
        descendant: String::new(),
    },
    Input::Prefetched,
    Input::Continued,
    Input::Resumed { epoch: 1 },
];

const fn ask_to_suspend(epoch: u32) -> Step {
    Step::Send(ToTask::Suspend {
        epoch,
        page_out: false,
    })
}

fn at(stage: Stage) -> Preemption {
    let epoch = if matches!(stage, Stage::Starting | Stage::Running) {
        0
    } else {
        1
    };
    Preemption {
        stage,
        epoch,
        ..Preemption::default()
    }
}

/// Checks the steps and the final stage after these inputs.
fn check(inputs: &[Input], steps: &[Step], stage: Stage) {
    let mut preemption = at(Stage::Running);
    let taken: Vec<Step> = inputs
        .iter()
        .flat_map(|input| preemption.on(input.clone(), &|| false).expect("legal"))
        .collect();
    assert_eq!((taken.as_slice(), preemption.stage()), (steps, stage));
    assert!(preemption.waiting.is_empty());
}

#[test]
fn every_transition_of_the_table() {
    use Stage::*;
    let rows: &[(Stage, Input, Stage, &[Step])] = &[
        (Starting, Input::Hello, Running, &[]),
        (
            Running,
            SUSPEND,
            Suspending { epoch: 1 },
            &[ask_to_suspend(1)],
        ),
        (
            Running,
            CHECKPOINT,
            Checkpointing,
            &[Step::Send(ToTask::Checkpoint)],
        ),
        (
            Suspending { epoch: 1 },
            Input::Ready {
                epoch: 1,
                saves: true,
            },
            Stopping {
                epoch: 1,
                again: false,
            },
            &[Step::Stop],
        ),
        (
            Suspending { epoch: 1 },
            Input::Ready {
                epoch: 1,
                saves: false,
            },
            Stopping {
                epoch: 1,
                again: false,
            },
            &[Step::Stop],
        ),
        (
            Suspending { epoch: 1 },
            Input::GraceOver,
            Stopping {
                epoch: 1,
                again: false,
            },
            &[Step::Stop],
        ),
        (
            Stopping {
                epoch: 1,
                again: false,
            },
            Input::GraceOver,
            Stopping {
                epoch: 1,
                again: false,
            },
            &[Step::Stop],
        ),
        (
            Stopping {
                epoch: 1,
                again: true,
            },
            Input::GraceOver,
            Stopping {
                epoch: 1,
                again: true,
            },
            &[Step::Stop],
        ),
        (
            Stopping {
                epoch: 1,
                again: false,
            },
            Input::Stopped,
            Suspended { epoch: 1 },
            &[Step::ReportSuspended { saves: false }],
        ),
        (
            Stopping {
                epoch: 1,
                again: false,
            },
            Input::StillRuns {
                descendant: String::new(),
            },
            Undoing { epoch: 1 },
            &[Step::Prefetch],
        ),
        (
            Stopping {
                epoch: 1,
                again: true,
            },
            Input::StillRuns {
                descendant: String::new(),
            },
            Stopping {
                epoch: 1,
                again: true,
            },
            &[Step::Stop],
        ),
        (
            Undoing { epoch: 1 },
            Input::Resumed { epoch: 1 },
            Running,
            &[Step::ReportRefused { obstacle: None }],
        ),
        (
            Stopping {
                epoch: 1,
                again: true,
            },
            Input::Stopped,
            Suspended { epoch: 1 },
            &[],
        ),
        (
            Suspended { epoch: 1 },
            Input::Continued,
            Stopping {
                epoch: 1,
                again: true,
            },
            &[Step::Stop],
        ),
        (
            Suspended { epoch: 1 },
            RESUME,
            Resuming { epoch: 1 },
            &[Step::Prefetch],
        ),
        (
            Suspended { epoch: 1 },
            CHECKPOINT,
            Checkpointing,
            &[Step::Send(ToTask::Checkpoint), Step::Prefetch],
        ),
        (
            Resuming { epoch: 1 },
            Input::Prefetched,
            Resuming { epoch: 1 },
            &[Step::Continue],
        ),
        (
            Undoing { epoch: 1 },
            Input::Prefetched,
            Undoing { epoch: 1 },
            &[Step::Continue],
        ),
        (
            Checkpointing,
            Input::Prefetched,
            Checkpointing,
            &[Step::Continue],
        ),
        (
            Resuming { epoch: 1 },
            Input::Resumed { epoch: 1 },
            Running,
            &[Step::ReportResumed],
        ),
    ];
    for stage in STAGES {
        for input in INPUTS {
            let row = rows
                .iter()
                .find(|(from, on, ..)| (from, on) == (&stage, &input));
            let mut preemption = at(stage);
            let taken = preemption.on(input.clone(), &|| false);
            match (row, input.clone()) {
                (Some((.., to, steps)), _) => {
                    assert_eq!(
                        (taken.as_deref(), preemption.stage()),
                        (Ok(*steps), *to),
                        "{stage:?} {input:?}"
                    );
                }
                // An order waits while another is in progress, and is refused where it is not applicable.
                (None, Input::Ordered(order)) if preemption.is_busy() => {
                    assert_eq!((taken, preemption.stage()), (Ok(vec![]), stage));
                    assert_eq!(preemption.waiting, [order]);
                }
                (None, Input::Ordered(order)) => {
                    assert_eq!(
                        (taken, preemption.stage()),
                        (Err(Illegal { stage, order }), stage)
                    );
                }
                // Any other input is late or early, and changes nothing.
                (None, _) => assert_eq!((taken, preemption.stage()), (Ok(vec![]), stage)),
            }
        }
    }
}

#[test]
fn answer_of_earlier_epoch_is_ignored() {
    let mut preemption = at(Stage::Suspending { epoch: 1 });
    assert_eq!(
        preemption.on(
            Input::Ready {
                epoch: 9,
                saves: true
            },
            &|| false
        ),
        Ok(vec![])
    );
    preemption.stage = Stage::Resuming { epoch: 1 };
    assert_eq!(
        preemption.on(Input::Resumed { epoch: 9 }, &|| false),
        Ok(vec![])
    );
}

#[test]
fn resume_waits_for_confirmed_stop() {
    let epoch = 1;
    let resume = Step::Prefetch;
    check(
        &[
            SUSPEND,
            RESUME,
            Input::Ready { epoch, saves: true },
            Input::Stopped,
        ],
        &[
            ask_to_suspend(epoch),
            Step::Stop,
            Step::ReportSuspended { saves: true },
            resume,
        ],
        Stage::Resuming { epoch },
    );
}

#[test]
fn checkpoint_during_suspend_wakes_the_attempt() {
    let epoch = 1;
    check(
        &[
            SUSPEND,
            CHECKPOINT,
            Input::GraceOver,
            Input::Stopped,
            Input::Continued,
            Input::Resumed { epoch },
        ],
        &[
            ask_to_suspend(epoch),
            Step::Stop,
            Step::ReportSuspended { saves: false },
            Step::Send(ToTask::Checkpoint),
            Step::Prefetch,
        ],
        Stage::Checkpointing,
    );
}

#[test]
fn resumed_attempt_is_suspended_in_next_epoch() {
    check(
        &[
            SUSPEND,
            Input::GraceOver,
            Input::Stopped,
            RESUME,
            SUSPEND,
            Input::Resumed { epoch: 1 },
        ],
        &[
            ask_to_suspend(1),
            Step::Stop,
            Step::ReportSuspended { saves: false },
            Step::Prefetch,
            Step::ReportResumed,
            ask_to_suspend(2),
        ],
        Stage::Suspending { epoch: 2 },
    );
}

#[test]
fn process_that_never_stops_is_continued_and_the_suspend_refused() {
    let mut inputs = vec![
        SUSPEND,
        Input::Ready {
            epoch: 1,
            saves: true,
        },
    ];
    inputs.extend((0..STOPS_MAX).map(|_| Input::GraceOver));
    inputs.push(Input::Resumed { epoch: 1 });
    let mut steps = vec![ask_to_suspend(1)];
    steps.extend((0..STOPS_MAX).map(|_| Step::Stop));
    steps.extend([Step::Prefetch, Step::ReportRefused { obstacle: None }]);
    check(&inputs, &steps, Stage::Running);
}

#[test]
fn committing_attempt_is_not_stopped() {
    check(
        &[Input::Granted, SUSPEND, Input::GraceOver],
        &[],
        Stage::Suspending { epoch: 1 },
    );
}

#[test]
fn starting_attempt_is_suspended_after_hello() {
    let mut preemption = Preemption::default();
    assert_eq!(preemption.on(SUSPEND, &|| false), Ok(vec![]));
    assert_eq!(
        preemption.on(Input::Hello, &|| false),
        Ok(vec![ask_to_suspend(1)])
    );
}
