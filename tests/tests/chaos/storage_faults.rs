//! A full worker disk, and outputs that are temporarily unreachable.

use std::thread::sleep;
use std::time::Duration;

use rand::Rng;
use rand_pcg::Pcg64;

use crate::daemons::Daemons;
use crate::faults::Injected;
use crate::processes::wait_until;
use crate::workload::Workload;

/// Longest time to wait for a write to a full disk.
const FULL: Duration = Duration::from_secs(5);
/// The maximum time until a worker is used again after its disk has room.
const RECOVERY: Duration = Duration::from_secs(60);

/// The first worker has no disk space: its tasks run elsewhere until it has some again, and no job fails.
pub fn fill_disk(daemons: &Daemons) -> Result<Injected, String> {
    let Some(disk) = &daemons.disk else {
        return Ok(Injected::CannotBeHad);
    };
    if daemons.worker_state(0).as_deref() != Some("up") {
        return Ok(Injected::NothingToHit);
    }
    disk.fill()?;
    let noticed = wait_until("a worker that is excluded", FULL, || {
        daemons.worker_state(0).is_some_and(|state| state != "up")
    });
    disk.free();
    wait_until("a worker that is used again", RECOVERY, || {
        daemons.worker_state(0).as_deref() == Some("up")
    })?;
    Ok(if noticed.is_ok() {
        Injected::Fired
    } else {
        Injected::NothingToHit
    })
}

/// All outputs become unreachable for a while: jobs wait for them, and write nothing in their place.
pub fn unmount_outputs(random: &mut Pcg64, workload: &Workload) -> Result<Injected, String> {
    let Some(outputs) = workload.outputs() else {
        return Ok(Injected::CannotBeHad);
    };
    // A submission at this time would correctly create its output in the wrong place.
    let alone = workload.leave_outputs_alone();
    outputs.go_away();
    sleep(Duration::from_millis(random.random_range(100..2_000)));
    let strays = outputs.strays();
    outputs.come_back();
    drop(alone);
    if strays.is_empty() {
        Ok(Injected::Fired)
    } else {
        Err(format!(
            "made in the place of outputs that were away: {strays:?}"
        ))
    }
}
