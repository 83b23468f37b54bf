//! A scenario language for tests of the engine and of policies. Each line is an event, a policy action or a
//! check. The effects that the engine must return follow after `>` on the next lines, separated by
//! semicolons; a line without `>` must have none.
//!
//! Names are those of `names`: `m0` is map 0 of job 1, `r0.2` is attempt 2 at reduce 0, and `2:m0.1` belongs
//! to job 2. Workers and jobs are numbers. A reason follows after a colon. Brackets mark optional words. In
//! the table below, the left column is the scenario and the right column explains it.
//!
//! ```text
//! worker 1 2+1 [on ada] [rack a]  adds a worker with 2 map slots and 1 reduce slot, on its own host or on `ada`
//! job 1 maps 2 reduces 1          submits a job; also: priority P, attempts N, slowstart N, memory N (per task),
//!                                 local W (worker with the input of the last map), inputs 1+3,2,- (workers
//!                                 with the inputs of the first maps)
//!     > launch m0.1 on 1; launch m1.1 on 1
//! started m0.1                    a report of its worker, or of worker 2: `started m0.1@2`; also: commits, done,
//!                                 suspended, resumed, checkpointed, killed
//! done m0.1 wrote 7               it is done, and its records have the digest 7
//! failed m0.1 task: a bad row     or retryable, fatal; before the colon also: at local-disk, losing m0.1 m1.1
//! progress m0.1 5/10
//! misses r0.1 m0.1 m1.1: no route the reduce cannot read these outputs and waits; `lacks`: they do not exist
//! lost 1 [crashed]                removes the worker; `crashed`: its process ended unexpectedly
//! short 1: its disk is full       reports a shortage of the worker; without a reason: the end of the shortage
//! memory 1 500                    bytes available to the attempts of the worker
//! drain 1 [now | within 20ms]     the worker drains; `now`: it returns its tasks; `within`: they may save their
//!                                 work first
//! undrain 1                       cancels the drain
//! hold 1: wait for data           holds the job: running attempts may finish; `pause 1` suspends it;
//!                                 `continue 1` releases or resumes it; `unreachable 1`: its storage is away
//! change 1 priority 5 queue nightly
//! kill m0.1: it hangs             an operator kills an attempt; also: operator suspend m0.1, operator resume m0.1
//! stop 1: ada changed her mind    an operator kills a job
//! at 20ms                         sets the clock; `wake` sends `Event::Woken`, after which the policy may act
//! policy suspend m0.1 [grace 5ms] [for 2]
//!                                 the policy requests this at once; also: wait, kill, checkpoint, cancel, resume,
//!                                 launch m0 on 1
//! hold                            stops all other actions of the policy until `release`
//! show records                    expects journal records too; `show wakes`: requested wake-ups
//! tally stale_reports 1           checks a counter
//! active m0.1 5ms                 checks the active time of an attempt
//! why m0                          returns the explanation of a task; `whyjob 1`: of a job
//! excluded 1 2                    checks which workers are excluded
//! declined 1: not now             checks why the map slot of worker 1 was left empty; without a reason: it was not
//! ```
//!
//! All invariants are checked after every line. An illegal action of the policy panics unless the scenario
//! begins with the line `lenient`. The first line `speculating` enables duplicates of stragglers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::{
    Action, Actions, AttemptId, ClusterView, DiskNeed, Effect, Engine, EngineSettings, Event,
    Explanation, FailureClass, FaultPlace, Job, JobChange, JobId, JobSpec, MapSpec, Order, Pause,
    PauseKind, PolicyRefusal, Report, Scheduler, Slots, SpeculationSettings, TaskKind, Time,
    WorkerId,
};

use crate::scenarios::actions::{action, primitive};
use crate::scenarios::in_order::InOrder;
use crate::scenarios::names::{attempt, describe, millis, name, number, task, worker};

/// Runs a scenario under the default policy.
pub fn check(script: &str) {
    check_with(InOrder, script);
}

/// Runs a scenario under a policy.
pub fn check_with(policy: impl Scheduler + 'static, script: &str) {
    let lenient = script.trim_start().starts_with("lenient");
    let speculation = script
        .trim_start()
        .starts_with("speculating")
        .then(SpeculationSettings::default);
    let settings = EngineSettings {
        strict: !lenient,
        speculation,
        ..EngineSettings::default()
    };
    check_settings(policy, settings, script);
}

/// Runs a scenario under a policy with these settings.
pub fn check_settings(policy: impl Scheduler + 'static, settings: EngineSettings, script: &str) {
    let mut stage = Scene::new(Box::new(policy), settings);
    let is_command = |line: &&str| !line.is_empty() && *line != "lenient" && *line != "speculating";
    let mut lines = script.lines().map(str::trim).filter(is_command).peekable();
    while let Some(line) = lines.next() {
        let happened = stage.play(line);
        let mut expected = String::new();
        while let Some(more) = lines.next_if(|line| line.starts_with('>')) {
            let more = more[1..].trim();
            expected += if expected.is_empty() || more.is_empty() {
                ""
            } else {
                "; "
            };
            expected += more;
        }
        assert_eq!(happened.join("; "), expected, "\nafter '{line}'");
        if let Err(broken) = stage.engine.check() {
            panic!("after '{line}': {broken}");
        }
    }
}

/// Returns a specification with these numbers of tasks and default values otherwise.
pub fn spec(maps: u32, reduces: u32) -> JobSpec {
    JobSpec {
        name: "job".to_owned(),
        user: "ada".to_owned(),
        queue: "default".to_owned(),
        priority: 0,
        deadline: None,
        maps: vec![
            MapSpec {
                bytes: 1 << 20,
                preferred: Vec::new()
            };
            maps as usize
        ],
        reduces,
        attempts_max: 4,
        slowstart_permille: 1000,
        unsaved: Vec::new(),
        memory: 0,
        outputs_move: false,
    }
}

/// A policy that also carries out the actions of the script.
struct Ordered {
    policy: Box<dyn Scheduler>,
    held: Arc<AtomicBool>,
    orders: Arc<Mutex<Vec<Action>>>,
}

impl Scheduler for Ordered {
    fn on_event(&mut self, now: Time, event: &Event, view: &ClusterView<'_>) {
        self.policy.on_event(now, event, view);
    }

    fn job_changed(&mut self, now: Time, job: JobId, view: &ClusterView<'_>) {
        self.policy.job_changed(now, job, view);
    }

    fn order(&self, kind: TaskKind, view: &ClusterView<'_>) -> Vec<JobId> {
        self.policy.order(kind, view)
    }

    fn admits(&self, spec: &JobSpec) -> Result<(), PolicyRefusal> {
        self.policy.admits(spec)
    }

    fn can_meet(
        &self,
        now: Time,
        spec: &JobSpec,
        view: &ClusterView<'_>,
    ) -> Result<(), PolicyRefusal> {
        self.policy.can_meet(now, spec, view)
    }

    fn can_change(&self, change: &JobChange) -> Result<(), PolicyRefusal> {
        self.policy.can_change(change)
    }

    fn remarks(&self, now: Time, job: &Job, view: &ClusterView<'_>) -> Vec<String> {
        self.policy.remarks(now, job, view)
    }

    fn schedule(&mut self, now: Time, view: &ClusterView<'_>, actions: &mut Actions) {
        let orders = std::mem::take(&mut *self.orders.lock().expect("one thread"));
        if orders.is_empty() && !self.held.load(Ordering::Relaxed) {
            self.policy.schedule(now, view, actions);
        }
        for order in orders {
            actions.push(order);
        }
    }

    fn next_wakeup(&self, now: Time) -> Option<Time> {
        self.policy.next_wakeup(now)
    }
}

struct Scene {
    engine: Engine,
    held: Arc<AtomicBool>,
    orders: Arc<Mutex<Vec<Action>>>,
    now: Time,
    /// The worker of each attempt, the default sender of its reports.
    places: BTreeMap<AttemptId, WorkerId>,
    show_records: bool,
    show_wakes: bool,
}

impl Scene {
    fn new(policy: Box<dyn Scheduler>, settings: EngineSettings) -> Scene {
        let orders = Arc::new(Mutex::new(Vec::new()));
        let held = Arc::new(AtomicBool::new(false));
        let scheduler = Ordered {
            policy,
            held: Arc::clone(&held),
            orders: Arc::clone(&orders),
        };
        let engine = Engine::new(Box::new(scheduler), settings);
        let places = BTreeMap::new();
        Scene {
            engine,
            held,
            orders,
            now: Time(0),
            places,
            show_records: false,
            show_wakes: false,
        }
    }

    /// Plays one line and returns the effects.
    fn play(&mut self, line: &str) -> Vec<String> {
        let (head, reason) = line.split_once(": ").unwrap_or((line, ""));
        let words: Vec<&str> = head.split_whitespace().collect();
        if let Some(answer) = self.answer(line, &words, reason) {
            return answer;
        }
        if let Some(event) = operated(&words, reason) {
            return self.handle(event);
        }
        let event = match words[..] {
            ["at", time] => {
                self.now = Time(0) + millis(time);
                return Vec::new();
            }
            ["show", what] => {
                self.show_records |= what == "records";
                self.show_wakes |= what == "wakes";
                return Vec::new();
            }
            ["hold"] | ["release"] => {
                self.held.store(words[0] == "hold", Ordering::Relaxed);
                return Vec::new();
            }
            ["wake"] => Event::Woken,
            ["policy", ref order @ ..] => {
                self.orders.lock().expect("one thread").push(action(order));
                Event::Woken
            }
            ["worker", id, slots, ref place @ ..] => {
                let (map, reduce) = slots.split_once('+').expect("slots are written 2+1");
                Event::WorkerJoined {
                    worker: worker(id),
                    slots: Slots {
                        map: number(map),
                        reduce: number(reduce),
                    },
                    host: after(place, "on"),
                    rack: after(place, "rack"),
                }
            }
            ["lost", id, ref how @ ..] => Event::WorkerLost {
                worker: worker(id),
                crashed: *how == ["crashed"],
            },
            ["memory", id, bytes] => Event::WorkerMemory {
                worker: worker(id),
                bytes: number(bytes).into(),
            },
            ["short", id] => Event::WorkerShort {
                worker: worker(id),
                lacks: (!reason.is_empty()).then(|| reason.into()),
            },
            ["job", id, ref asks @ ..] => Event::JobSubmitted {
                job: JobId(number(id)),
                spec: asked(asks),
            },
            [what, of, ref rest @ ..] => {
                let (of, by) = of
                    .split_once('@')
                    .map_or((of, None), |(of, by)| (of, Some(worker(by))));
                let attempt = attempt(of);
                let place = by.or_else(|| self.places.get(&attempt).copied());
                let worker = place.unwrap_or_else(|| panic!("{line}: never launched"));
                Event::Reported {
                    worker,
                    attempt,
                    report: report(what, rest, reason),
                }
            }
            _ => panic!("what is '{line}'?"),
        };
        self.handle(event)
    }

    /// Returns the result of a line that queries or asserts state without changing it; `None` for any other
    /// line.
    fn answer(&self, line: &str, words: &[&str], reason: &str) -> Option<Vec<String>> {
        match *words {
            ["tally", what, count] => {
                let tally = format!("{:?} ", self.engine.view().tally()).replace([',', '}'], " ");
                assert!(
                    tally.contains(&format!(" {what}: {count} ")),
                    "{line}, but {tally}"
                );
            }
            ["active", of, expected] => {
                let attempt = self
                    .engine
                    .view()
                    .attempt(attempt(of))
                    .expect("a live attempt");
                assert_eq!(attempt.active_time(self.now), millis(expected), "{line}");
            }
            ["declined", id] => {
                assert_eq!(
                    self.declined(worker(id.trim_end_matches(':'))),
                    reason,
                    "{line}"
                );
            }
            ["why", of] => {
                let id = task(of);
                return Some(self.explained(self.engine.explain(id)));
            }
            ["whyjob", of] => {
                let id = JobId(number(of));
                let mut lines = self.explained(self.engine.explain_job(id));
                lines.extend(self.engine.remarks(self.now, id));
                return Some(lines);
            }
            ["excluded", ref expected @ ..] => {
                let view = self.engine.view();
                let excluded = view
                    .workers()
                    .filter(|(_, worker)| worker.excluded_until().is_some());
                let excluded: Vec<String> = excluded.map(|(id, _)| id.0.to_string()).collect();
                assert_eq!(excluded, *expected, "{line}");
            }
            _ => return None,
        }
        Some(Vec::new())
    }

    fn explained(&self, explanation: Explanation) -> Vec<String> {
        let mut lines = vec![explanation.state];
        lines.extend(explanation.reasons.into_iter().map(|reason| reason.text));
        lines
    }

    /// Returns why the map slot of a worker was left empty.
    fn declined(&self, id: WorkerId) -> &str {
        self.engine
            .view()
            .worker(id)
            .expect("a known worker")
            .declined(TaskKind::Map)
            .unwrap_or("")
    }

    fn handle(&mut self, event: Event) -> Vec<String> {
        let effects = self.engine.handle(self.now, event);
        for effect in &effects {
            if let Effect::Send {
                worker,
                order: Order::Launch { attempt, .. },
            } = effect
            {
                let before = self.places.insert(*attempt, *worker);
                assert_eq!(before, None, "{} was launched twice", name(*attempt));
            }
        }
        let shown = |effect: &&Effect| match effect {
            Effect::Record(_) => self.show_records,
            Effect::WakeAt(_) => self.show_wakes,
            _ => true,
        };
        effects.iter().filter(shown).map(describe).collect()
    }
}

/// Returns the value that follows a word in a list of pairs; empty if the word is absent.
fn after(pairs: &[&str], of: &str) -> String {
    pairs
        .chunks(2)
        .find(|pair| pair[0] == of)
        .map_or("", |pair| pair[1])
        .to_owned()
}

/// Returns the event of an operator's command; `None` for any other line.
fn operated(words: &[&str], reason: &str) -> Option<Event> {
    Some(match *words {
        ["drain", id, ref how @ ..] => {
            let grace = match *how {
                ["within", grace] => Some(millis(grace)),
                _ => None,
            };
            let hand_back = *how == ["now"] || grace.is_some();
            Event::WorkerDrainRequested {
                worker: worker(id),
                hand_back,
                grace,
            }
        }
        ["undrain", id] => Event::WorkerUndrainRequested { worker: worker(id) },
        ["hold", id] => pause_event(id, PauseKind::Hold, reason),
        ["change", id, ref to @ ..] => Event::JobChangeRequested {
            job: JobId(number(id)),
            change: changed(to),
            reason: reason.to_owned(),
        },
        ["kill", of] => Event::AttemptKillRequested {
            attempt: attempt(of),
            reason: reason.to_owned(),
        },
        ["operator", "resume", of] => Event::AttemptResumeRequested {
            attempt: attempt(of),
            reason: reason.to_owned(),
        },
        ["operator", how, of] => Event::AttemptPreemptRequested {
            attempt: attempt(of),
            primitive: primitive(how),
            reason: reason.to_owned(),
        },
        ["pause", id] => pause_event(id, PauseKind::Suspend, reason),
        ["unreachable", id] => pause_event(id, PauseKind::OutputUnreachable, reason),
        ["continue", id] => Event::JobResumeRequested {
            job: JobId(number(id)),
            reason: reason.into(),
        },
        ["stop", id] => Event::JobKillRequested {
            job: JobId(number(id)),
            reason: reason.to_owned(),
        },
        _ => return None,
    })
}

fn pause_event(id: &str, kind: PauseKind, reason: &str) -> Event {
    let pause = Pause {
        kind,
        reason: reason.to_owned(),
    };
    Event::JobPauseRequested {
        job: JobId(number(id)),
        pause,
    }
}

fn changed(to: &[&str]) -> JobChange {
    let text = |of: &str| Some(after(to, of)).filter(|text| !text.is_empty());
    JobChange {
        priority: text("priority").map(|text| number(&text) as i32),
        queue: text("queue"),
    }
}

fn asked(asks: &[&str]) -> JobSpec {
    let text = |of: &str| {
        asks.chunks(2)
            .find(|pair| pair[0] == of)
            .map(|pair| pair[1])
    };
    let value = |of: &str| text(of).map(number);
    let mut spec = spec(value("maps").unwrap_or(0), value("reduces").unwrap_or(0));
    spec.name = text("name").unwrap_or("job").to_owned();
    spec.user = text("user").unwrap_or("ada").to_owned();
    spec.queue = text("queue").unwrap_or("default").to_owned();
    spec.deadline = text("deadline").map(|at| Time(0) + millis(at));
    spec.memory = value("memory").unwrap_or(0).into();
    spec.priority = value("priority").unwrap_or(0) as i32;
    spec.attempts_max = value("attempts").unwrap_or(4);
    spec.slowstart_permille = value("slowstart").unwrap_or(1000);
    spec.outputs_move = text("outputs") == Some("move");
    spec.unsaved = match text("unsaved") {
        Some("maps") => vec![TaskKind::Map],
        Some("reduces") => vec![TaskKind::Reduce],
        _ => Vec::new(),
    };
    if let (Some(held), Some(last)) = (value("local"), spec.maps.last_mut()) {
        last.preferred.push(WorkerId(held));
    }
    for (map, held) in spec
        .maps
        .iter_mut()
        .zip(text("inputs").into_iter().flat_map(|all| all.split(',')))
    {
        map.preferred
            .extend(held.split('+').filter(|one| *one != "-").map(worker));
    }
    spec
}

/// Returns the report for a word such as `failed`, the remaining words, and the reason after the colon.
pub fn report(what: &str, rest: &[&str], reason: &str) -> Report {
    match what {
        "started" => Report::Started,
        "commits" => Report::CommitRequested,
        "done" => Report::Done {
            output_bytes: 0,
            output_digest: rest.get(1).map(|digest| number(digest).into()),
        },
        "suspended" => Report::Suspended,
        "suspended-at-work" => Report::SuspendedAtWork,
        "refused" => Report::SuspendRefused {
            reason: reason.to_owned(),
        },
        "resumed" => Report::Resumed,
        "checkpointed" => Report::Checkpointed,
        "moved" => Report::OutputMoved,
        "killed" => Report::Killed,
        "misses" | "lacks" => {
            let outputs = rest.iter().map(|of| attempt(of)).collect();
            let place = if what == "misses" {
                FaultPlace::Path
            } else {
                FaultPlace::Peer
            };
            Report::InputsLost {
                outputs,
                place,
                reason: reason.to_owned(),
            }
        }
        "progress" => {
            let (done, total) = rest[0].split_once('/').expect("progress is written 5/10");
            let bytes_done = u64::from(number(done));
            let bytes_total = u64::from(number(total));
            Report::Progressed {
                bytes_done,
                bytes_total,
            }
        }
        "failed" => {
            let class = match rest[0] {
                "task" => FailureClass::Task,
                "retryable" => FailureClass::Retryable,
                "excused" => FailureClass::Excused,
                "fatal" => FailureClass::Fatal,
                other => panic!("'{other}' is no class of failure"),
            };
            let losing = rest.iter().skip_while(|word| **word != "losing").skip(1);
            let lost_outputs: Vec<AttemptId> = losing.map(|of| attempt(of)).collect();
            let usual = if lost_outputs.is_empty() {
                "user code"
            } else {
                "peer"
            };
            let word = rest.iter().skip_while(|word| **word != "at").nth(1);
            let word = word.map_or_else(|| usual.to_owned(), |word| word.replace('-', " "));
            let place =
                FaultPlace::of_word(&word).unwrap_or_else(|| panic!("'{word}' is no place"));
            let need = rest.iter().skip_while(|word| **word != "needing").nth(1);
            let disk_need = need.map(|mebibytes| {
                let (needed, available) = mebibytes
                    .split_once('/')
                    .expect("a need is written 300/120");
                DiskNeed {
                    needed_bytes: u64::from(number(needed)) << 20,
                    available_bytes: u64::from(number(available)) << 20,
                }
            });
            Report::Failed {
                class,
                place,
                reason: reason.to_owned(),
                lost_outputs,
                disk_need,
            }
        }
        other => panic!("'{other}' is no report"),
    }
}
