//! Tasks and blocking work.

use std::io;
use std::thread;

use napreduce_task::run_soon_when_woken;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinHandle, JoinSet};

#[cfg(feature = "simulated")]
use super::Node;

/// Spawns tasks and blocking work. In production both run on the current tokio runtime.
#[derive(Debug, Clone)]
pub struct Tasks {
    runner: Runner,
}

#[derive(Debug, Clone)]
enum Runner {
    Tokio,
    #[cfg(feature = "simulated")]
    Node(Node),
}

impl Tasks {
    pub(super) fn tokio() -> Tasks {
        Tasks {
            runner: Runner::Tokio,
        }
    }

    #[cfg(feature = "simulated")]
    pub(super) fn of_node(node: Node) -> Tasks {
        Tasks {
            runner: Runner::Node(node),
        }
    }

    /// Starts a task.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match &self.runner {
            Runner::Tokio => tokio::spawn(future),
            #[cfg(feature = "simulated")]
            Runner::Node(node) => node.spawn(future),
        }
    }

    /// Starts a task of a set.
    pub fn spawn_in<F>(&self, set: &mut JoinSet<F::Output>, future: F) -> AbortHandle
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match &self.runner {
            Runner::Tokio => set.spawn(future),
            #[cfg(feature = "simulated")]
            Runner::Node(node) => node.spawn_in(set, future),
        }
    }

    /// Starts a task on a thread of its own, which also runs the tasks that it starts. Nothing else waits while one of
    /// them blocks. The result is an error if the task panicked.
    ///
    /// # Errors
    /// Fails if no thread can be started.
    pub fn spawn_on_thread<F>(
        &self,
        name: &str,
        future: F,
    ) -> io::Result<oneshot::Receiver<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (sender, output) = oneshot::channel();
        match &self.runner {
            Runner::Tokio => {
                let runtime = Builder::new_current_thread().enable_all().build()?;
                let thread = thread::Builder::new().name(name.to_owned());
                thread.spawn(move || {
                    run_soon_when_woken();
                    let result = runtime.block_on(future);
                    // Fails if nothing waits for the result.
                    let _ = sender.send(result);
                })?;
            }
            #[cfg(feature = "simulated")]
            Runner::Node(node) => {
                node.spawn(async move {
                    let result = future.await;
                    // Fails if nothing waits for the result.
                    let _ = sender.send(result);
                });
            }
        }
        Ok(output)
    }

    /// Runs a closure that may block, away from the tasks. It runs to its end even if nothing awaits it.
    pub fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.runner {
            Runner::Tokio => tokio::task::spawn_blocking(work),
            #[cfg(feature = "simulated")]
            Runner::Node(node) => node.spawn(node.after_latency(work)),
        }
    }

    /// Runs a closure that may block, as a member of a set.
    pub fn blocking_in<T: Send + 'static>(
        &self,
        set: &mut JoinSet<T>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> AbortHandle {
        match &self.runner {
            Runner::Tokio => set.spawn_blocking(work),
            #[cfg(feature = "simulated")]
            Runner::Node(node) => node.spawn_in(set, node.after_latency(work)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Node, World};

    #[tokio::test]
    async fn task_on_thread_returns_its_output_or_panic() {
        let simulated = Node::new("a", 1, 0).world();
        for tasks in [World::real().tasks, simulated.tasks] {
            let own = tasks.clone();
            let nested = async move { own.blocking(|| 7).await.expect("no panic") };
            let ended = tasks.spawn_on_thread("test", nested).expect("a thread");
            assert_eq!(ended.await, Ok(7));
            let failing = async { panic!("as the test wants") };
            let ended = tasks.spawn_on_thread("test", failing).expect("a thread");
            let _: tokio::sync::oneshot::error::RecvError = ended.await.expect_err("it panicked");
        }
    }
}
