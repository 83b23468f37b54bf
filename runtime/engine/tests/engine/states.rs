//! Every pair of state and event of the four state machines, compared with handwritten tables. A dash is an
//! illegal transition, whose error must name both.

use std::fmt::Debug;

use napreduce_engine::{
    AttemptInput, AttemptState, IllegalTransition, JobInput, JobState, TaskInput, TaskState,
    WorkerInput, WorkerState,
};

const ATTEMPT: &str = "
                       Launching  Running       Suspending Suspended Resuming  Checkpointing Killing   Finished(..)
    Started            Running    -             -          -         -         -             Killing   -
    Progressed         -          Running       Suspending Suspended Resuming  Checkpointing Killing   -
    InputsLost         -          Running       Suspending Suspended Resuming  Checkpointing Killing   -
    CommitRequested    -          Running       Suspending Suspended Resuming  Checkpointing Killing   -
    Suspended          -          -             Suspended  -         -         -             Killing   -
    SuspendRefused     -          -             Running    -         -         -             Killing   -
    Resumed            -          -             -          -         Running   -             Killing   -
    SuspendOrdered     -          Suspending    -          -         -         -             -         -
    ResumeOrdered      -          -             -          Resuming  -         -             -         -
    CheckpointOrdered  -          Checkpointing -          Checkpointing -       -             -         -
    KillOrdered        Killing    Killing       Killing    Killing   Killing   Killing       -         -
    Done               Done       Done          Done       Done      Done      Done          Done      -
    Failed             Failed     Failed        Failed     Failed    Failed    Failed        Killed    -
    Killed             Failed     Failed        Failed     Failed    Failed    Failed        Killed    -
    Checkpointed       Failed     Checkpointed  Checkpointed Checkpointed Checkpointed Checkpointed Checkpointed -
    WorkerLost         Lost       Lost          Lost       Lost      Lost      Lost          Lost      -
";

const TASK: &str = "
                       Pending  Active   Done
    Launched           Active   -        -
    DuplicateLaunched  -        Active   -
    DuplicateEnded     -        Active   -
    AttemptDone        -        Done     -
    AttemptEnded       -        Pending  -
    OutputLost         -        -        Pending
";

const JOB: &str = "
                   Active    Stopping  Ended
    Succeeded      Stopping  -         -
    Failed         Stopping  -         -
    KillRequested  Stopping  Stopping  -
    Drained        -         Ended     -
";

const WORKER: &str = "
                      Unknown  Up        Draining  Lost
    Joined            Up       -         -         -
    DrainRequested    -        Draining  Draining  -
    UndrainRequested  -        -         Up        -
    Left              -        -         Lost      -
    Lost              -        Lost      Lost      -
";

/// Returns the cell of a table. `Finished(..)` stands for every finished state; names of outcomes alone do as
/// well.
fn cell<'a>(table: &'a str, state: &str, input: &str) -> &'a str {
    let mut lines = table.lines().filter(|line| !line.trim().is_empty());
    let header = lines.next().expect("a table has a header");
    let column = header.split_whitespace().position(|name| {
        name == state
            || name
                .strip_suffix("(..)")
                .is_some_and(|prefix| state.starts_with(prefix))
    });
    let column = column.unwrap_or_else(|| panic!("no column {state}"));
    let mut rows = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows
        .find(|row| row[0] == input)
        .unwrap_or_else(|| panic!("no row {input}"));
    row[column + 1]
}

fn check_table<S: Debug + Copy, I: Debug + Copy>(
    table: &str,
    states: &[S],
    inputs: &[I],
    on: impl Fn(S, I) -> Result<S, IllegalTransition>,
) {
    let rows = table.lines().filter(|line| !line.trim().is_empty()).count() - 1;
    assert_eq!(rows, inputs.len(), "every event has one row");
    for &state in states {
        for &input in inputs {
            let from = format!("{state:?}");
            let event = format!("{input:?}");
            let expected = cell(table, &from, &event);
            match on(state, input) {
                Ok(next) => {
                    let next = format!("{next:?}");
                    let same = next == expected || next == format!("Finished({expected})");
                    assert!(same, "{from} on {event} became {next}, not {expected}");
                }
                Err(error) => {
                    assert_eq!(expected, "-", "{from} on {event} is legal");
                    assert_eq!(
                        (error.state.as_str(), error.input.as_str()),
                        (&*from, &*event)
                    );
                }
            }
        }
    }
}

#[test]
fn attempt_table_covers_every_pair() {
    check_table(
        ATTEMPT,
        &AttemptState::ALL,
        &AttemptInput::ALL,
        AttemptState::on,
    );
}

#[test]
fn task_table_covers_every_pair() {
    check_table(TASK, &TaskState::ALL, &TaskInput::ALL, TaskState::on);
}

#[test]
fn job_table_covers_every_pair() {
    check_table(JOB, &JobState::ALL, &JobInput::ALL, JobState::on);
}

#[test]
fn worker_table_covers_every_pair() {
    check_table(
        WORKER,
        &WorkerState::ALL,
        &WorkerInput::ALL,
        WorkerState::on,
    );
}

#[test]
fn illegal_transition_names_state_and_event() {
    let error = AttemptState::Suspended
        .on(AttemptInput::Started)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "attempt is Suspended and cannot take Started"
    );
}

#[test]
fn slot_is_held_until_process_ends_or_stops() {
    let without_slot: Vec<_> = AttemptState::ALL
        .iter()
        .filter(|state| !state.holds_slot())
        .collect();
    assert!(
        without_slot
            .iter()
            .all(|state| matches!(state, AttemptState::Suspended | AttemptState::Finished(_)))
    );
    assert_eq!(without_slot.len(), 6);
}
