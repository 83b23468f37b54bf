//! A thread that fetches segments in batches, from the request to the sealed file.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use napreduce_data::{PartitionExtent, SegmentAssembly};
use napreduce_engine::{AttemptId, FaultPlace};
use napreduce_protocol::{Counter, FetchItem, FromDataServer, jittered};
use napreduce_task::InputEvent;

use super::connection::{FetchConnection, FetchError};
use super::queue::{Failure, SegmentRequest};
use super::{Shared, Turn};

/// Maximum damaged receipts of a block before the file itself counts as damaged.
const DAMAGED_MAX: u32 = 3;

pub(super) fn run(shared: &Arc<Shared>) {
    while let Some(Turn {
        address,
        items,
        pauses,
    }) = shared.wait_next()
    {
        let mut batch = Batch {
            items: items.into(),
            progressed: false,
            spent: Duration::ZERO,
            pauses,
        };
        match batch.fetch(shared, &address) {
            Ok(connection) => {
                // Before another thread can take the peer's next batch.
                shared.keep_idle(connection.into_idle(), pauses);
                shared.queue().ended(&address);
            }
            Err(error) => batch.fail(shared, &address, error),
        }
        shared.changed.notify_all();
    }
}

/// Segments requested at once, the next one in front.
struct Batch {
    items: VecDeque<SegmentRequest>,
    /// Whether any data arrived.
    progressed: bool,
    /// Time without progress.
    spent: Duration,
    /// Number of pauses before the batch.
    pauses: u64,
}

impl Batch {
    /// Fetches the whole batch; returns the connection for reuse.
    fn fetch<'a>(
        &mut self,
        shared: &'a Shared,
        address: &str,
    ) -> Result<FetchConnection<'a>, FetchError> {
        let mut connection = match shared.take_idle(address) {
            Some(idle) => FetchConnection::reuse(shared, idle)?,
            None => FetchConnection::open(shared, address, &mut self.spent)?,
        };
        let item = |request: &SegmentRequest| FetchItem {
            attempt: request.attempt,
            from_block: request.next_block(),
        };
        connection.request(self.items.iter().map(item).collect())?;
        while let Some(request) = self.items.front_mut() {
            let before = request.next_block();
            let arrived = receive(shared, &mut connection, request);
            if arrived.is_ok() || request.next_block() > before {
                (self.progressed, self.spent, request.damaged) = (true, Duration::ZERO, 0);
            }
            self.spent += connection.silent();
            shared.send(arrived?);
            self.items.pop_front();
        }
        Ok(connection)
    }

    /// Requeues the segments still to be fetched and reports the others.
    fn fail(mut self, shared: &Shared, address: &str, error: FetchError) {
        let partition = shared.settings.partition;
        let lost = |attempts: Vec<AttemptId>, place: FaultPlace, reason: String| InputEvent::Lost {
            attempts,
            place,
            reason,
        };
        let reason = match error {
            // Closed by this process itself; not a failure.
            FetchError::Stopped | FetchError::Broken(_)
                if shared.pause.is_on() || shared.pause.begun() != self.pauses =>
            {
                self.drop_open_blocks();
                return shared.queue().put_back(address, self.items.into());
            }
            FetchError::Stopped => return,
            FetchError::Busy(wait) => {
                self.drop_open_blocks();
                // Clients that were rejected together do not return together, and none of them too early.
                let until = Instant::now() + wait / 2 + jittered(wait);
                return shared.queue().busy(address, self.items.into(), until);
            }
            FetchError::Fatal(error) => return shared.send(InputEvent::Failed(error)),
            FetchError::Broken(reason) => reason,
            FetchError::Damaged(reason) => {
                self.progressed = true;
                let damaged = self.items.front_mut().map_or(0, |request| {
                    request.damaged += 1;
                    request.damaged
                });
                if damaged >= DAMAGED_MAX
                    && let Some(request) = self.items.pop_front()
                {
                    let reason = format!(
                        "fetching partition {partition} from {address}: {reason}, {damaged} times"
                    );
                    shared.send(lost(vec![request.attempt], FaultPlace::Peer, reason));
                }
                reason
            }
            FetchError::Other(reason) => {
                self.progressed = true;
                if let Some(request) = self.items.pop_front() {
                    let reason = format!("fetching partition {partition} from {address}: {reason}");
                    shared.send(lost(vec![request.attempt], FaultPlace::Peer, reason));
                }
                reason
            }
        };
        self.drop_open_blocks();
        shared
            .settings
            .context
            .counters()
            .add(Counter::ShuffleRetries, 1);
        let failure = Failure {
            items: self.items.into(),
            progressed: self.progressed,
            spent: self.spent,
        };
        let given_up = shared.queue().failed(address, failure, Instant::now());
        if let Some((requests, tries)) = given_up
            && !requests.is_empty()
        {
            let attempts = requests.iter().map(|request| request.attempt).collect();
            let reason = format!(
                "fetching partition {partition} from {address}: {tries} tries, the last: {reason}"
            );
            shared.send(lost(attempts, FaultPlace::Path, reason));
        }
    }
}

impl Batch {
    /// Drops incomplete blocks, which cannot be verified and are requested again.
    fn drop_open_blocks(&mut self) {
        for request in &mut self.items {
            if let Some(assembly) = &mut request.assembly {
                assembly.drop_open_block();
            }
        }
    }
}

/// Receives the answer to one item.
fn receive(
    shared: &Shared,
    connection: &mut FetchConnection<'_>,
    request: &mut SegmentRequest,
) -> Result<InputEvent, FetchError> {
    let asked = (request.attempt, shared.settings.partition);
    match connection.next()? {
        FromDataServer::Segment {
            attempt,
            partition,
            from_block,
            extent,
        } if (attempt, partition) == asked && from_block == request.next_block() => {
            let extent = PartitionExtent::decode(&extent.0).map_err(FetchError::Broken)?;
            receive_segment(shared, connection, request, extent)
        }
        FromDataServer::Unavailable {
            attempt,
            partition,
            gone,
            reason,
        } if (attempt, partition) == asked => {
            // An unreadable segment is lost only if other readers confirm it.
            let place = if gone {
                FaultPlace::Peer
            } else {
                FaultPlace::Path
            };
            let reason = format!(
                "fetching partition {partition} from {}: {reason}",
                connection.address()
            );
            Ok(InputEvent::Lost {
                attempts: vec![attempt],
                place,
                reason,
            })
        }
        other => Err(FetchError::Broken(format!(
            "protocol error: expected an answer about {}, got {other:?}",
            asked.0
        ))),
    }
}

fn receive_segment(
    shared: &Shared,
    connection: &mut FetchConnection<'_>,
    request: &mut SegmentRequest,
    extent: PartitionExtent,
) -> Result<InputEvent, FetchError> {
    let attempt = request.attempt;
    let first_block = request.first_block;
    let described = (extent.label(), extent.partition(), extent.first_block());
    let name = attempt.to_string();
    if described
        != (
            name.as_str(),
            shared.settings.partition,
            request.next_block(),
        )
    {
        let (label, partition, block) = described;
        return Err(FetchError::Other(format!(
            "requested {name}, received partition {partition} of {label} from block {block} on"
        )));
    }
    let fits = request
        .assembly
        .as_ref()
        .is_none_or(|assembly| assembly.extent().continues_as(&extent));
    if !fits {
        // Restart from the first block.
        request.assembly = None;
        return Err(FetchError::Damaged(format!(
            "the output of {name} was replaced during the fetch"
        )));
    }
    let assembly =
        match &mut request.assembly {
            Some(assembly) => assembly,
            none => {
                // A different name than that of the whole segment, which may be needed later.
                let from = if first_block == 0 {
                    String::new()
                } else {
                    format!("-from-{first_block}")
                };
                let path = shared
                    .settings
                    .scratch
                    .join(format!("fetched-{name}{from}.segment"));
                let created = SegmentAssembly::create(&path, extent);
                none.insert(created.map_err(|error| {
                    FetchError::from(napreduce_data::AssemblyError::Write(error))
                })?)
            }
        };
    connection.receive_blocks(assembly)?;
    let complete = request.assembly.take();
    let sealed = complete.map(SegmentAssembly::seal).transpose()?;
    let path = sealed.map(|sealed| sealed.path).unwrap_or_default();
    Ok(InputEvent::Fetched {
        attempt,
        first_block,
        path,
    })
}
