//! Identifiers in Hadoop's form.
//!
//! Owns both ways. Hadoop's `application_1790000000000_0007` has in the middle when its ResourceManager was
//! started. Numbers of jobs are never used twice in the directory of a cluster, whoever starts it and
//! wherever its history is copied to, so 0 stands there, and whatever is said there is taken. Hadoop counts
//! attempts from 0, and the numbers of tasks have six digits.

use napreduce_engine::{AttemptId, JobId, TaskId, TaskKind};

/// When the cluster was started, as far as identifiers say.
const STARTED: u64 = 0;
/// The one try at a job that its tasks are part of.
const TRY: u32 = 1;

/// A job, as YARN names it.
pub fn application_id(job: JobId) -> String {
    format!("application_{STARTED}_{:04}", job.0)
}

pub fn app_attempt_id(job: JobId) -> String {
    format!("appattempt_{STARTED}_{:04}_{TRY:06}", job.0)
}

pub fn job_id(job: JobId) -> String {
    format!("job_{STARTED}_{:04}", job.0)
}

pub fn task_id(task: TaskId) -> String {
    format!("task_{STARTED}_{:04}_{}_{:06}", task.job.0, letter(task.kind), task.index)
}

pub fn attempt_id(attempt: AttemptId) -> String {
    let AttemptId { task, number } = attempt;
    let (job, kind) = (task.job.0, letter(task.kind));
    format!("attempt_{STARTED}_{job:04}_{kind}_{:06}_{}", task.index, number.saturating_sub(1))
}

pub fn container_id(attempt: AttemptId) -> String {
    format!("container_{STARTED}_{:04}_{TRY:02}_{:06}", attempt.task.job.0, attempt.task.index + 1)
}

fn letter(kind: TaskKind) -> char {
    match kind {
        TaskKind::Map => 'm',
        TaskKind::Reduce => 'r',
    }
}

/// What Hadoop writes, as it is written here; nothing if it is not of Hadoop's form.
pub fn from_hadoop(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split('_').collect();
    let of_digits = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    if !words.get(1).is_some_and(|started| of_digits(started)) {
        return None;
    }
    let number = |at: usize| words.get(at).filter(|word| of_digits(word))?.parse::<u32>().ok();
    let kind = || match *words.get(3)? {
        "m" => Some(TaskKind::Map),
        "r" => Some(TaskKind::Reduce),
        _ => None,
    };
    let job = JobId(number(2)?);
    let task = || Some(TaskId { job, kind: kind()?, index: number(4)? });
    match (words[0], words.len()) {
        ("application" | "job", 3) | ("appattempt", 4) => Some(job.to_string()),
        ("task", 5) => task().map(|task| task.to_string()),
        ("attempt", 6) => {
            let number = number(5)?.checked_add(1)?;
            Some(AttemptId { task: task()?, number }.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_for_hadoop_is_read() {
        let job = JobId(7);
        for kind in TaskKind::ALL {
            let task = TaskId { job, kind, index: 3 };
            let attempt = AttemptId { task, number: 2 };
            assert_eq!(from_hadoop(&task_id(task)), Some(task.to_string()));
            assert_eq!(from_hadoop(&attempt_id(attempt)), Some(attempt.to_string()));
        }
        for written in [application_id(job), app_attempt_id(job), job_id(job)] {
            assert_eq!(from_hadoop(&written), Some("job_0007".to_owned()), "{written}");
        }
        assert_eq!(from_hadoop("application_1790000000000_0007"), Some("job_0007".to_owned()));
        let first = AttemptId { task: TaskId { job, kind: TaskKind::Map, index: 3 }, number: 1 };
        assert_eq!(attempt_id(first), "attempt_0_0007_m_000003_0");
    }

    #[test]
    fn what_is_not_of_this_form_is_left_alone() {
        for text in [
            "job_0007",
            "job_0007_m_0003",
            "job_0007_m_0003.1",
            "job_1_",
            "job_1_x",
            "job_1_+2",
            "task_1_2_x_3",
            "attempt_1_2_m_3",
            "attempt_1_2_m_3_4294967295",
            "application_1_99999999999",
            "worker_0001",
            "",
        ] {
            assert_eq!(from_hadoop(text), None, "{text}");
        }
    }
}
