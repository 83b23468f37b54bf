//! Inputs of reduces that start from a checkpoint: fetched inputs are not fetched again, merged inputs are
//! not fetched, and unusable checkpoints are rejected.

use napreduce_data::{READ_MAX, ReduceInput, ReduceSettings, SavePlace, SavedReduceInput};
use napreduce_protocol::CounterValues;
use napreduce_task::{Checkpoint, CheckpointDirectory, CheckpointStage, NeededInput};

use super::*;

fn reduce_attempt(number: u32) -> AttemptId {
    attempt(TaskKind::Reduce, 0, number)
}

impl Reduce {
    /// Starts the next attempt of the same task from the checkpoint of this one.
    fn next(&self) -> Reduce {
        let current = self.context.attempt();
        let next = AttemptId {
            number: current.number + 1,
            ..current
        };
        Reduce {
            context: Arc::new(TaskContext::new(next, 64 << 20)),
            checkpoints: self.checkpoints.clone(),
            restore: Some(current),
            ..Reduce::new(self.maps)
        }
    }

    fn saved(&self) -> Checkpoint {
        let directory = self.checkpoints.join(self.context.attempt().to_string());
        Checkpoint::read(&directory, self.context.attempt().task).expect("a checkpoint")
    }

    /// Fetches these inputs and then writes a checkpoint.
    fn checkpoint_after(&mut self, named: Vec<MapInput>) {
        let arrived = self.arrived.clone();
        let context = Arc::clone(&self.context);
        let scratch = self.scratch.path().to_owned();
        let files: Vec<PathBuf> = named
            .iter()
            .map(|input| scratch.join(format!("fetched-{}.segment", input.attempt)))
            .collect();
        let asking = std::thread::spawn(move || {
            while !files.iter().all(|file| file.exists()) {
                std::thread::yield_now();
            }
            context.gate().checkpoint();
            arrived.send(InputEvent::GateRequest).expect("it listens");
        });
        let gathered = self
            .gather_task(named, |lost| panic!("{lost:?} should not be lost"))
            .expect("no error");
        asking.join().expect("no panic");
        let FetchedInputs::Checkpointed(saved) = gathered else {
            panic!("{gathered:?} is no checkpoint")
        };
        assert!(saved.bytes > 0);
    }

    fn fetched(&self) -> Vec<AttemptId> {
        let CheckpointStage::FetchInputs { fetched } = self.saved().stage else {
            panic!("another stage")
        };
        fetched.iter().map(|input| input.attempt).collect()
    }
}

#[test]
fn restored_reduce_does_not_refetch_inputs() {
    let served = Served::start().with_maps(6, 2_000);
    let mut first = Reduce::new(6);
    first.checkpoint_after(served.inputs(4));
    let fetched = first.fetched();
    // A file that was just sealed may not have been reported yet.
    assert!(fetched.len() >= 3, "{fetched:?}");
    let mut second = first.next();
    second.checkpoint_after(vec![remote(map(4), &served.address)]);
    assert!(
        second.fetched().len() >= fetched.len(),
        "the second checkpoint names files of the first"
    );
    let mut third = second.next();
    let gathered = complete(
        third
            .gather_task(served.inputs(6), |_| vec![])
            .expect("no error"),
    );
    check_equal(&gathered.inputs, &served.shelf, 0);
    assert!(!gathered.inputs_are_partial);
    assert_eq!(
        gathered.restore, None,
        "the reduce itself begins at its beginning"
    );
    let in_checkpoints = gathered
        .inputs
        .iter()
        .filter(|(_, path)| path.starts_with(&third.checkpoints));
    assert_eq!(in_checkpoints.count(), second.fetched().len());
    assert_eq!(third.context.refusal(), None);
}

#[test]
fn damaged_fetched_file_is_fetched_again() {
    let served = Served::start().with_maps(3, 500);
    for damage in ["short", "missing", "other"] {
        let mut first = Reduce::new(4);
        first.checkpoint_after(served.inputs(3));
        let CheckpointStage::FetchInputs { fetched } = first.saved().stage else {
            panic!("another stage")
        };
        let path = first.checkpoints.join(&fetched[0].file);
        match damage {
            "short" => std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(100)
                .unwrap(),
            "missing" => std::fs::remove_file(&path).unwrap(),
            _ => {
                let _ = std::fs::copy(first.checkpoints.join(&fetched[1].file), &path).unwrap();
            }
        }
        let mut second = first.next();
        second.maps = 3;
        check_equal(&second.gather(served.inputs(3)), &served.shelf, 0);
        let refusal = second.context.refusal().expect("it was refused");
        assert!(
            refusal.contains("fetched-job_0001_m_000"),
            "{damage}: {refusal}"
        );
    }
}

fn settings(folder: &Path, segments: Vec<PathBuf>) -> ReduceSettings {
    ReduceSettings {
        consolidated: Vec::new(),
        segments,
        partition: 0,
        memory: 8 << 20,
        scratch: folder.to_owned(),
        label: reduce_attempt(2).to_string(),
        fan_in: 64,
        read_max: READ_MAX,
        grouping: None,
        resume: None,
    }
}

/// Returns the keys of the remaining groups, at most `most`.
fn keys(input: &mut ReduceInput, most: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    while keys.len() < most && input.next_group().unwrap() {
        keys.push(input.group_key().to_vec());
    }
    keys
}

/// Saves a merge of all segments after a share of its groups; returns its position and the remaining keys.
fn saved_merge(
    served: &Served,
    reduce: &Reduce,
    permille: usize,
) -> (SavedReduceInput, Vec<Vec<u8>>) {
    let folder = reduce.scratch.path();
    let paths: Vec<PathBuf> = (0..reduce.maps)
        .map(|index| served.shelf.path(map(index)))
        .collect();
    let all = keys(
        &mut ReduceInput::open(settings(folder, paths.clone())).unwrap(),
        usize::MAX,
    );
    let mut input = ReduceInput::open(settings(folder, paths)).unwrap();
    let done = keys(&mut input, all.len() * permille / 1000).len();
    let directory = reduce
        .checkpoints
        .join(reduce.context.attempt().to_string());
    let made = CheckpointDirectory::make(&directory, false).unwrap();
    let place = SavePlace {
        base: reduce.checkpoints.clone(),
        folder: reduce.context.attempt().to_string().into(),
        durable: false,
    };
    let position = input.save(&place).unwrap();
    let mut inputs: Vec<NeededInput> = (0..reduce.maps)
        .map(|index| NeededInput {
            attempt: map(index),
            first_block: None,
        })
        .collect();
    for (index, block) in position.blocks_needed() {
        inputs[index].first_block = Some(block);
    }
    let stage = CheckpointStage::Reducing {
        inputs,
        position: position.clone(),
        in_group: false,
    };
    made.finish(&Checkpoint {
        attempt: reduce.context.attempt(),
        stage,
        pieces: Vec::new(),
        counters: CounterValues::default(),
        active_millis: 77,
        user_state: None,
        format_state: Vec::new(),
    })
    .unwrap();
    (position, all[done..].to_vec())
}

#[test]
fn restored_merge_fetches_only_the_rest() {
    let served = Served::start().with_maps(5, 20_000);
    let mut whole = Reduce::new(5);
    whole.gather(served.inputs(5));
    let all = whole.count(Counter::ShuffleNetworkBytes);
    for permille in [0, 500, 900, 1000] {
        let first = Reduce::new(5);
        let (position, left) = saved_merge(&served, &first, permille);
        let mut second = first.next();
        let gathered = complete(
            second
                .gather_task(served.inputs(5), |_| vec![])
                .expect("no error"),
        );
        assert_eq!(second.context.refusal(), None);
        assert_eq!(gathered.inputs_are_partial, permille > 0);
        let directory = first.checkpoints.join(reduce_attempt(1).to_string());
        assert_eq!(
            gathered.restore,
            Some(directory),
            "the body continues from it"
        );
        let fetched = second.count(Counter::ShuffleNetworkBytes);
        let block = 128 << 10;
        let most = all * (1000 - permille as u64) / 1000 + 5 * (block + block / 4);
        assert!(
            fetched <= most,
            "{fetched} of {all} bytes at {permille} permille"
        );
        let segments = gathered
            .inputs
            .iter()
            .map(|(_, path)| path.clone())
            .collect();
        let resume = Some((position, first.checkpoints.clone()));
        let settings = ReduceSettings {
            resume,
            ..settings(second.scratch.path(), segments)
        };
        let mut rest = ReduceInput::open(settings).unwrap();
        assert!(
            keys(&mut rest, usize::MAX) == left,
            "other groups at {permille} permille"
        );
    }
}

#[test]
fn replaced_output_invalidates_merge_positions() {
    let served = Served::start().with_maps(3, 20_000);
    let first = Reduce::new(3);
    saved_merge(&served, &first, 500);
    let again = attempt(TaskKind::Map, 1, 2);
    served.shelf.seal(again, 20_000, BlockCompression::None);
    let mut second = first.next();
    // The others are fetched before the output that conflicts with the checkpoint is announced.
    let later = second.arrived.clone();
    let scratch = second.scratch.path().to_owned();
    let address = served.address.clone();
    let naming = std::thread::spawn(move || {
        let is_fetched = |index: u32| {
            std::fs::read_dir(&scratch).unwrap().flatten().any(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with(&format!("fetched-{}-from-", map(index)))
                    && name.ends_with(".segment")
            })
        };
        while !(is_fetched(0) && is_fetched(2)) {
            std::thread::yield_now();
        }
        later
            .send(InputEvent::Named(vec![remote(again, &address)]))
            .unwrap();
    });
    let named = vec![
        remote(map(0), &served.address),
        remote(map(2), &served.address),
    ];
    let gathered = complete(second.gather_task(named, |_| vec![]).expect("no error"));
    naming.join().unwrap();
    check_equal(&gathered.inputs, &served.shelf, 0);
    assert_eq!(
        (gathered.inputs_are_partial, gathered.restore),
        (false, None)
    );
    let refusal = second.context.refusal().expect("it was refused");
    assert!(
        refusal.contains("which job_0001_m_0001.2 has replaced"),
        "{refusal}"
    );
}

#[test]
fn checkpoint_during_restore_keeps_merge_position() {
    let served = Served::start().with_maps(3, 20_000);
    let first = Reduce::new(3);
    let (position, _) = saved_merge(&served, &first, 500);
    let mut second = first.next();
    second.context.gate().checkpoint();
    second.arrived.send(InputEvent::GateRequest).unwrap();
    let gathered = second
        .gather_task(served.inputs(2), |_| vec![])
        .expect("no error");
    assert!(
        matches!(gathered, FetchedInputs::Checkpointed(_)),
        "{gathered:?}"
    );
    let saved = second.saved();
    let CheckpointStage::Reducing {
        position: again, ..
    } = saved.stage
    else {
        panic!("another stage")
    };
    assert_eq!((again, saved.attempt), (position, reduce_attempt(2)));
    assert!(saved.active_millis >= 77);
}

#[test]
fn unusable_checkpoint_is_refused() {
    let served = Served::start().with_maps(2, 500);
    let first = Reduce::new(2);
    let mut second = first.next();
    check_equal(&second.gather(served.inputs(2)), &served.shelf, 0);
    let refusal = second.context.refusal().expect("a rejected checkpoint");
    assert!(refusal.starts_with("cannot open "), "{refusal}");
    // A checkpoint of a reduce with other inputs.
    let third = Reduce::new(3);
    let more = Served::start().with_maps(3, 500);
    saved_merge(&more, &third, 500);
    let mut fourth = third.next();
    fourth.maps = 2;
    check_equal(&fourth.gather(served.inputs(2)), &served.shelf, 0);
    assert!(
        fourth
            .context
            .refusal()
            .expect("it does not fit")
            .contains("of 3 inputs, not 2")
    );
}
