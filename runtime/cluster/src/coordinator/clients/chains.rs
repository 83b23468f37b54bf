//! The connection of a program with a chain of jobs. While it is open, the program counts as alive.

use napreduce_protocol::ToCoordinator;
use napreduce_protocol::requests::HoldChain;
use tokio::sync::mpsc::UnboundedSender;

use super::{Client, Parting};
use crate::coordinator::requests::LoopRequest;

/// Notifies the loop when the connection ends, in any way.
struct Held {
    requests: UnboundedSender<LoopRequest>,
    chain: u128,
}

impl Drop for Held {
    fn drop(&mut self) {
        // Fails after the loop has ended; the next one starts without connected chains.
        let _ = self
            .requests
            .send(LoopRequest::ReleaseChain { chain: self.chain });
    }
}

impl Client {
    /// Holds a chain until its program ends it or disconnects.
    pub(super) async fn hold_chain(&mut self, asked: HoldChain) -> Result<(), Parting> {
        let chain = asked.chain;
        let answer = self.ask(asked.into()).await?;
        let _held = Held {
            requests: self.desk.requests.clone(),
            chain,
        };
        self.send(&answer).await?;
        // No idle limit: jobs may run long, and the kernel detects a dead host.
        match self.receiver.receive().await? {
            None => Ok(()),
            Some(ToCoordinator::EndChain(asked)) if asked.chain == chain => {
                let answer = self.ask(asked.into()).await?;
                self.send(&answer).await
            }
            Some(_) => Err(Parting::OutOfTurn {
                got: "another request",
                expected: "the end of a chain",
            }),
        }
    }
}
