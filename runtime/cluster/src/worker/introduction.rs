//! Connects a worker to the coordinator: one connection, hello, and the answer.

use std::time::Duration;

use napreduce_engine::{Slots, WorkerId};
use napreduce_local::world::World;
use napreduce_protocol::{FromWorker, Hello, ToWorker};
use tokio::time::timeout;

use super::registration::Resources;
use crate::client::ClusterPlace;
use crate::transport::{self, Connection, HANDSHAKE_DEADLINE, Role, TransportError};

/// Time limit for the answer to `Hello`, which waits for the journal.
const WELCOME_DEADLINE: Duration = Duration::from_secs(10);

/// A worker's description of itself.
pub(super) struct Introduction {
    pub(super) incarnation: u64,
    pub(super) slots: Slots,
    pub(super) data_address: String,
}

/// The reason why there is no connection.
#[derive(Debug)]
pub(super) enum Apart {
    /// No coordinator yet, but one is starting.
    Starting,
    /// Unreachable or incomprehensible.
    Unreachable(String),
    /// The coordinator permanently refuses this worker.
    NotLetIn { address: String, reason: String },
    /// The coordinator refused for now.
    Refused(String),
    /// Another worker has this name. It may be a dead one, which keeps the name for at most this time.
    NameTaken { reason: String, free_in: Duration },
    /// The connection ended.
    Lost(String),
}

impl Introduction {
    pub(super) fn hello(
        &self,
        resources: &Resources,
        before: Option<(u64, WorkerId)>,
        received: u64,
    ) -> Hello {
        let environment = &resources.environment;
        let memory = match resources.processes.spare_memory() {
            Ok(spare) => spare.available,
            Err(_) => 0,
        };
        Hello {
            name: environment.name.clone(),
            incarnation: self.incarnation,
            before,
            received,
            slots: self.slots,
            host: environment.host.clone(),
            rack: environment.configuration.rack.clone(),
            data_address: self.data_address.clone(),
            directory: environment.paths.root().to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            isolation: environment.isolation.in_words(),
            memory,
            process: environment.configuration.world.process.id(),
        }
    }
}

/// Connects and sends hello; returns the connection and the answer.
pub(super) async fn introduce(
    world: &World,
    place: &ClusterPlace,
    hello: Hello,
) -> Result<(Connection, ToWorker), Apart> {
    let unreachable = |error: TransportError| Apart::Unreachable(error.to_string());
    let (address, secret) = place.look_up().map_err(|error| {
        if error.is_absence() && place.is_starting(&world.process) {
            Apart::Starting
        } else {
            Apart::Unreachable(error.to_string())
        }
    })?;
    let connected =
        transport::connect(world, &address, Role::Worker, &secret, HANDSHAKE_DEADLINE).await;
    let mut connection = connected.map_err(|error| match (&error, place) {
        // The recorded address may be that of a dead coordinator, now in use by a foreign process.
        (
            TransportError::SecretRefused
            | TransportError::OtherSecret
            | TransportError::OtherVersion { .. },
            ClusterPlace::Address { .. },
        ) => Apart::NotLetIn {
            address: address.clone(),
            reason: error.to_string(),
        },
        _ => unreachable(error),
    })?;
    let exchange = async {
        connection.send(&FromWorker::Hello(Box::new(hello))).await?;
        connection.receive::<ToWorker>().await
    };
    let Ok(received) = timeout(WELCOME_DEADLINE, exchange).await else {
        return Err(Apart::Unreachable(format!(
            "{address} did not answer Hello"
        )));
    };
    let Some(answer) = received.map_err(unreachable)? else {
        return Err(Apart::Unreachable(format!(
            "{address} closed the connection after Hello"
        )));
    };
    Ok((connection, answer))
}
