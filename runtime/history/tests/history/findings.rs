//! Causes of slowness, planted in a healthy job: each is found, and a healthy job has none.

use napreduce_engine::{AttemptId, AttemptState, JobId, Primitive, TaskId, TaskKind, WorkerId};
use napreduce_history::{Finding, FindingCode, findings_of};
use napreduce_protocol::{
    AttemptFigures, AttemptMoments, AttemptSummary, JobDetail, JobPhase, JobProgress, JobSummary,
    LiveAttempt, PhaseProgress, PreemptionEnd, PreemptionSummary, TaskPhase, TaskSummary,
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

const MAPS: u32 = 12;
const REDUCES: u32 = 5;
const WORKERS: u32 = 3;

/// A task as it ran. Times are in milliseconds since the submission.
#[derive(Debug, Clone, Copy)]
struct Ran {
    kind: TaskKind,
    index: u32,
    worker: u32,
    launched: u64,
    /// When its process began to work.
    started: u64,
    /// `None` while it runs.
    ended: Option<u64>,
    records: u64,
    bytes: u64,
}

/// A job whose tasks tests change before they look for findings.
#[derive(Debug, Clone)]
struct Planted {
    ran: Vec<Ran>,
    maps: u32,
    reduces: u32,
    /// The end of the job; `None` while it runs.
    ended: Option<u64>,
    now: u64,
    counters: Vec<(&'static str, u64)>,
    preemptions: Vec<PreemptionSummary>,
}

impl Planted {
    /// Twelve maps of about 10 s, from 0 to 10 s, then five reduces of about 4 s.
    fn healthy() -> Planted {
        let map = |index: u32| Ran {
            kind: TaskKind::Map,
            index,
            worker: 1 + index % WORKERS,
            launched: 0,
            started: 50,
            ended: Some(9_000 + u64::from(index) * 90),
            records: 500_000,
            bytes: 64 << 20,
        };
        let reduce = |index: u32| Ran {
            kind: TaskKind::Reduce,
            launched: 9_000,
            started: 9_050,
            ended: Some(14_000 + u64::from(index) * 100),
            records: 1_000_000 + u64::from(index) * 1_000,
            bytes: 30 << 20,
            ..map(index)
        };
        Planted {
            ran: (0..MAPS).map(map).chain((0..REDUCES).map(reduce)).collect(),
            maps: MAPS,
            reduces: REDUCES,
            ended: Some(15_000),
            now: 90_000,
            counters: vec![
                ("MAP_OUTPUT_RECORDS", 5_000_000),
                ("MAP_OUTPUT_BYTES", 500 << 20),
                ("SPILLED_RECORDS", 5_100_000),
            ],
            preemptions: Vec::new(),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Planted)) -> Planted {
        change(&mut self);
        self
    }

    fn map(&mut self, index: u32) -> &mut Ran {
        &mut self.ran[index as usize]
    }

    fn reduce(&mut self, index: u32) -> &mut Ran {
        let maps = self.maps;
        &mut self.ran[(maps + index) as usize]
    }

    fn suspended(&mut self, index: u32, from: u64, until: u64) {
        let id = attempt(TaskKind::Map, index);
        let wanted = PreemptionSummary::wanted(from * 1_000, id, WorkerId(1), Primitive::Suspend);
        self.preemptions.push(PreemptionSummary {
            freed_micros: Some(from * 1_000),
            suspended_millis: Some(until - from),
            beneficiary: Some(JobId(9)),
            end: Some(PreemptionEnd::Suspended),
            ..wanted
        });
    }

    fn detail(&self) -> JobDetail {
        let tasks = |tasks| PhaseProgress {
            tasks,
            ..PhaseProgress::default()
        };
        let progress = JobProgress {
            map: tasks(self.maps),
            reduce: tasks(self.reduces),
            ..JobProgress::default()
        };
        let mut detail = JobDetail::new(JobSummary {
            job: JobId(7),
            name: "count".to_owned(),
            user: "ada".to_owned(),
            queue: "default".to_owned(),
            priority: 0,
            phase: JobPhase::Succeeded,
            reason: None,
            submitted_millis: 0,
            ended_millis: self.ended,
            progress,
            output: "out".into(),
            unrecorded: None,
        });
        detail.attempts = self.ran.iter().map(summary).collect();
        detail.preemptions = self.preemptions.clone();
        for (name, value) in &self.counters {
            detail.counters.add(name, *value);
        }
        detail
    }

    fn findings(&self) -> Vec<Finding> {
        let tasks: Vec<TaskSummary> = self
            .ran
            .iter()
            .filter(|ran| ran.ended.is_none())
            .map(live)
            .collect();
        findings_of(&self.detail(), &tasks, self.now * 1_000)
    }

    /// Expects one finding, with this text.
    #[track_caller]
    fn check(&self, code: FindingCode, text: &str) -> Finding {
        let findings = self.findings();
        let all: Vec<(FindingCode, &str)> = findings
            .iter()
            .map(|finding| (finding.code, finding.text.as_str()))
            .collect();
        assert_eq!(all, [(code, text)]);
        findings[0].clone()
    }

    #[track_caller]
    fn check_none(&self) {
        assert_eq!(self.findings(), []);
    }
}

fn attempt(kind: TaskKind, index: u32) -> AttemptId {
    AttemptId {
        task: TaskId {
            job: JobId(7),
            kind,
            index,
        },
        number: 1,
    }
}

fn summary(ran: &Ran) -> AttemptSummary {
    let micros = |millis: u64| millis * 1_000;
    AttemptSummary {
        attempt: attempt(ran.kind, ran.index),
        worker: WorkerId(ran.worker),
        worker_name: format!("w{}", ran.worker),
        launched_millis: ran.launched,
        ended_millis: ran.ended,
        end: ran.ended.map(|_| "succeeded".to_owned()),
        figures: ran.ended.map(|_| AttemptFigures {
            input_bytes: ran.bytes,
            input_records: ran.records,
            ..AttemptFigures::default()
        }),
        moments: Some(AttemptMoments {
            launched: micros(ran.launched),
            started: Some(micros(ran.started)),
            ended: ran.ended.map(micros),
        }),
    }
}

fn live(ran: &Ran) -> TaskSummary {
    let attempt = attempt(ran.kind, ran.index);
    let live = LiveAttempt {
        attempt,
        worker: WorkerId(ran.worker),
        state: AttemptState::Running,
        launched_millis: 1_790_000_000_000,
        reason: None,
        bytes_done: 0,
        bytes_total: ran.bytes,
    };
    TaskSummary {
        live: vec![live],
        ..TaskSummary::new(attempt.task, TaskPhase::Running, 1)
    }
}

#[test]
fn skewed_reduce_is_found_with_its_share_and_delay() {
    let job = Planted::healthy().with(|job| {
        let reduce = job.reduce(2);
        (reduce.records, reduce.ended) = (34_000_000, Some(24_000));
        job.ended = Some(24_500);
    });
    let finding = job.check(
        FindingCode::Skew,
        "job_0007_r_0002 read 89 % of all records, 34 times the median of the others, and held the job up by 9.6 s",
    );
    assert_eq!(finding.about, ["job_0007_r_0002"]);
    assert_eq!(
        finding.figures.into_iter().collect::<Vec<_>>(),
        [
            ("held_up_millis", 9_600),
            ("median_records", 1_002_000),
            ("records", 34_000_000),
            ("total_records", 38_008_000)
        ]
    );
}

#[test]
fn skew_of_two_reduces_is_found() {
    let job = Planted::healthy().with(|job| {
        job.reduces = 2;
        job.ran.truncate((job.maps + job.reduces) as usize);
        (job.reduce(0).records, job.reduce(0).ended) = (100_000, Some(10_000));
        (job.reduce(1).records, job.reduce(1).ended) = (9_900_000, Some(24_000));
        job.ended = Some(24_500);
    });
    job.check(
        FindingCode::Skew,
        "job_0007_r_0001 read 99 % of all records, 99 times the median of the others, and held the job up by 14.0 s",
    );
}

#[test]
fn reduce_that_reads_everything_is_found() {
    let job = Planted::healthy().with(|job| {
        for index in 0..REDUCES {
            let reduce = job.reduce(index);
            (reduce.records, reduce.bytes, reduce.ended) = (0, 0, Some(9_100));
        }
        let reduce = job.reduce(2);
        (reduce.records, reduce.ended) = (4_000_000, Some(24_000));
        job.ended = Some(24_500);
    });
    job.check(
        FindingCode::Skew,
        "job_0007_r_0002 read 100 % of all records, while the median of the others is nothing, and held the job up by 14.0 s",
    );
}

#[test]
fn hot_key_is_found_in_the_only_reduce_that_can_have_it() {
    let job = Planted::healthy().with(|job| {
        let reduce = job.reduce(2);
        (reduce.records, reduce.ended) = (34_000_000, Some(24_000));
        job.ended = Some(24_500);
        // Half of a usual reduce is no hot key, and any of the reduces may have it.
        job.counters
            .extend([("HOT_KEY \"the\"", 33_000_000), ("HOT_KEY \"of\"", 500_000)]);
    });
    let findings = job.findings();
    assert_eq!(
        findings
            .iter()
            .map(|finding| finding.code)
            .collect::<Vec<_>>(),
        [FindingCode::Skew, FindingCode::HotKey]
    );
    assert_eq!(
        findings[1].text,
        "job_0007_r_0002 has the key \"the\": 97 % of its records, 87 % of all"
    );
    assert_eq!(findings[1].figures["key_records"], 33_000_000);
    let healthy = Planted::healthy().with(|job| job.counters.push(("HOT_KEY \"the\"", 900_000)));
    healthy.check_none();
}

#[test]
fn skew_that_delays_nothing_is_no_finding() {
    Planted::healthy()
        .with(|job| job.reduce(2).records = 34_000_000)
        .check_none();
}

#[test]
fn skewed_reduce_is_found_while_it_runs() {
    let job = Planted::healthy().with(|job| {
        let reduce = job.reduce(2);
        (reduce.bytes, reduce.ended) = (900 << 20, None);
        (job.ended, job.now) = (None, 30_000);
    });
    job.check(
        FindingCode::Skew,
        "job_0007_r_0002 reads 900 MiB, 88 % of all input, 30 times the median of the others, and has held the job up for 15.6 s",
    );
}

#[test]
fn skewed_map_is_found() {
    let job = Planted::healthy().with(|job| {
        let map = job.map(5);
        (map.bytes, map.ended) = (4 << 30, Some(60_000));
        (0..REDUCES).for_each(|index| job.reduce(index).ended = Some(64_000));
        job.ended = Some(65_000);
        job.ran.retain(|ran| ran.kind == TaskKind::Map);
        job.reduces = 0;
    });
    job.check(
        FindingCode::Skew,
        "job_0007_m_0005 read 4.00 GiB, 85 % of all input, 64 times the median of the others, and held the job up by 50.0 s",
    );
}

#[test]
fn straggler_is_found_while_it_runs() {
    let job = Planted::healthy().with(|job| {
        job.map(4).ended = None;
        job.ran.truncate(MAPS as usize);
        (job.ended, job.now) = (None, 45_000);
    });
    let finding = job.check(
        FindingCode::Straggler,
        "job_0007_m_0004.1 has run for 45.0 s on worker_0002 (w2), 4.7 times the median of the others, and is the last of its maps, \
         which have waited 35.0 s for it",
    );
    assert_eq!(finding.about, ["job_0007_m_0004.1", "worker_0002"]);
    let remedy = finding.remedy.expect("a remedy");
    assert_eq!(
        remedy,
        "see what it does: nap job logs job_0007 m_0004.1 --stderr"
    );
    let others_run = job.with(|job| job.map(3).ended = None);
    assert_eq!(others_run.findings().len(), 2, "both run");
}

#[test]
fn task_that_the_phase_waited_for_is_found() {
    let job = Planted::healthy().with(|job| {
        job.reduce(3).ended = Some(40_000);
        job.ended = Some(40_500);
    });
    job.check(
        FindingCode::Straggler,
        "job_0007_r_0003.1 took 30.0 s on worker_0001 (w1), 7.2 times the median of the others, and was the last of its reduces, \
         which waited 25.6 s for it",
    );
}

#[test]
fn suspended_task_is_preempted_and_no_straggler() {
    let job = Planted::healthy().with(|job| {
        job.map(4).ended = None;
        job.suspended(4, 2_000, 40_000);
        job.ran.truncate(MAPS as usize);
        (job.ended, job.now) = (None, 40_000);
    });
    let finding = job.check(
        FindingCode::Preempted,
        "job_0007 was preempted once for job_0009: its tasks were suspended for 38.0 s",
    );
    assert_eq!(finding.about, ["job_0009"]);
    assert!(
        finding
            .remedy
            .expect("it runs")
            .ends_with(": nap job set job_0007 --priority N")
    );
}

#[test]
fn lost_work_is_found() {
    let job = Planted::healthy().with(|job| {
        let wanted =
            PreemptionSummary::wanted(1, attempt(TaskKind::Map, 1), WorkerId(1), Primitive::Kill);
        let killed = PreemptionSummary {
            work_lost_millis: 12_000,
            ..wanted
        };
        job.preemptions = vec![killed.clone(), killed];
    });
    job.check(
        FindingCode::Preempted,
        "job_0007 was preempted 2 times: its tasks lost 24.0 s of work",
    );
    let job = job.with(|job| {
        let killed = |job_id| PreemptionSummary {
            beneficiary: Some(JobId(job_id)),
            ..job.preemptions[0].clone()
        };
        job.preemptions = vec![killed(9), killed(10), killed(9)];
    });
    job.check(
        FindingCode::Preempted,
        "job_0007 was preempted 3 times, mostly for job_0009: its tasks lost 36.0 s of work",
    );
}

#[test]
fn slow_worker_is_found_by_its_speed() {
    let job = Planted::healthy().with(|job| {
        let maps = (0..60).map(|index| {
            let worker = 1 + index % WORKERS;
            let wave = u64::from(index / WORKERS);
            // All its tasks are slow, so that none of them is an outlier.
            let took = if worker == 3 { 2_500 } else { 1_000 };
            let launched = wave * took;
            let started = launched + 50;
            let ended = Some(launched + took + u64::from(index));
            Ran {
                kind: TaskKind::Map,
                index,
                worker,
                launched,
                started,
                ended,
                records: 1,
                bytes: 64 << 20,
            }
        });
        job.ran = maps.collect();
        (job.maps, job.reduces, job.ended) = (60, 0, Some(50_000));
    });
    let finding = job.check(
        FindingCode::SlowWorker,
        "worker_0003 (w3) ran 20 maps at 41 % of the speed of the other workers, which cost 29.8 s",
    );
    assert_eq!(
        (finding.figures["speed_percent"], finding.figures["tasks"]),
        (41, 20)
    );
}

#[test]
fn small_files_are_found_by_starting_costs() {
    let many = |bytes| {
        Planted::healthy().with(|job| {
            let maps = (0..1_000).map(|index| {
                let launched = u64::from(index) * 30;
                let started = launched + 60;
                let ended = Some(launched + 70);
                let worker = 1 + index % WORKERS;
                Ran {
                    kind: TaskKind::Map,
                    index,
                    worker,
                    launched,
                    started,
                    ended,
                    records: 9,
                    bytes,
                }
            });
            job.ran = maps.collect();
            (job.maps, job.reduces, job.ended) = (1_000, 0, Some(31_000));
        })
    };
    let text =
        "1000 maps read 32.0 KiB each (median); starting them took 1 min 0 s, their work 10.0 s";
    many(32 << 10).check(FindingCode::SmallFiles, text);
    many(64 << 20).check_none();
}

#[test]
fn reduces_that_wait_for_maps_are_found() {
    let job = Planted::healthy().with(|job| {
        (0..REDUCES).for_each(|index| job.reduce(index).launched = 500);
    });
    let finding = job.check(
        FindingCode::WaitingForMaps,
        "5 reduces held their slots for 47.4 s while they waited for maps, 69 % of their time",
    );
    assert_eq!(finding.figures["waited_millis"], 47_450);
}

#[test]
fn spills_are_found_by_records_written_again() {
    let job = Planted::healthy().with(|job| job.counters[2].1 = 12_000_000);
    let finding = job.check(
        FindingCode::Spills,
        "sorting and merging wrote a record of map output 2.4 times to disk",
    );
    assert_eq!(finding.figures["spilled_records"], 12_000_000);
    job.with(|job| job.counters[1].1 = 20 << 20).check_none();
}

#[test]
fn findings_of_one_code_are_the_costliest() {
    let job = Planted::healthy().with(|job| {
        for index in 0..5 {
            let map = job.map(index);
            (map.ended, map.launched) = (None, 1_000 * u64::from(index));
        }
        job.ran.truncate(MAPS as usize);
        (job.ended, job.now) = (None, 90_000);
    });
    let found: Vec<String> = job
        .findings()
        .into_iter()
        .map(|finding| finding.about[0].clone())
        .collect();
    assert_eq!(
        found,
        [
            "job_0007_m_0000.1",
            "job_0007_m_0001.1",
            "job_0007_m_0002.1"
        ]
    );
}

/// A job in waves over slots, with the variance of a busy cluster: tasks differ by a quarter (one standard deviation),
/// workers by a quarter, partitions by a third.
fn varied(random: &mut Pcg64) -> Planted {
    let usual = |random: &mut Pcg64| {
        let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
        (0.25 * normal).exp()
    };
    let maps = random.random_range(2..200);
    let reduces = random.random_range(1..40);
    let workers: u32 = random.random_range(1..8);
    let speeds: Vec<f64> = (0..workers)
        .map(|_| random.random_range(0.8..1.25))
        .collect();
    let slots: u32 = workers * random.random_range(1..4);
    let task_millis = 10_f64.powf(random.random_range(2.3..5.0));
    let mut ran = Vec::new();
    let mut phase = |kind, tasks: u32, begin: u64, random: &mut Pcg64| {
        let mut free = vec![begin; slots as usize];
        for index in 0..tasks {
            let slot = (0..free.len())
                .min_by_key(|slot| free[*slot])
                .expect("a slot");
            let worker = slot as u32 % workers;
            let size = random.random_range(0.7..1.3);
            let took = task_millis * size * usual(random) * speeds[worker as usize];
            let launched = free[slot];
            free[slot] = launched + 40 + took as u64;
            ran.push(Ran {
                kind,
                index,
                worker: worker + 1,
                launched,
                started: launched + 40,
                ended: Some(free[slot]),
                records: (1e6 * size) as u64,
                bytes: (5e7 * size) as u64,
            });
        }
        free.into_iter().max().expect("slots")
    };
    let maps_end = phase(TaskKind::Map, maps, 0, random);
    let end = phase(TaskKind::Reduce, reduces, maps_end, random);
    Planted {
        ran,
        maps,
        reduces,
        ended: Some(end),
        now: end,
        ..Planted::healthy()
    }
}

#[test]
fn healthy_jobs_have_no_findings() {
    Planted::healthy().check_none();
    let mut random = Pcg64::seed_from_u64(45);
    for number in 0..500 {
        let job = varied(&mut random);
        assert_eq!(job.findings(), [], "job {number}");
        // The same job, looked at half way.
        let half = job.ended.map_or(0, |ended| ended / 2);
        let running = job.with(|job| {
            job.ran.retain(|ran| ran.launched < half);
            for ran in &mut job.ran {
                ran.ended = ran.ended.filter(|ended| *ended <= half);
            }
            (job.ended, job.now) = (None, half);
        });
        assert_eq!(running.findings(), [], "job {number} at half time");
    }
}

/// Adds failed first attempts of maps to a job; their second attempts succeeded.
fn with_failures(detail: &mut JobDetail, failures: &[(u32, u32)]) {
    for (map, worker) in failures {
        let task = TaskId {
            job: JobId(7),
            kind: TaskKind::Map,
            index: *map,
        };
        for attempt in &mut detail.attempts {
            if attempt.attempt.task == task {
                attempt.attempt.number = 2;
            }
        }
        let failed = Ran {
            worker: *worker,
            ended: Some(100),
            ..*Planted::healthy().map(*map)
        };
        let end = Some("exit status 3".to_owned());
        detail.attempts.push(AttemptSummary {
            end,
            figures: None,
            ..summary(&failed)
        });
    }
}

fn failing_workers(detail: &JobDetail) -> Vec<Finding> {
    let mut findings = findings_of(detail, &[], 90_000_000);
    findings.retain(|finding| finding.code == FindingCode::FailingWorker);
    findings
}

#[test]
fn worker_whose_failed_tasks_succeed_elsewhere_is_found() {
    let mut detail = Planted::healthy().detail();
    with_failures(&mut detail, &[(0, 4), (1, 4), (2, 4)]);
    let found = failing_workers(&detail);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0].text,
        "3 attempts of 3 tasks failed on worker_0004 (w4), and the tasks succeeded on other workers; last: \
         job_0007_m_0002.1: exit status 3"
    );
    assert_eq!(
        found[0].remedy.as_deref(),
        Some(
            "see why: nap job logs job_0007 m_0002.1 --stderr; take the worker out: nap worker drain worker_0004"
        )
    );
}

#[test]
fn job_that_fails_everywhere_blames_no_worker() {
    let mut detail = Planted::healthy().detail();
    // One failure on each worker, as of a program that sometimes fails.
    with_failures(
        &mut detail,
        &[(0, 2), (1, 3), (2, 1), (3, 2), (4, 3), (5, 1)],
    );
    assert_eq!(failing_workers(&detail), []);
    // Many failures of tasks that succeed nowhere.
    let mut detail = Planted::healthy().detail();
    with_failures(&mut detail, &[(0, 4), (1, 4), (2, 4)]);
    detail
        .attempts
        .retain(|attempt| attempt.attempt.task.index > 2 || !attempt.has_succeeded());
    assert_eq!(failing_workers(&detail), []);
}
