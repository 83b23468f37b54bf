//! Programs from the coordinator: each is fetched once, verified, and executed or rejected with a reason.
//! `blobs` tests how they are stored.

use std::time::Duration;

use napreduce_engine::{FailureClass, JobId, Order, Report};
use napreduce_protocol::JobDescription;

use super::script::*;

/// Returns the host of the worker, and the reason why the first attempt of a job with this program fails
/// there.
async fn refusal(program: Vec<u8>) -> (String, String) {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let mut job = script.job("");
    job.program = Some(script.keep(program));
    line.define(job).await;
    line.launch(map(1), script.map_work()).await;
    let (class, reason) = line.failure().await;
    assert_eq!(class, FailureClass::Retryable);
    assert!(
        reason.contains(&format!("host {}", line.hello.host)),
        "{reason}"
    );
    (line.hello.host.clone(), reason)
}

#[tokio::test(flavor = "current_thread")]
async fn program_for_other_processor_error_names_both() {
    let mut header = vec![0; 64];
    header[..6].copy_from_slice(b"\x7fELF\x02\x01");
    header[18] = 243;
    let (host, reason) = refusal(header).await;
    let expected = format!(
        "is built for riscv64, but host {} is {}",
        host,
        std::env::consts::ARCH
    );
    assert!(reason.contains(&expected), "{reason}");
}

#[tokio::test(flavor = "current_thread")]
async fn file_that_is_not_a_program_is_reported() {
    let (_, reason) = refusal(b"#!/bin/sh\necho this is a script\n".to_vec()).await;
    assert!(reason.contains("is not an ELF executable"), "{reason}");
    // The header of this program without the rest.
    let mut torn = std::fs::read("/proc/self/exe").unwrap();
    torn.truncate(64);
    let (_, reason) = refusal(torn).await;
    assert!(
        reason.contains("cannot execute the job's program as "),
        "{reason}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn program_with_wrong_digest_is_not_executed() {
    let mut script = Script::new().await;
    let _daemon = script.start(&["fetch_millis=300"]);
    let mut line = script.join().await;
    let job = script.job("");
    let program = job.program.unwrap();
    script.falsify(program, vec![b'x'; usize::try_from(program.bytes).unwrap()]);
    line.define(job).await;
    line.launch(map(1), script.map_work()).await;
    let (class, reason) = line.failure().await;
    assert_eq!(class, FailureClass::Retryable);
    let expected = format!("blob {} arrived as ", program.digest);
    assert!(
        reason.contains(&expected) && reason.contains("could not fetch the job's program"),
        "{reason}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn program_is_fetched_once_for_all_attempts_and_jobs() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let job = script.job("m_0000.1 work pause SOCKET;m_0000.2 work pause SOCKET");
    line.define(job.clone()).await;
    line.launch(map(1), script.map_work()).await;
    line.launch(map(2), script.map_work()).await;
    // The process has not started yet, or only just; the kill ends it in either case.
    line.launch(map(3), script.map_work()).await;
    line.order(Order::Kill { attempt: map(3) }).await;
    let moments = [script.moment().await, script.moment().await];
    // The next fetch returns other bytes.
    script.falsify(job.program.unwrap(), b"something else".to_vec());
    line.define(JobDescription {
        job: JobId(2),
        ..job
    })
    .await;
    let mut other = map(1);
    other.task.job = JobId(2);
    line.launch(other, script.map_work()).await;
    let third = script.moment().await;
    assert_eq!(third.attempt, other.to_string());
    for moment in moments.into_iter().chain([third]) {
        moment.go_on().await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn modified_cached_program_is_fetched_again() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let job = script.job("");
    let cached = script
        .own("blobs")
        .join(job.program.unwrap().digest.to_string());
    line.define(job.clone()).await;
    line.define(JobDescription {
        job: JobId(2),
        ..job
    })
    .await;
    let mut other = map(1);
    other.task.job = JobId(2);
    for (number, attempt) in [(1, map(1)), (3, map(2)), (5, other)] {
        line.launch(attempt, script.map_work()).await;
        line.assert_happened(number, attempt, Report::Started).await;
        line.assert_finished(number + 1, attempt).await;
        let mut changed = std::fs::read(&cached).unwrap();
        let middle = changed.len() / 2;
        changed[middle..middle + 64].fill(0xcc);
        // A task of the same user cannot write to a running program, but it can replace it.
        std::fs::remove_file(&cached).unwrap();
        std::fs::write(&cached, changed).unwrap();
        std::fs::set_permissions(&cached, std::os::unix::fs::PermissionsExt::from_mode(0o700))
            .unwrap();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn unknown_blob_fails_attempt_at_once() {
    let mut script = Script::new().await;
    let _daemon = script.start(&[]);
    let mut line = script.join().await;
    let mut job = script.job("");
    job.program.as_mut().unwrap().digest.0[0] ^= 1;
    line.define(job).await;
    line.launch(map(1), script.map_work()).await;
    let (class, reason) = line.failure().await;
    assert_eq!(class, FailureClass::Retryable);
    assert!(
        reason.contains("cannot fetch the job's program") && reason.contains("no blob"),
        "{reason}"
    );
}

#[tokio::test(flavor = "current_thread")]
async fn program_fetch_is_retried_after_coordinator_restart() {
    let mut script = Script::new().await;
    let _daemon = script.start(&["fetch_millis=60000"]);
    let mut line = script.join().await;
    let job = script.job("");
    line.define(job).await;
    script.stop_listening();
    line.launch(map(1), script.map_work()).await;
    line.assert_received(2).await;
    // Long enough for a first try, which gets no answer.
    tokio::time::sleep(Duration::from_millis(100)).await;
    script.listen().await;
    line.assert_happened(1, map(1), Report::Started).await;
    line.assert_finished(2, map(1)).await;
}
