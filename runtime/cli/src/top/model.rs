//! The state of `nap top`: what the coordinator has answered, what is selected, and what each key does.

use napreduce_answers::{CurrentJob, StatusAnswer};
use napreduce_engine::JobId;
use napreduce_protocol::{JobCommand, QueueSummary, WorkerSummary};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Rows that Page Up and Page Down move.
const PAGE: isize = 10;

/// The state of the cluster in one refresh.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub status: StatusAnswer,
    pub scheduler: String,
    pub queues: Vec<QueueSummary>,
    pub workers: Vec<WorkerSummary>,
    /// The explanation of the job whose detail is open.
    pub detail: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tab {
    #[default]
    Jobs,
    Workers,
    Queues,
}

impl Tab {
    pub const ALL: [Tab; 3] = [Tab::Jobs, Tab::Workers, Tab::Queues];
}

/// The mode, which decides the meaning of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Mode {
    /// Selecting and ordering.
    #[default]
    List,
    /// Typing the filter.
    Filter,
    /// Typing the priority of this job.
    Priority(JobId, String),
    /// Confirming that this job is killed.
    Kill(JobId),
    /// Reading why this job waits, from this line on.
    Detail(JobId, u16),
    Help,
}

/// A request to the thread that asks the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    Order(JobId, Order),
    /// Explain this job in full with each refresh, or none.
    Detail(Option<JobId>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Command(JobCommand),
    Kill,
    Priority(i32),
}

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Quit,
    Ask(Ask),
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    /// `None` before the first answer.
    pub snapshot: Option<Snapshot>,
    /// Why the coordinator does not answer.
    pub lost: Option<String>,
    pub tab: Tab,
    pub mode: Mode,
    pub filter: String,
    /// The answer to the last order.
    pub message: Option<Result<String, String>>,
    /// The selection of each tab.
    selections: [Selection; Tab::ALL.len()],
}

/// The selected row. A row that is gone leaves none selected, so that no order reaches the one in its place.
#[derive(Debug, Clone, Default)]
struct Selection {
    id: Option<String>,
    /// Where it is, or was.
    at: usize,
}

impl Model {
    pub fn fetched(&mut self, snapshot: Snapshot) {
        self.snapshot = Some(snapshot);
        self.lost = None;
        self.follow_selection();
    }

    pub fn lost(&mut self, why: String) {
        self.lost = Some(why);
    }

    pub fn ordered(&mut self, answer: Result<String, String>) {
        self.message = Some(answer);
    }

    /// Returns the jobs that match the filter.
    pub fn jobs(&self) -> Vec<CurrentJob> {
        let all = self
            .snapshot
            .iter()
            .flat_map(|snapshot| &snapshot.status.current);
        let shown = |current: &&CurrentJob| {
            let CurrentJob { job, why, .. } = current;
            let why = why.as_deref().unwrap_or_default();
            self.matches(&[&job.job, &job.name, &job.user, &job.queue, job.state, why])
        };
        all.filter(shown).cloned().collect()
    }

    /// Returns the workers that match the filter.
    pub fn workers(&self) -> Vec<WorkerSummary> {
        let all = self.snapshot.iter().flat_map(|snapshot| &snapshot.workers);
        let shown = |worker: &&WorkerSummary| {
            let id = worker.worker.to_string();
            let state = worker.state_in_words();
            self.matches(&[&id, &worker.name, &worker.host, &worker.rack, &state])
        };
        all.filter(shown).cloned().collect()
    }

    /// Returns the queues that match the filter.
    pub fn queues(&self) -> Vec<QueueSummary> {
        let all = self.snapshot.iter().flat_map(|snapshot| &snapshot.queues);
        all.filter(|queue| self.matches(&[&queue.name]))
            .cloned()
            .collect()
    }

    fn matches(&self, texts: &[&str]) -> bool {
        let filter = self.filter.to_lowercase();
        texts
            .iter()
            .any(|text| text.to_lowercase().contains(&filter))
    }

    /// Returns the IDs of the rows of the tab.
    fn rows(&self) -> Vec<String> {
        match self.tab {
            Tab::Jobs => self
                .jobs()
                .into_iter()
                .map(|current| current.job.job)
                .collect(),
            Tab::Workers => self
                .workers()
                .iter()
                .map(|worker| worker.worker.to_string())
                .collect(),
            Tab::Queues => self.queues().into_iter().map(|queue| queue.name).collect(),
        }
    }

    fn selection(&self) -> &Selection {
        &self.selections[self.tab as usize]
    }

    /// Returns where the selected row is.
    pub fn selected(&self) -> Option<usize> {
        self.selection().id.as_ref().map(|_| self.selection().at)
    }

    /// Returns where the selected row is, or was.
    pub fn place(&self) -> usize {
        self.selection().at
    }

    /// Follows the selected row to where it is now.
    fn follow_selection(&mut self) {
        let rows = self.rows();
        let selection = &mut self.selections[self.tab as usize];
        match selection
            .id
            .as_ref()
            .and_then(|id| rows.iter().position(|row| row == id))
        {
            Some(at) => selection.at = at,
            None => selection.id = None,
        }
    }

    /// Selects another row; if none is selected, the one in the place of the last.
    fn select(&mut self, by: isize) {
        let Selection { id, at } = self.selection();
        self.select_at(if id.is_some() {
            at.saturating_add_signed(by)
        } else {
            *at
        });
    }

    fn select_at(&mut self, at: usize) {
        let rows = self.rows();
        let at = at.min(rows.len().saturating_sub(1));
        self.selections[self.tab as usize] = Selection {
            id: rows.get(at).cloned(),
            at,
        };
    }

    /// Returns the selected job; without one, shows an error to the user.
    fn selected_job(&mut self) -> Option<JobId> {
        let job = self
            .selection()
            .id
            .as_ref()
            .filter(|_| self.tab == Tab::Jobs);
        let job = job.and_then(|id| id.parse().ok());
        if job.is_none() {
            self.message = Some(Err(
                "no job is selected; select one with the arrow keys".to_owned()
            ));
        }
        job
    }

    /// Changes the state as a key demands.
    pub fn press(&mut self, key: KeyEvent) -> Option<Effect> {
        self.message = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return (key.code == KeyCode::Char('c')).then_some(Effect::Quit);
        }
        match self.mode.clone() {
            Mode::List => self.press_in_list(key.code),
            Mode::Filter => self.press_in_filter(key.code),
            Mode::Priority(job, typed) => self.press_in_priority(job, typed, key.code),
            Mode::Kill(job) => {
                self.mode = Mode::List;
                (key.code == KeyCode::Char('y'))
                    .then_some(Effect::Ask(Ask::Order(job, Order::Kill)))
            }
            Mode::Detail(job, from) => self.press_in_detail(job, from, key.code),
            Mode::Help => {
                self.mode = Mode::List;
                None
            }
        }
    }

    fn press_in_list(&mut self, key: KeyCode) -> Option<Effect> {
        match key {
            KeyCode::Char('q') => return Some(Effect::Quit),
            KeyCode::Up | KeyCode::Char('k') => self.select(-1),
            KeyCode::Down | KeyCode::Char('j') => self.select(1),
            KeyCode::PageUp => self.select(-PAGE),
            KeyCode::PageDown => self.select(PAGE),
            KeyCode::Home => self.select_at(0),
            KeyCode::End => self.select_at(usize::MAX),
            KeyCode::Tab => self.change_tab(1),
            KeyCode::BackTab => self.change_tab(Tab::ALL.len() - 1),
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc => self.set_filter(String::new()),
            KeyCode::Char('?') => self.mode = Mode::Help,
            KeyCode::Enter => {
                let job = self.selected_job()?;
                self.mode = Mode::Detail(job, 0);
                return Some(Effect::Ask(Ask::Detail(Some(job))));
            }
            KeyCode::Char('s') => return self.order(JobCommand::Suspend),
            KeyCode::Char('r') => return self.order(JobCommand::Resume),
            KeyCode::Char('h') => return self.order(JobCommand::Hold),
            KeyCode::Char('u') => return self.order(JobCommand::Release),
            KeyCode::Char('x') => self.mode = Mode::Kill(self.selected_job()?),
            KeyCode::Char('p') => self.mode = Mode::Priority(self.selected_job()?, String::new()),
            _ => {}
        }
        None
    }

    fn order(&mut self, command: JobCommand) -> Option<Effect> {
        Some(Effect::Ask(Ask::Order(
            self.selected_job()?,
            Order::Command(command),
        )))
    }

    fn press_in_filter(&mut self, key: KeyCode) -> Option<Effect> {
        let mut filter = self.filter.clone();
        match key {
            KeyCode::Char(letter) => filter.push(letter),
            KeyCode::Backspace => {
                filter.pop();
            }
            KeyCode::Esc => filter.clear(),
            _ => {}
        }
        if matches!(key, KeyCode::Enter | KeyCode::Esc) {
            self.mode = Mode::List;
        }
        self.set_filter(filter);
        // A key acts on the first row that was found.
        if key == KeyCode::Enter && self.selection().id.is_none() {
            self.select_at(0);
        }
        None
    }

    fn press_in_priority(&mut self, job: JobId, mut typed: String, key: KeyCode) -> Option<Effect> {
        match key {
            KeyCode::Char(letter)
                if letter.is_ascii_digit() || (letter == '-' && typed.is_empty()) =>
            {
                typed.push(letter);
            }
            KeyCode::Backspace => {
                typed.pop();
            }
            KeyCode::Enter => {
                self.mode = Mode::List;
                return match typed.parse() {
                    Ok(priority) => Some(Effect::Ask(Ask::Order(job, Order::Priority(priority)))),
                    Err(_) => {
                        self.message = Some(Err(format!(
                            "invalid priority {typed:?}: expected an integer"
                        )));
                        None
                    }
                };
            }
            KeyCode::Esc => {
                self.mode = Mode::List;
                return None;
            }
            _ => {}
        }
        self.mode = Mode::Priority(job, typed);
        None
    }

    fn press_in_detail(&mut self, job: JobId, from: u16, key: KeyCode) -> Option<Effect> {
        match key {
            KeyCode::Up | KeyCode::Char('k') => {
                self.mode = Mode::Detail(job, from.saturating_sub(1))
            }
            KeyCode::Down | KeyCode::Char('j') => {
                self.mode = Mode::Detail(job, from.saturating_add(1))
            }
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q') => {
                self.mode = Mode::List;
                if let Some(snapshot) = &mut self.snapshot {
                    snapshot.detail = None;
                }
                return Some(Effect::Ask(Ask::Detail(None)));
            }
            _ => {}
        }
        None
    }

    fn change_tab(&mut self, by: usize) {
        self.tab = Tab::ALL[(self.tab as usize + by) % Tab::ALL.len()];
        self.follow_selection();
    }

    fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.follow_selection();
    }
}
