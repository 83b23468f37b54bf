//! The parser for rules. One rule per line; `#` starts a comment:
//!
//! ```text
//! rule      := [repeat] when condition { and condition } do action { , action }
//! condition := time >= SPAN | progress(TARGET) >= RATIO | submitted(JOB) | started(TARGET) | suspended(TARGET)
//!            | finished(TARGET)
//! action    := submit(JOB) | launch(TARGET [on worker_0001]) | suspend(TARGET) | resume(TARGET) | kill(TARGET)
//!            | checkpoint(TARGET) | hold(TARGET) | release(TARGET)
//! TARGET    := JOB | JOB/m0 | JOB/r0
//! ```

use napreduce_engine::{TaskKind, Time, WorkerId};

use super::rules::{Condition, Rule, RuleAction, Target};

/// A syntax error in the rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct RuleError {
    /// Starting at 1.
    pub line: usize,
    /// Starting at 1, in bytes.
    pub column: usize,
    pub what: String,
}

/// Parses rules.
///
/// # Errors
/// Fails at the first syntax error; names line and column.
pub fn read_rules(text: &str) -> Result<Vec<Rule>, RuleError> {
    let mut rules = Vec::new();
    for (line, full) in (1..).zip(text.lines()) {
        let content = full.split('#').next().unwrap_or_default();
        if !content.trim().is_empty() {
            let mut parser = Parser {
                line,
                full: content,
                at: 0,
            };
            rules.push(parser.rule()?);
        }
    }
    Ok(rules)
}

struct Parser<'a> {
    line: usize,
    full: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.full[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn error(&self, what: impl Into<String>) -> RuleError {
        RuleError {
            line: self.line,
            column: self.at + 1,
            what: what.into(),
        }
    }

    /// Returns the next word, which ends before a space or one of `(),`.
    fn word(&mut self) -> &'a str {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || "(),".contains(c))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn accept(&mut self, text: &str) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str) -> Result<(), RuleError> {
        if self.accept(text) {
            Ok(())
        } else {
            Err(self.error(format!("expected {text:?}")))
        }
    }

    fn rule(&mut self) -> Result<Rule, RuleError> {
        let repeat = self.accept("repeat ");
        self.expect("when ")?;
        let mut conditions = vec![self.condition()?];
        while self.accept("and ") {
            conditions.push(self.condition()?);
        }
        self.expect("do ")?;
        let mut actions = vec![self.action()?];
        while self.accept(",") {
            actions.push(self.action()?);
        }
        self.skip_spaces();
        if self.rest().is_empty() {
            Ok(Rule {
                conditions,
                actions,
                repeat,
            })
        } else {
            Err(self.error("expected the end of the line, or a comma and another action"))
        }
    }

    fn condition(&mut self) -> Result<Condition, RuleError> {
        self.skip_spaces();
        let begin = self.at;
        match self.word() {
            "time" => {
                self.expect(">=")?;
                self.value("a time since the start such as 50s", str::parse)
                    .map(|span| Condition::Time(Time(0) + span))
            }
            "progress" => {
                let target = self.target()?;
                self.expect(")")?;
                self.expect(">=")?;
                let share = self.value("a fraction such as 0.5 or 1/3", str::parse)?;
                Ok(Condition::Progress(target, share))
            }
            name @ ("submitted" | "started" | "suspended" | "finished") => {
                let target = self.target()?;
                self.expect(")")?;
                Ok(match name {
                    "submitted" => Condition::Submitted(target),
                    "started" => Condition::Started(target),
                    "suspended" => Condition::Suspended(target),
                    _ => Condition::Finished(target),
                })
            }
            other => {
                self.at = begin;
                Err(self.error(format!(
                    "unknown condition {other:?}; expected time, progress, submitted, started, suspended or finished"
                )))
            }
        }
    }

    fn action(&mut self) -> Result<RuleAction, RuleError> {
        self.skip_spaces();
        let begin = self.at;
        let name = self.word();
        const NAMES: [&str; 8] = [
            "submit",
            "launch",
            "suspend",
            "resume",
            "kill",
            "checkpoint",
            "hold",
            "release",
        ];
        if !NAMES.contains(&name) {
            self.at = begin;
            return Err(self.error(format!(
                "unknown action {name:?}; expected one of {}",
                NAMES.join(", ")
            )));
        }
        let target = self.target()?;
        let on = name == "launch" && self.accept("on ");
        let worker = if on {
            Some(self.value("a worker such as worker_0001", parse_worker)?)
        } else {
            None
        };
        if name == "submit" && target.task.is_some() {
            return Err(self.error("submit takes a job, not a task"));
        }
        self.expect(")")?;
        Ok(match name {
            "submit" => RuleAction::Submit(target.job),
            "launch" => RuleAction::Launch(target, worker),
            "suspend" => RuleAction::Suspend(target),
            "resume" => RuleAction::Resume(target),
            "kill" => RuleAction::Kill(target),
            "checkpoint" => RuleAction::Checkpoint(target),
            "hold" => RuleAction::Hold(target),
            _ => RuleAction::Release(target),
        })
    }

    fn value<T, E: ToString>(
        &mut self,
        what: &str,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<T, RuleError> {
        self.skip_spaces();
        let begin = self.at;
        let word = self.word();
        read(word).map_err(|error| {
            self.at = begin;
            self.error(format!("expected {what}: {}", error.to_string()))
        })
    }

    /// Parses `(TARGET`.
    fn target(&mut self) -> Result<Target, RuleError> {
        self.expect("(")?;
        self.value("a job, or a task such as low/m0", parse_target)
    }
}

fn parse_target(word: &str) -> Result<Target, String> {
    let (job, task) = word
        .split_once('/')
        .map_or((word, None), |(job, task)| (job, Some(task)));
    if job.is_empty() {
        return Err("missing job name".to_owned());
    }
    let task = task.map(|task| {
        let kind = match task.chars().next() {
            Some('m') => TaskKind::Map,
            Some('r') => TaskKind::Reduce,
            _ => return Err(format!("invalid task {task:?}; write m0 or r0")),
        };
        let index = task[1..]
            .parse()
            .map_err(|_| format!("invalid task {task:?}; write m0 or r0"))?;
        Ok((kind, index))
    });
    Ok(Target {
        job: job.to_owned(),
        task: task.transpose()?,
    })
}

fn parse_worker(word: &str) -> Result<WorkerId, String> {
    let number = word.strip_prefix("worker_").unwrap_or(word);
    number
        .parse()
        .map(WorkerId)
        .map_err(|_| format!("invalid worker {word:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_parse_and_print() {
        let text = "# two tasks\n\nwhen progress(low/m0) >= 1/2 do submit(high), suspend(low)\n\
                    repeat when finished(high) and time >= 50s do resume(low)  # at last\n\
                    when started(low) do launch(high/r2 on worker_0003), hold(other)";
        let rules = read_rules(text).expect("three rules");
        assert_eq!(rules.len(), 3);
        let low = Target {
            job: "low".into(),
            task: Some((TaskKind::Map, 0)),
        };
        assert_eq!(
            rules[0].conditions,
            [Condition::Progress(low, "1/2".parse().expect("a ratio"))]
        );
        let printed: Vec<String> = rules
            .iter()
            .flat_map(|rule| &rule.actions)
            .map(ToString::to_string)
            .collect();
        let all = [
            "submit(high)",
            "suspend(low)",
            "resume(low)",
            "launch(high/r2 on worker_0003)",
            "hold(other)",
        ];
        assert_eq!(printed, all);
        assert_eq!(
            [rules[0].repeat, rules[1].repeat, rules[2].repeat],
            [false, true, false]
        );
        assert_eq!(rules[1].conditions[1], Condition::Time(Time(50_000_000)));
    }

    #[test]
    fn syntax_errors_report_line_and_column() {
        for (text, line, column, what) in [
            ("while x", 1, 1, "expected \"when \""),
            (
                "\nwhen tim >= 5s do submit(a)",
                2,
                6,
                "unknown condition \"tim\"",
            ),
            ("when time >= 5 do submit(a)", 1, 14, "invalid time span"),
            ("when time >= 5s do", 1, 17, "expected \"do \""),
            (
                "when time >= 5s do sing(a)",
                1,
                20,
                "unknown action \"sing\"",
            ),
            ("when submitted() do kill(a)", 1, 16, "missing job name"),
            ("when submitted(a do kill(a)", 1, 18, "expected \")\""),
            ("when submitted(a/x1) do kill(a)", 1, 16, "write m0 or r0"),
            (
                "when submitted(a) do submit(a/m0)",
                1,
                33,
                "submit takes a job",
            ),
            (
                "when submitted(a) do kill(a) kill(b)",
                1,
                30,
                "expected the end of the line",
            ),
            (
                "when progress(a) >= half do kill(a)",
                1,
                21,
                "invalid ratio",
            ),
            (
                "when started(a) do launch(a on mars)",
                1,
                32,
                "invalid worker",
            ),
        ] {
            let error = read_rules(text).expect_err(text);
            assert_eq!(
                (error.line, error.column),
                (line, column),
                "{text}: {error}"
            );
            assert!(error.what.contains(what), "{text}: {error}");
        }
    }
}
