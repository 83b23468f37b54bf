//! The screen and the keys of `nap top`, without a terminal and without a coordinator.

use napreduce_answers::{
    CurrentJob, JobAnswer, JobCounts, SlotsInUse, StatusAnswer, TimeLeftAnswer, WorkerCounts,
};
use napreduce_engine::{JobId, WorkerId};
use napreduce_protocol::{
    JobCommand, QueueSlots, QueueSummary, WorkerMemory, WorkerPhase, WorkerSummary,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::draw::draw;
use super::model::{Ask, Effect, Mode, Model, Order, Snapshot, Tab};
use crate::job::sample_summary;

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

/// A job of one of ten users in one of three queues; two of three wait.
fn current(number: u32) -> CurrentJob {
    let is_waiting = !number.is_multiple_of(3);
    let left = TimeLeftAnswer {
        least_millis: 60_000,
        likely_millis: 125_000,
        most_millis: 300_000,
    };
    let job = JobAnswer {
        job: JobId(number).to_string(),
        name: format!("hourly-billing-{number}"),
        user: format!("user-{}", number % 10),
        queue: ["production", "research", "adhoc"][number as usize % 3].to_owned(),
        state: if is_waiting { "waiting" } else { "running" },
        left: (!is_waiting).then_some(left),
        ..(&sample_summary()).into()
    };
    let why = is_waiting.then(|| {
        format!(
            "job_{number:04} waits for a slot: all 16 map slots are taken, 12 of them by queue production"
        )
    });
    CurrentJob {
        job,
        why,
        code: None,
    }
}

fn worker(number: u32, state: WorkerPhase) -> WorkerSummary {
    let reason =
        (state == WorkerPhase::Excluded).then(|| "5 attempts failed there in a minute".to_owned());
    WorkerSummary {
        worker: WorkerId(number),
        name: format!("w{number}"),
        host: format!("host-{number}.example.org"),
        rack: "/default-rack".to_owned(),
        state,
        remarks: Vec::new(),
        failing: None,
        isolation: "cgroup v2".to_owned(),
        gone_millis: None,
        reason,
        map_slots: (8, 6),
        reduce_slots: (4, 1),
        silent_millis: 150,
        memory: WorkerMemory::default(),
    }
}

fn queue(name: &str, used: u64, waiting: u32) -> QueueSummary {
    let slots = QueueSlots {
        guaranteed_permille: Some(2_500),
        maximum: None,
        used,
        wanted: 3,
    };
    let map = slots;
    QueueSummary {
        name: name.to_owned(),
        parent: None,
        weight_permille: Some(1_000),
        map,
        reduce: QueueSlots { used: 1, ..slots },
        running: 8,
        waiting,
        remark: None,
    }
}

fn busy(jobs: u32) -> Snapshot {
    let current: Vec<CurrentJob> = (1..=jobs).rev().map(current).collect();
    let waiting = current
        .iter()
        .filter(|current| current.why.is_some())
        .count();
    let status = StatusAnswer {
        workers: WorkerCounts {
            up: 2,
            excluded: 1,
            ..WorkerCounts::default()
        },
        map: SlotsInUse {
            slots: 24,
            used: 18,
            suspended: 2,
        },
        reduce: SlotsInUse {
            slots: 12,
            used: 3,
            suspended: 0,
        },
        jobs: JobCounts {
            waiting,
            running: current.len() - waiting,
            ..JobCounts::default()
        },
        checkpointed: 1,
        current,
        warnings: Vec::new(),
    };
    Snapshot {
        status,
        scheduler: "capacity".to_owned(),
        queues: vec![
            queue("adhoc", 2, 20),
            queue("production", 12, 7),
            queue("research", 4, 20),
        ],
        workers: vec![
            worker(1, WorkerPhase::Up),
            worker(2, WorkerPhase::Excluded),
            worker(3, WorkerPhase::Up),
        ],
        detail: None,
    }
}

fn model(jobs: u32) -> Model {
    let mut model = Model::default();
    model.fetched(busy(jobs));
    model
}

fn press(model: &mut Model, key: KeyCode) -> Option<Effect> {
    model.press(KeyEvent::new(key, KeyModifiers::NONE))
}

/// Presses the key of each character.
fn type_text(model: &mut Model, text: &str) {
    for letter in text.chars() {
        assert_eq!(press(model, KeyCode::Char(letter)), None, "{letter}");
    }
}

/// Compares the screen with a snapshot at each size.
fn assert_screen(name: &str, model: &Model) {
    for (columns, lines) in SIZES {
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).expect("a terminal");
        terminal.draw(|frame| draw(model, frame)).expect("a frame");
        insta::assert_snapshot!(format!("{name}-{columns}x{lines}"), terminal.backend());
    }
}

#[test]
fn empty_cluster_is_drawn() {
    let mut model = Model::default();
    assert_screen("asking", &model);
    model.fetched(Snapshot {
        scheduler: "fifo".to_owned(),
        ..Snapshot::default()
    });
    assert_screen("empty", &model);
}

#[test]
fn seventy_jobs_are_drawn() {
    let mut model = model(70);
    assert_screen("jobs", &model);
    press(&mut model, KeyCode::End);
    press(&mut model, KeyCode::Up);
    assert_screen("last-jobs", &model);
    press(&mut model, KeyCode::Tab);
    press(&mut model, KeyCode::Down);
    assert_screen("workers", &model);
    press(&mut model, KeyCode::Tab);
    assert_screen("queues", &model);
}

#[test]
fn lost_coordinator_is_drawn_over_the_last_answer() {
    let mut model = model(3);
    model.lost("no coordinator answers for /srv/nap after 1s: connection refused".to_owned());
    assert_screen("lost", &model);
    model.fetched(busy(3));
    assert_eq!(model.lost, None, "it answers again");
}

#[test]
fn question_detail_and_help_are_drawn() {
    let mut model = model(4);
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Char('x'));
    assert_screen("kill", &model);
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Enter);
    let detail = "job_0004: waiting\njob_0004: it waits for a slot\n".to_owned();
    model.fetched(Snapshot {
        detail: Some(detail),
        ..busy(4)
    });
    assert_screen("detail", &model);
    press(&mut model, KeyCode::Esc);
    press(&mut model, KeyCode::Char('?'));
    assert_screen("help", &model);
}

#[test]
fn keys_order_what_they_say() {
    let job = JobId(4);
    let order = |order| Some(Effect::Ask(Ask::Order(job, order)));
    let command = |command| order(Order::Command(command));
    let char = KeyCode::Char;
    let enter = KeyCode::Enter;
    for (keys, effect, mode) in [
        (vec![char('s')], command(JobCommand::Suspend), Mode::List),
        (vec![char('r')], command(JobCommand::Resume), Mode::List),
        (vec![char('h')], command(JobCommand::Hold), Mode::List),
        (vec![char('u')], command(JobCommand::Release), Mode::List),
        (vec![char('x')], None, Mode::Kill(job)),
        (vec![char('x'), char('y')], order(Order::Kill), Mode::List),
        (vec![char('x'), char('n')], None, Mode::List),
        (vec![char('x'), enter], None, Mode::List),
        (
            vec![char('p'), char('-'), char('1'), char('q')],
            None,
            Mode::Priority(job, "-1".to_owned()),
        ),
        (
            vec![char('p'), char('-'), char('1'), enter],
            order(Order::Priority(-1)),
            Mode::List,
        ),
        (
            vec![char('p'), char('7'), KeyCode::Backspace, enter],
            None,
            Mode::List,
        ),
        (vec![char('p'), char('7'), KeyCode::Esc], None, Mode::List),
        (
            vec![enter],
            Some(Effect::Ask(Ask::Detail(Some(job)))),
            Mode::Detail(job, 0),
        ),
        (
            vec![enter, KeyCode::Down, char('h')],
            None,
            Mode::Detail(job, 1),
        ),
        (
            vec![enter, char('q')],
            Some(Effect::Ask(Ask::Detail(None))),
            Mode::List,
        ),
        (vec![char('/'), char('q')], None, Mode::Filter),
        (vec![char('/'), char('q'), enter], None, Mode::List),
        (vec![char('?')], None, Mode::Help),
        (vec![char('?'), char('q')], None, Mode::List),
        (vec![char('q')], Some(Effect::Quit), Mode::List),
    ] {
        let mut model = model(4);
        press(&mut model, KeyCode::Down);
        let mut last = None;
        for key in &keys {
            last = press(&mut model, *key);
        }
        assert_eq!((last, &model.mode), (effect, &mode), "{keys:?}");
    }
}

#[test]
fn control_c_quits_in_every_mode() {
    for key in ['s', '/', '?', 'x', 'p'] {
        let mut model = model(4);
        press(&mut model, KeyCode::Down);
        press(&mut model, KeyCode::Char(key));
        let quit = model.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL));
        assert_eq!(quit, Some(Effect::Quit), "{key}");
    }
}

#[test]
fn selection_follows_its_job_and_ends_with_it() {
    let mut model = model(4);
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Down);
    let mut next = busy(5);
    model.fetched(next.clone());
    assert_eq!(model.selected(), Some(2), "a job came before it");
    next.status.current.remove(2);
    model.fetched(next);
    assert_eq!(model.selected(), None);
    assert_eq!(press(&mut model, KeyCode::Char('x')), None);
    assert_eq!(model.mode, Mode::List, "no other job is killed instead");
    let message = model.message.clone();
    assert_eq!(
        message,
        Some(Err(
            "no job is selected; select one with the arrow keys".to_owned()
        ))
    );
    press(&mut model, KeyCode::Down);
    assert_eq!(model.selected(), Some(2), "the one in its place");
}

#[test]
fn filter_matches_ids_names_users_queues_and_reasons() {
    let mut model = model(70);
    for (text, jobs) in [
        ("job_0061", 1),
        ("BILLING-7", 2),
        ("user-3", 7),
        ("adhoc", 23),
        ("map slots", 47),
    ] {
        press(&mut model, KeyCode::Char('/'));
        type_text(&mut model, text);
        assert_eq!(model.jobs().len(), jobs, "{text}");
        press(&mut model, KeyCode::Esc);
        assert_eq!(model.jobs().len(), 70);
    }
}

#[test]
fn key_after_a_filter_acts_on_the_first_row_found() {
    let mut model = model(70);
    press(&mut model, KeyCode::Char('/'));
    type_text(&mut model, "job_0061");
    assert_eq!(press(&mut model, KeyCode::Enter), None);
    assert_eq!(model.selected(), Some(0));
    let suspend = Effect::Ask(Ask::Order(JobId(61), Order::Command(JobCommand::Suspend)));
    assert_eq!(press(&mut model, KeyCode::Char('s')), Some(suspend));
    // A selected row that is found stays selected, and nothing is selected if nothing is found.
    press(&mut model, KeyCode::Char('/'));
    press(&mut model, KeyCode::Backspace);
    press(&mut model, KeyCode::Enter);
    let resume = Effect::Ask(Ask::Order(JobId(61), Order::Command(JobCommand::Resume)));
    assert_eq!(press(&mut model, KeyCode::Char('r')), Some(resume));
    press(&mut model, KeyCode::Char('/'));
    type_text(&mut model, "nothing");
    press(&mut model, KeyCode::Enter);
    assert_eq!(press(&mut model, KeyCode::Char('s')), None);
    assert!(matches!(model.message, Some(Err(_))));
}

#[test]
fn filter_selects_the_first_row_of_every_tab() {
    let mut model = model(4);
    press(&mut model, KeyCode::Tab);
    press(&mut model, KeyCode::Char('/'));
    type_text(&mut model, "w2");
    press(&mut model, KeyCode::Enter);
    assert_eq!((model.tab, model.selected()), (Tab::Workers, Some(0)));
}

#[test]
fn orders_reach_jobs_only() {
    let mut model = model(4);
    press(&mut model, KeyCode::Down);
    press(&mut model, KeyCode::Tab);
    press(&mut model, KeyCode::Down);
    assert_eq!((model.tab, model.selected()), (Tab::Workers, Some(0)));
    assert_eq!(press(&mut model, KeyCode::Char('s')), None);
    press(&mut model, KeyCode::BackTab);
    assert_eq!((model.tab, model.selected()), (Tab::Jobs, Some(0)));
}
