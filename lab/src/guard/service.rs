//! Owns what a guard does from its first line to its end: takes charges, answers each, and ends them when the
//! pipe ends. Later charges do not depend on earlier ones but for their kind: processes first, folders last.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM};
use signal_hook::flag;

use super::charges::Charge;

/// Signals that end a program are not for the guard: it ends after the experiment, by itself.
pub fn ignore_signals() -> io::Result<()> {
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE] {
        flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}

/// Takes charges until the input ends, then ends them all; returns what is left, in words.
pub fn serve(orders: impl BufRead, mut answers: impl Write) -> Vec<String> {
    let mut charges: Vec<Charge> = Vec::new();
    for line in orders.lines() {
        // A pipe that breaks ends the experiment as one that is closed does.
        let Ok(line) = line else { break };
        let made = serde_json::from_str(&line).map_err(|error| format!("{line:?} is no charge: {error}"));
        let made = made.and_then(|charge: Charge| charge.make().map(|()| charges.push(charge)));
        let answer = made.err().unwrap_or_default().replace('\n', " ");
        if writeln!(answers, "{answer}").and_then(|()| answers.flush()).is_err() {
            break;
        }
    }
    charges.sort_by_key(order);
    charges.iter().filter_map(|charge| charge.end().err()).collect()
}

fn order(charge: &Charge) -> u8 {
    match charge {
        Charge::Process { .. } => 0,
        Charge::ControlGroup(_) => 1,
        Charge::Swap { .. } => 2,
        Charge::Folder(_) => 3,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn charges_are_answered_one_by_one_and_ended_at_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, group) = (parent.path().join("folder"), parent.path().join("group"));
        fs::create_dir(&folder).unwrap();
        let line = |charge: &Charge| serde_json::to_string(charge).unwrap();
        let orders = [
            line(&Charge::Folder(folder.clone())),
            line(&Charge::ControlGroup(group.clone())),
            line(&Charge::ControlGroup("/nowhere/group".into())),
            "nonsense".to_owned(),
        ];
        let mut answers = Vec::new();
        let left = serve(orders.join("\n").as_bytes(), &mut answers);
        let answers = String::from_utf8(answers).unwrap();
        let answers: Vec<&str> = answers.split('\n').collect();
        assert_eq!((answers[0], answers[1]), ("", ""));
        assert!(answers[2].contains("/nowhere/group") && answers[3].contains("no charge"), "{answers:?}");
        assert_eq!(left, [""; 0]);
        assert!(!folder.exists() && !group.exists());
    }

    #[test]
    fn what_cannot_be_ended_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "x").unwrap();
        let order = serde_json::to_string(&Charge::Folder(file.clone())).unwrap();
        let left = serve(order.as_bytes(), io::sink());
        assert!(left.len() == 1 && left[0].contains("cannot remove"), "{left:?}");
    }
}
