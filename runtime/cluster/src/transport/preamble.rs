//! The plaintext first bytes of a connection: magic, version and role. The version covers everything sent
//! between processes of a cluster.

use napreduce_engine::JobId;
use napreduce_protocol::{NETWORK_VERSION, Secret};

use super::error::TransportError;
use super::secret::job_token;

pub(super) const MAGIC: [u8; 4] = *b"NAPR";

/// The client sends magic, version (little-endian), role, and the number of a task's job
/// (little-endian, else 0).
pub(super) const GREETING_BYTES: usize = 11;
/// The server answers magic and version.
pub(super) const ANSWER_BYTES: usize = 6;

/// The role of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A worker at the coordinator: `FromWorker` and `ToWorker`.
    Worker,
    /// A client of the coordinator: `ToCoordinator` and `FromCoordinator`.
    Client,
    /// A reader of logs or map output of any job, at a worker.
    Data,
    /// A task, which fetches map output of its job, at a worker. It has the job's token, not the cluster's
    /// secret.
    Task(JobId),
}

impl Role {
    fn code(self) -> u8 {
        match self {
            Role::Worker => 1,
            Role::Client => 2,
            Role::Data => 3,
            Role::Task(_) => 4,
        }
    }

    /// Returns the key that client and server share, derived from the cluster's secret.
    pub(super) fn key(self, secret: &Secret) -> Secret {
        match self {
            Role::Worker | Role::Client | Role::Data => secret.clone(),
            Role::Task(job) => job_token(secret, job),
        }
    }

    fn from_code(code: u8, job: JobId) -> Result<Role, TransportError> {
        match code {
            1 => Ok(Role::Worker),
            2 => Ok(Role::Client),
            3 => Ok(Role::Data),
            4 => Ok(Role::Task(job)),
            code => Err(TransportError::UnknownRole { code }),
        }
    }
}

pub(super) fn greeting(role: Role) -> [u8; GREETING_BYTES] {
    let [a, b, c, d] = MAGIC;
    let [low, high] = NETWORK_VERSION.to_le_bytes();
    let job = if let Role::Task(job) = role { job.0 } else { 0 };
    let [j0, j1, j2, j3] = job.to_le_bytes();
    [a, b, c, d, low, high, role.code(), j0, j1, j2, j3]
}

pub(super) fn answer() -> [u8; ANSWER_BYTES] {
    let [a, b, c, d] = MAGIC;
    let [low, high] = NETWORK_VERSION.to_le_bytes();
    [a, b, c, d, low, high]
}

/// Returns the role that a client requests.
pub(super) fn check_greeting(greeting: &[u8; GREETING_BYTES]) -> Result<Role, TransportError> {
    let [start @ .., code, j0, j1, j2, j3] = greeting;
    check_answer(start)?;
    Role::from_code(*code, JobId(u32::from_le_bytes([*j0, *j1, *j2, *j3])))
}

pub(super) fn check_answer(answer: &[u8; ANSWER_BYTES]) -> Result<(), TransportError> {
    let [magic @ .., low, high] = answer;
    if *magic != MAGIC {
        return Err(TransportError::NotNapreduce {
            got: magic.to_vec(),
        });
    }
    let theirs = u16::from_le_bytes([*low, *high]);
    if theirs == NETWORK_VERSION {
        Ok(())
    } else {
        Err(TransportError::OtherVersion { theirs })
    }
}
