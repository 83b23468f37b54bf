//! Follows a job: sends its progress at a limited rate, then its end.

use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_local::clock::now;
use napreduce_local::coordinator::Following;
use napreduce_protocol::{FromCoordinator, JobEnd, JobProgress, ToCoordinator};
use tokio::time::{Instant, sleep_until, timeout};

use super::{Client, Parting};
use crate::coordinator::requests::LoopRequest;

/// Changes within this time are sent together.
const COALESCED: Duration = Duration::from_millis(100);

enum Next {
    Progress(JobProgress),
    Ended(JobEnd),
    ClientGone,
}

impl Client {
    pub(super) async fn follow(&mut self, job: JobId) -> Result<(), Parting> {
        let mut following = self
            .question(|reply| LoopRequest::Follow { job, reply })
            .await?;
        let mut sent = *following.progress.borrow_and_update();
        self.send(&FromCoordinator::Progress(sent)).await?;
        loop {
            match self.next(&mut following, now()).await? {
                Next::Progress(progress) => {
                    sent = progress;
                    self.send(&FromCoordinator::Progress(progress)).await?;
                }
                Next::Ended(end) => {
                    let last = *following.progress.borrow_and_update();
                    if last != sent {
                        self.send(&FromCoordinator::Progress(last)).await?;
                    }
                    return self.send(&FromCoordinator::Ended(Box::new(end))).await;
                }
                Next::ClientGone => return Ok(()),
            }
        }
    }

    async fn next(&mut self, following: &mut Following, told_at: Instant) -> Result<Next, Parting> {
        let Following { progress, end } = following;
        let sign_of_life = told_at + self.desk.limits.sign_of_life;
        let changed = async {
            sleep_until(told_at + COALESCED).await;
            let waited = sign_of_life.saturating_duration_since(now());
            // No change in time: repeat the progress as a heartbeat.
            if !matches!(timeout(waited, progress.changed()).await, Ok(Ok(()))) {
                sleep_until(sign_of_life).await;
            }
            *progress.borrow_and_update()
        };
        tokio::select! {
            biased;
            ended = end.wait_for(Option::is_some) => match ended.ok().and_then(|end| end.clone()) {
                Some(end) => Ok(Next::Ended(end)),
                None => Err(Parting::CoordinatorEnds),
            },
            received = self.receiver.receive::<ToCoordinator>() => match received? {
                Some(_) => Err(Parting::OutOfTurn { got: "a request", expected: "nothing while following a job" }),
                None => Ok(Next::ClientGone),
            },
            progress = changed => Ok(Next::Progress(progress)),
        }
    }
}
