//! Draws `nap top`: an overview, a list whose rows are those of the listings of `nap`, the selected job's reason,
//! and a line for messages and keys.

use napreduce_answers::CurrentJob;
use napreduce_protocol::{QueueSummary, one_line};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::model::{Mode, Model, Snapshot, Tab};
use crate::format::{or_dash, span};
use crate::queue;
use crate::screen::{Column, Fit, Screen, colour};
use crate::status::overview;
use crate::worker::workers_text;

/// Lines of the title with the overview, and of the selected job's reason.
const OVERVIEW_LINES: u16 = 4;
const REASON_LINES: u16 = 2;
/// The first column of the right half of the overview.
const RIGHT_HALF: usize = 40;

const JOB_COLUMNS: [Column<CurrentJob>; 10] = [
    Column::new("JOB", Fit::Whole, |current, _| current.job.job.clone()),
    Column::new("NAME", Fit::Cut, |current, _| current.job.name.clone()),
    Column::new("USER", Fit::Drop(2), |current, _| current.job.user.clone()),
    Column::new("QUEUE", Fit::Drop(1), |current, _| {
        current.job.queue.clone()
    }),
    Column::new("PRIORITY", Fit::Drop(3), |current, _| {
        current.job.priority.to_string()
    }),
    Column::new("STATE", Fit::Whole, |current, _| {
        current.job.state.to_owned()
    }),
    Column::new("MAPS", Fit::Whole, |current, _| {
        format!("{}%", current.job.map.percent)
    }),
    Column::new("REDUCES", Fit::Whole, |current, _| {
        let reduce = &current.job.reduce;
        or_dash((reduce.tasks > 0).then(|| format!("{}%", reduce.percent)))
    }),
    Column::new("LEFT", Fit::Whole, |current, _| {
        or_dash(current.job.left.map(|left| span(left.likely_millis)))
    }),
    Column::new("WHY IT WAITS", Fit::Below, |current, _| {
        let why = current.why.as_deref().unwrap_or_default();
        why.strip_prefix(&current.job.job)
            .unwrap_or(why)
            .trim_start()
            .to_owned()
    }),
];

const HELP: &str = "\
Up, k        select the row above       s   suspend the job in memory
Down, j      select the row below       r   resume it
Page Up, Page Down, Home, End           h   hold it: its running tasks finish
Enter        explain the job            u   release it
Tab          jobs, workers, queues      p   set its priority
/            filter the rows            x   kill it, after a question
Esc          show all rows              q   quit";

const KEYS: &str = "Enter:why s:suspend r:resume h:hold u:release x:kill p:priority ?:keys q:quit";

pub fn draw(model: &Model, frame: &mut Frame) {
    let parts = [
        Constraint::Length(OVERVIEW_LINES),
        Constraint::Length(1),
        Constraint::Min(0),
        Constraint::Length(REASON_LINES),
        Constraint::Length(1),
    ];
    let [top, tabs, list, reason, bottom] = Layout::vertical(parts).areas(frame.area());
    let width = usize::from(frame.area().width);
    draw_lines(frame, top, overview_lines(model, width));
    frame.render_widget(tab_line(model, width), tabs);
    match &model.mode {
        Mode::Help => draw_lines(frame, list, HELP.lines().map(Line::from).collect()),
        Mode::Detail(job, from) => {
            let detail = model
                .snapshot
                .as_ref()
                .and_then(|snapshot| snapshot.detail.clone());
            let text = detail.unwrap_or_else(|| format!("asking about {job} ..."));
            frame.render_widget(
                Paragraph::new(text)
                    .wrap(Wrap { trim: true })
                    .scroll((*from, 0)),
                list,
            );
        }
        _ => draw_list(frame, list, model),
    }
    frame.render_widget(
        Paragraph::new(reason_text(model)).wrap(Wrap { trim: true }),
        reason,
    );
    frame.render_widget(bottom_line(model), bottom);
}

fn draw_lines(frame: &mut Frame, area: Rect, lines: Vec<Line>) {
    frame.render_widget(Paragraph::new(lines), area);
}

fn overview_lines(model: &Model, width: usize) -> Vec<Line<'static>> {
    let alarm = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
    let Some(snapshot) = &model.snapshot else {
        let text = model
            .lost
            .as_ref()
            .map_or_else(|| "asking the coordinator ...".to_owned(), lost_text);
        return vec![Line::styled(text, alarm)];
    };
    let [workers, slots, jobs, paused] =
        overview(&snapshot.status).map(|(name, value)| format!("{name:<8} {value}"));
    let title = match (&model.lost, snapshot.status.warnings.first()) {
        (Some(why), _) => Line::styled(one_line(&lost_text(why), width), alarm),
        (None, Some(warning)) => {
            let text = one_line(&format!("{}; {}", warning.text, warning.remedy), width);
            Line::styled(text, Style::new().fg(Color::Yellow))
        }
        (None, None) => {
            let title = format!("nap top  scheduler {}", snapshot.scheduler);
            Line::styled(title, Style::new().add_modifier(Modifier::BOLD))
        }
    };
    let both = |left: &str, right: &str| {
        let left = one_line(left, RIGHT_HALF - 1);
        Line::from(format!("{left:<RIGHT_HALF$}{right}"))
    };
    vec![
        title,
        both(&workers, &slots),
        both(&jobs, &paused),
        Line::from(one_line(&queues_text(snapshot), width)),
    ]
}

fn lost_text(why: &String) -> String {
    format!("reconnecting: {why}")
}

/// Formats the slots of each queue, those with most first.
fn queues_text(snapshot: &Snapshot) -> String {
    let mut queues: Vec<_> = snapshot.queues.iter().collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.map.used + queue.reduce.used));
    let slots =
        |queue: &&QueueSummary| format!("{} {}+{}", queue.name, queue.map.used, queue.reduce.used);
    let used: Vec<String> = queues.iter().map(slots).collect();
    if used.is_empty() {
        return String::new();
    }
    let used = used.join(", ");
    format!("{:<8} {used} (maps+reduces)", "queues")
}

/// Names the tabs with the number of their rows, and the filter.
fn tab_line(model: &Model, width: usize) -> Line<'static> {
    let selected = Style::new().add_modifier(Modifier::REVERSED);
    let counts = [
        ("Jobs", model.jobs().len()),
        ("Workers", model.workers().len()),
        ("Queues", model.queues().len()),
    ];
    let mut line = Line::default();
    for (tab, (name, count)) in Tab::ALL.into_iter().zip(counts) {
        let style = if tab == model.tab {
            selected
        } else {
            Style::new()
        };
        line.push_span(Span::styled(format!(" {name} {count} "), style));
    }
    if !model.filter.is_empty() {
        let room = width.saturating_sub(line.width() + 2);
        line.push_span(format!(
            "  {}",
            one_line(&format!("filter: {}", model.filter), room)
        ));
    }
    line
}

/// Draws the headings and the rows around the selected one.
fn draw_list(frame: &mut Frame, area: Rect, model: &Model) {
    let screen = Screen::of_rows(usize::from(area.width));
    let (text, states): (String, Vec<String>) = match model.tab {
        Tab::Jobs => {
            let jobs = model.jobs();
            (
                screen.list(&JOB_COLUMNS, &jobs),
                jobs.iter()
                    .map(|current| current.job.state.to_owned())
                    .collect(),
            )
        }
        Tab::Workers => {
            let workers = model.workers();
            (
                workers_text(&workers, &screen),
                workers
                    .iter()
                    .map(|worker| worker.state.to_string())
                    .collect(),
            )
        }
        Tab::Queues => (queue::table(&model.queues(), &screen), Vec::new()),
    };
    let height = usize::from(area.height).saturating_sub(1);
    let from = (model.place() + 1).saturating_sub(height);
    let mut lines = text.lines().map(|line| Line::from(line.to_owned()));
    let headings = lines
        .next()
        .unwrap_or_default()
        .style(Style::new().add_modifier(Modifier::BOLD));
    let styled = |(at, line): (usize, Line<'static>)| {
        let colour = states.get(at).and_then(|state| colour(state));
        let style = colour.map_or(Style::new(), |colour| {
            Style::new().fg(Color::Indexed(colour - 30))
        });
        let is_selected = model.selected() == Some(at);
        line.style(if is_selected {
            style.add_modifier(Modifier::REVERSED)
        } else {
            style
        })
    };
    let rows = lines.enumerate().skip(from).take(height).map(styled);
    let shown = std::iter::once(headings).chain(rows).collect();
    draw_lines(frame, area, shown);
}

/// Returns the selected job in full with the reason why it waits.
fn reason_text(model: &Model) -> String {
    let jobs = if model.tab == Tab::Jobs {
        model.jobs()
    } else {
        Vec::new()
    };
    let Some(CurrentJob { job, why, .. }) = model.selected().and_then(|at| jobs.get(at)) else {
        return String::new();
    };
    let why = why
        .as_ref()
        .map_or_else(String::new, |why| format!(": {why}"));
    one_line(
        &format!(
            "{} of {} in queue {}, priority {}{why}",
            job.name, job.user, job.queue, job.priority
        ),
        usize::MAX,
    )
}

/// Returns the question or answer, or else the keys.
fn bottom_line(model: &Model) -> Line<'static> {
    let question = Style::new().add_modifier(Modifier::BOLD);
    match (&model.mode, &model.message) {
        (Mode::Filter, _) => Line::styled(
            format!("filter: {}_", one_line(&model.filter, usize::MAX)),
            question,
        ),
        (Mode::Priority(job, typed), _) => {
            Line::styled(format!("priority of {job}: {typed}_"), question)
        }
        (Mode::Kill(job), _) => {
            Line::styled(format!("kill {job}? y: yes, any other key: no"), question)
        }
        (Mode::Detail(..), _) => Line::from("Up and Down scroll  Esc back"),
        (Mode::Help, _) => Line::from("any key: back"),
        (Mode::List, Some(Ok(answer))) => Line::styled(one_line(answer, usize::MAX), question),
        (Mode::List, Some(Err(error))) => {
            Line::styled(one_line(error, usize::MAX), question.fg(Color::Red))
        }
        (Mode::List, None) => Line::from(KEYS),
    }
}
