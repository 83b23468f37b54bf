//! The actions of a scripted policy, parsed from the words of a scenario.

use crate::{Action, JobId, Preempt, Primitive, Release, Start, TaskEviction, TaskKind, Time};

use crate::scenarios::names::{attempt, millis, number, task, worker};

/// Parses `release 1 count 2 youngest for 3`: map slots of job 1, by kill.
fn release(words: &[&str]) -> Release {
    let value = |of: &str| {
        words
            .windows(2)
            .find(|pair| pair[0] == of)
            .map(|pair| pair[1])
    };
    let eviction = match words[4] {
        "shortest" => TaskEviction::ShortestRemaining,
        "longest" => TaskEviction::LongestRemaining,
        "youngest" => TaskEviction::Youngest,
        "random" => TaskEviction::Random,
        "least" => TaskEviction::LeastProgress,
        other => panic!("'{other}' is no eviction"),
    };
    Release {
        job: JobId(number(words[1])),
        kind: TaskKind::Map,
        count: number(words[3]),
        eviction,
        primitive: Primitive::Kill,
        grace: None,
        reason: "the script says so".to_owned(),
        beneficiary: value("for").map(|job| JobId(number(job))),
    }
}

/// Parses the name of a primitive in a scenario.
pub fn primitive(name: &str) -> Primitive {
    Primitive::of_word(name).unwrap_or_else(|| panic!("'{name}' is no primitive"))
}

/// Parses `suspend m0.1 grace 5ms for 2` and the other actions after `policy`.
pub fn action(words: &[&str]) -> Action {
    let value = |of: &str| {
        words
            .windows(2)
            .find(|pair| pair[0] == of)
            .map(|pair| pair[1])
    };
    let primitive = match words[0] {
        "cancel" => {
            return Action::Cancel {
                attempt: attempt(words[1]),
            };
        }
        "resume" => {
            return Action::Resume {
                attempt: attempt(words[1]),
            };
        }
        "decline" => {
            return Action::Decline {
                reason: "not now".into(),
            };
        }
        "release" => return Action::Release(release(words)),
        "reserve" => {
            let until = Time(0) + millis(value("until").expect("reserve 1 for 2 until 5ms"));
            let job = JobId(number(value("for").expect("reserve 1 for 2 until 5ms")));
            return Action::Reserve {
                worker: worker(words[1]),
                kind: TaskKind::Map,
                job,
                until,
            };
        }
        "wake" => return Action::WakeAt(Time(0) + millis(words[1])),
        "launch" => {
            let from = value("from").map_or(Start::Fresh, |of| Start::Checkpoint(attempt(of)));
            let worker = worker(value("on").expect("launch m0 on 1"));
            return Action::Launch {
                task: task(words[1]),
                worker,
                from,
            };
        }
        how => primitive(how),
    };
    Action::Preempt(Preempt {
        attempt: attempt(words[1]),
        primitive,
        grace: value("grace").map(millis),
        reason: "the script says so".to_owned(),
        beneficiary: value("for").map(|job| JobId(number(job))),
    })
}
