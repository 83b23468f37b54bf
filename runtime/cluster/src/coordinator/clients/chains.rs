//! The connection of a program whose jobs are a chain: that it is open says that the program is there.
//!
//! Owns the order of what it may say. Does not own what follows from its end (the loop).

use napreduce_protocol::ToCoordinator;
use napreduce_protocol::requests::HoldChain;
use tokio::sync::mpsc::UnboundedSender;

use super::{Client, Parting};
use crate::coordinator::requests::Request;

/// Tells the loop when the connection is gone, however it went.
struct Held {
    requests: UnboundedSender<Request>,
    chain: u128,
}

impl Drop for Held {
    fn drop(&mut self) {
        // A loop that has ended starts anew with every chain unheard of.
        let _ = self.requests.send(Request::ReleaseChain { chain: self.chain });
    }
}

impl Client {
    /// Holds a chain until its program says that it is done, or goes.
    pub(super) async fn hold_chain(&mut self, asked: HoldChain) -> Result<(), Parting> {
        let chain = asked.chain;
        let answer = self.ask(asked.into()).await?;
        let _held = Held { requests: self.desk.requests.clone(), chain };
        self.send(&answer).await?;
        // A program says nothing for as long as its jobs take; that its host is gone the kernel finds out.
        match self.receiver.receive().await? {
            None => Ok(()),
            Some(ToCoordinator::EndChain(asked)) if asked.chain == chain => {
                let answer = self.ask(asked.into()).await?;
                self.send(&answer).await
            }
            Some(_) => Err(Parting::OutOfTurn { got: "another request", expected: "the end of a chain" }),
        }
    }
}
