//! The message that the cluster is ready.

use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use napreduce_cluster::{ClientError, ClusterClient, ClusterDirectory, ClusterPlace, Patience};
use napreduce_protocol::requests::ListWorkers;

use super::Event;
use crate::worker::is_up;

/// Long, since a machine under load starts processes slowly.
const DEADLINE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

pub struct Readiness {
    pub directory: ClusterDirectory,
    pub workers: u32,
    pub map_slots: u32,
    pub reduce_slots: u32,
}

impl Readiness {
    /// Sends an event when all workers are up, or on failure.
    pub fn watch(self, events: Sender<Event>) {
        thread::spawn(move || {
            let event = match self.wait() {
                Ok(true) => Event::Ready(self.line()),
                Ok(false) => Event::NotReady(format!("not all workers joined within {DEADLINE:?}")),
                Err(error) => Event::NotReady(error.to_string()),
            };
            // Fails only while the main thread ends the program.
            let _ = events.send(event);
        });
    }

    fn wait(&self) -> Result<bool, ClientError> {
        let patience = Patience {
            first: DEADLINE,
            later: DEADLINE,
            absent: DEADLINE,
            answer: DEADLINE,
            tell: false,
            ..Patience::default()
        };
        let mut client =
            ClusterClient::connect(ClusterPlace::Directory(self.directory.clone()), patience)?;
        let until = Instant::now() + DEADLINE;
        while Instant::now() < until {
            let up = client
                .ask(ListWorkers)?
                .iter()
                .filter(|worker| is_up(worker))
                .count();
            if u32::try_from(up).is_ok_and(|up| up >= self.workers) {
                return Ok(true);
            }
            thread::sleep(LOOK);
        }
        Ok(false)
    }

    fn line(&self) -> String {
        let Readiness {
            directory,
            workers,
            map_slots,
            reduce_slots,
        } = self;
        let directory = directory.path().display();
        let (workers, each) = match workers {
            1 => ("1 worker".to_owned(), ""),
            several => (format!("{several} workers"), " each"),
        };
        format!(
            "ready: {workers} with {map_slots} map and {reduce_slots} reduce slots{each} in {directory}\n\
             submit with: PROGRAM INPUT... --output DIR --cluster {directory}\n"
        )
    }
}
