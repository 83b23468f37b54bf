//! A reduce that is suspended while it fetches: connections are closed, and nothing is lost or counted as a
//! failure.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;

use napreduce_protocol::{FromTask, WireError};

use super::proxy::Proxy;
use napreduce_task::Supervisor;

use super::*;

/// Without a limit, a busy machine would never fetch anything.
const SUSPENDS_MAX: u32 = 100;

struct Outbox(Sender<FromTask>);

impl Supervisor for Outbox {
    fn tell(&self, message: &FromTask) -> Result<(), WireError> {
        self.0
            .send(message.clone())
            .map_err(|_| WireError::CutShort)
    }

    fn catch_up(&self) {}
}

/// Suspends a reduce repeatedly until it has fetched everything; returns how often.
fn suspend_while_gathering(encrypt: bool) -> u32 {
    let served = Served::start().with_maps(40, 2_000);
    let mut reduce = Reduce::new(40).encrypted(encrypt);
    let (outbox, messages) = channel();
    reduce.context.gate().attach(Box::new(Outbox(outbox)));
    let context = Arc::clone(&reduce.context);
    let arrived = reduce.arrived.clone();
    let over_now = Arc::new(AtomicBool::new(false));
    let over = Arc::clone(&over_now);
    let suspending = std::thread::spawn(move || {
        for epoch in 1..=SUSPENDS_MAX {
            context.gate().suspend(epoch, false);
            // The fetch may be over by now; then no thread comes to the gate.
            arrived.send(InputEvent::GateRequest).unwrap();
            loop {
                match messages.recv_timeout(Duration::from_millis(10)) {
                    Ok(message) => {
                        break assert_eq!(message, FromTask::Ready { epoch, saves: true });
                    }
                    Err(_) if over.load(Ordering::SeqCst) => return epoch - 1,
                    Err(_) => {}
                }
            }
            assert!(!context.gate().resume(epoch));
            assert_eq!(
                messages.recv_timeout(PATIENCE),
                Ok(FromTask::Resumed { epoch })
            );
        }
        SUSPENDS_MAX
    });
    let gathered = reduce.gather(served.inputs(40));
    over_now.store(true, Ordering::SeqCst);
    let suspends = suspending.join().unwrap();
    check_equal(&gathered, &served.shelf, 0);
    assert_eq!(
        reduce.count(Counter::ShuffleRetries),
        0,
        "a pause is no failure of a peer"
    );
    suspends
}

#[test]
fn suspended_fetch_resumes_without_retries() {
    let suspends = suspend_while_gathering(false) + suspend_while_gathering(true);
    println!("{suspends} suspends");
    assert!(suspends > 0, "it was never suspended");
}

const SLOW_LINK: u32 = 150_000;
const BLOCK: usize = 128 << 10;

/// Three outputs of about 100 KB for each partition, behind a slow link.
fn slow_link() -> (Served, Proxy) {
    let served = Served::start().with_maps(3, 3_000);
    let proxy = Proxy::slow(&served.address, SLOW_LINK);
    (served, proxy)
}

/// Returns the bytes of the fetched files, the bytes that crossed the link, and the number of connections.
fn crossed(gathered: &[(AttemptId, PathBuf)], proxy: &Proxy) -> (usize, usize, usize) {
    let bytes = |path: &PathBuf| std::fs::metadata(path).unwrap().len() as usize;
    let passed = proxy.passed();
    (
        gathered.iter().map(|(_, path)| bytes(path)).sum(),
        passed.iter().map(Vec::len).sum(),
        passed.len(),
    )
}

/// Asks about progress as often as the control thread of a task, until the guard is dropped.
fn ask_about_progress(context: &Arc<TaskContext>) -> impl Drop + use<> {
    struct Asking(Option<(Sender<()>, JoinHandle<()>)>);
    impl Drop for Asking {
        fn drop(&mut self) {
            if let Some((end, thread)) = self.0.take() {
                drop(end);
                thread.join().unwrap();
            }
        }
    }
    let (end, ended) = channel::<()>();
    let context = Arc::clone(context);
    let thread = std::thread::spawn(move || {
        while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
            context.gate().question();
        }
    });
    Asking(Some((end, thread)))
}

#[test]
fn progress_questions_leave_fetch_connections_open() {
    for encrypt in [false, true] {
        let (served, proxy) = slow_link();
        let mut reduce = Reduce::new(3).encrypted(encrypt);
        let asking = ask_about_progress(&reduce.context);
        let gathered = reduce.gather(
            (0..3)
                .map(|index| remote(map(index), &proxy.address))
                .collect(),
        );
        drop(asking);
        check_equal(&gathered, &served.shelf, 0);
        let (bytes, passed, connections) = crossed(&gathered, &proxy);
        assert!(
            passed * 100 <= bytes * 105,
            "{passed} bytes crossed the link for {bytes}"
        );
        assert_eq!(connections, 1, "encrypted: {encrypt}");
    }
}

#[test]
fn outputs_named_one_by_one_share_one_connection() {
    let served = Served::start().with_maps(4, 500);
    let proxy = Proxy::before(&served.address, &[]);
    let mut reduce = Reduce::new(4);
    let mut named = (0..4)
        .map(|index| remote(map(index), &proxy.address))
        .collect::<Vec<_>>()
        .into_iter();
    let later = reduce.arrived.clone();
    let scratch = reduce.scratch.path().to_owned();
    let first = named.next().unwrap();
    let naming = std::thread::spawn(move || {
        for (before, next) in named.enumerate() {
            while !scratch
                .join(format!("fetched-job_0001_m_{before:04}.1.segment"))
                .exists()
            {
                std::thread::yield_now();
            }
            later.send(InputEvent::Named(vec![next])).unwrap();
        }
    });
    let gathered = reduce.gather(vec![first]);
    naming.join().unwrap();
    check_equal(&gathered, &served.shelf, 0);
    assert_eq!(proxy.passed().len(), 1);
}

#[test]
fn suspend_over_slow_link_loses_one_block_at_most() {
    let (served, proxy) = slow_link();
    let mut reduce = Reduce::new(3);
    let (outbox, messages) = channel();
    reduce.context.gate().attach(Box::new(Outbox(outbox)));
    let context = Arc::clone(&reduce.context);
    let arrived = reduce.arrived.clone();
    let asking = ask_about_progress(&reduce.context);
    let suspending = std::thread::spawn(move || {
        // In the middle of the second output.
        while context.counters().get(Counter::ShuffleNetworkBytes) < 150_000 {
            std::thread::yield_now();
        }
        context.gate().suspend(1, false);
        arrived.send(InputEvent::GateRequest).unwrap();
        assert_eq!(
            messages.recv_timeout(PATIENCE),
            Ok(FromTask::Ready {
                epoch: 1,
                saves: true
            })
        );
        assert!(!context.gate().resume(1));
        assert_eq!(
            messages.recv_timeout(PATIENCE),
            Ok(FromTask::Resumed { epoch: 1 })
        );
    });
    let gathered = reduce.gather(
        (0..3)
            .map(|index| remote(map(index), &proxy.address))
            .collect(),
    );
    suspending.join().unwrap();
    drop(asking);
    check_equal(&gathered, &served.shelf, 0);
    let (bytes, passed, connections) = crossed(&gathered, &proxy);
    assert!(
        passed * 100 <= bytes * 105 + BLOCK * 100,
        "{passed} bytes crossed the link for {bytes}"
    );
    assert_eq!(connections, 2, "one before the suspend, one after it");
}
