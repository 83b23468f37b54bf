//! The plain path: a job whose worker does everything right, from submission to its end.
//!
//! Owns the order of effects as the driver sees them. Everything that can go wrong is in the other files.

use napreduce_core::{
    Effect, Engine, EngineSettings, Event, Fifo, JobId, JobOutcome, JobSpec, MapSpec, Order, Report, Slots,
    Time, WorkerId,
};

/// Carries out orders at once, as a perfect worker would, and returns what happened, one line each.
fn run_to_the_end(engine: &mut Engine, first: Event) -> Vec<String> {
    let mut lines = Vec::new();
    let mut events = std::collections::VecDeque::from([first]);
    let mut now = 0;
    while let Some(event) = events.pop_front() {
        now += 1;
        for effect in engine.handle(Time(now), event) {
            engine.check().expect("every invariant holds");
            match effect {
                Effect::Send { worker, order } => {
                    let (attempt, reports): (_, &[Report]) = match &order {
                        Order::Launch { attempt, inputs, .. } => {
                            lines.push(format!("launch {attempt} reading {} outputs", inputs.len()));
                            (*attempt, &[Report::Started, Report::CommitRequested])
                        }
                        Order::Commit { attempt } => {
                            lines.push(format!("commit {attempt}"));
                            (*attempt, &[Report::Done])
                        }
                        other => panic!("unexpected {other:?}"),
                    };
                    for report in reports {
                        events.push_back(Event::Reported { worker, attempt, report: report.clone() });
                    }
                }
                Effect::JobEnded { job, outcome } => lines.push(format!("{job} {outcome:?}")),
                Effect::Record(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    lines
}

#[test]
fn a_map_only_job_launches_commits_and_ends() {
    let settings = EngineSettings { strict: true, ..EngineSettings::default() };
    let mut engine = Engine::new(Box::new(Fifo::default()), settings);
    engine.handle(Time(0), Event::WorkerJoined { worker: WorkerId(1), slots: Slots { map: 1, reduce: 1 } });
    let spec = JobSpec {
        name: "grep".into(),
        user: "ada".into(),
        queue: "default".into(),
        priority: 0,
        deadline: None,
        maps: vec![MapSpec { bytes: 10, preferred: vec![] }; 2],
        reduces: 0,
        attempts_max: 4,
        slowstart_permille: 1000,
    };
    let lines = run_to_the_end(&mut engine, Event::JobSubmitted { job: JobId(1), spec });
    assert_eq!(
        lines,
        [
            "launch job_0001_m_0000.1 reading 0 outputs",
            "commit job_0001_m_0000.1",
            "launch job_0001_m_0001.1 reading 0 outputs",
            "commit job_0001_m_0001.1",
            &format!("job_0001 {:?}", JobOutcome::Succeeded),
        ]
    );
}
