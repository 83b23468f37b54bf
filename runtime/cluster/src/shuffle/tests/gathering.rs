//! Inputs of a reduce that are announced early or late, replaced, lost, or not needed.

use napreduce_engine::{FailureClass, FaultPlace};

use super::*;

#[test]
fn local_inputs_need_no_network() {
    let mut reduce = Reduce::new(2);
    reduce.network = None;
    let named = vec![local(map(1), "b".into()), local(map(0), "a".into())];
    assert_eq!(
        reduce.gather(named),
        [(map(0), "a".into()), (map(1), "b".into())]
    );
    assert_eq!(Reduce::new(0).gather(vec![]), []);
}

#[test]
fn reduce_waits_for_inputs_named_later() {
    let served = Served::start().with_maps(4, 500);
    let mut reduce = Reduce::new(4);
    let [first, second, third, fourth] = served.inputs(4).try_into().unwrap();
    reduce
        .arrived
        .send(InputEvent::Named(vec![third, second]))
        .unwrap();
    let later = reduce.arrived.clone();
    let context = Arc::clone(&reduce.context);
    let before = context.progress().signs_of_life();
    let naming = std::thread::spawn(move || {
        // Until the reduce has done all it can.
        while context.progress().signs_of_life() == before {
            std::thread::yield_now();
        }
        later.send(InputEvent::Named(vec![fourth])).unwrap();
    });
    let gathered = reduce.gather(vec![first]);
    naming.join().unwrap();
    check_equal(&gathered, &served.shelf, 0);
    assert_eq!(gathered.len(), 4);
    assert_eq!(
        reduce.context.progress().done(),
        0,
        "from now on, progress is that of the merge"
    );
    assert!(reduce.count(Counter::ShuffleFetchMillis) > 0);
}

#[test]
fn later_output_of_map_replaces_pending_one() {
    let again = attempt(TaskKind::Map, 0, 2);
    let mut reduce = Reduce::new(2);
    reduce
        .arrived
        .send(InputEvent::Named(vec![local(again, "again".into())]))
        .unwrap();
    reduce
        .arrived
        .send(InputEvent::Named(vec![local(map(1), "other".into())]))
        .unwrap();
    let gathered = reduce.gather(vec![local(map(0), "first".into())]);
    assert_eq!(
        gathered,
        [(again, "again".into()), (map(1), "other".into())]
    );
}

#[test]
fn fetched_output_is_not_replaced() {
    let served = Served::start().with_maps(1, 500);
    let again = attempt(TaskKind::Map, 0, 2);
    let mut reduce = Reduce::new(2);
    let later = reduce.arrived.clone();
    let scratch = reduce.scratch.path().to_owned();
    let naming = std::thread::spawn(move || {
        while !scratch.join("fetched-job_0001_m_0000.1.segment").exists() {
            std::thread::yield_now();
        }
        // Sent after the first input was fetched, but possibly before the reduce processed that. In neither
        // case may the reduce wait forever for an absent server.
        later
            .send(InputEvent::Named(vec![remote(again, "127.0.0.1:1")]))
            .unwrap();
        later
            .send(InputEvent::Named(vec![local(map(1), "other".into())]))
            .unwrap();
    });
    let gathered = reduce
        .gather_with(served.inputs(1), |lost| {
            assert_eq!(lost, [again]);
            vec![local(again, "again".into())]
        })
        .unwrap();
    naming.join().unwrap();
    assert!(
        gathered[0].0 == map(0) || gathered[0] == (again, "again".into()),
        "{gathered:?}"
    );
}

#[test]
fn lost_output_named_again_is_fetched() {
    let served = Served::start();
    let mut reduce = Reduce::new(1);
    let gathered = reduce
        .gather_with(served.inputs(1), |lost| {
            served.shelf.seal(map(0), 500, BlockCompression::None);
            vec![remote(lost[0], &served.address)]
        })
        .unwrap();
    check_equal(&gathered, &served.shelf, 0);
    assert_eq!(reduce.lost.len(), 1);
}

#[test]
fn input_of_unknown_map_is_fatal() {
    let error = Reduce::new(1)
        .gather_with(vec![local(map(1), "x".into())], |_| vec![])
        .unwrap_err();
    assert_eq!(error.class, FailureClass::Fatal);
    assert!(
        error.message.contains("invalid input job_0001_m_0001.1"),
        "{error}"
    );
}

#[test]
fn remote_input_without_network_is_fatal() {
    let mut reduce = Reduce::new(1);
    reduce.network = None;
    let error = reduce
        .gather_with(vec![remote(map(0), "there:1")], |_| vec![])
        .unwrap_err();
    assert_eq!(error.class, FailureClass::Fatal);
    assert!(error.message.contains("there:1"), "{error}");
}

#[test]
fn interrupted_task_stops_waiting() {
    let mut reduce = Reduce::new(1);
    reduce.context.interrupt();
    let error = reduce.gather_with(vec![], |_| vec![]).unwrap_err();
    assert_eq!(error.class, FailureClass::Retryable);
}

#[test]
fn unwritable_scratch_fails_attempt_and_is_named() {
    let served = Served::start().with_maps(1, 500);
    let mut reduce = Reduce::new(1);
    let gone = reduce.scratch.path().to_owned();
    std::fs::remove_dir(&gone).unwrap();
    let error = reduce
        .gather_with(served.inputs(1), |_| vec![])
        .unwrap_err();
    assert_eq!(
        (error.class, error.place),
        (FailureClass::Retryable, FaultPlace::LocalDisk)
    );
    assert!(error.message.contains(gone.to_str().unwrap()), "{error}");
    assert!(reduce.lost.is_empty(), "no map output is reported lost");
    std::fs::create_dir(&gone).unwrap();
}
