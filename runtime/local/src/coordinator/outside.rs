//! Steps outside the loop, which may block and return their results to the loop.

use super::{Input, SendBack};
use crate::world::Tasks;

/// Runs a step outside the loop and returns its result to the loop. If the step panics, the result is that of `panicked`, which gets
/// the reason: nothing waits for an answer that never comes. The panic itself has been printed.
pub(super) fn run_outside(
    tasks: &Tasks,
    send_back: SendBack,
    step: impl FnOnce() -> Input + Send + 'static,
    panicked: impl FnOnce(String) -> Input + Send + 'static,
) {
    let running = tasks.blocking(step);
    tasks.spawn(async move {
        let result = running
            .await
            .unwrap_or_else(|error| panicked(error.to_string()));
        send_back(result);
    });
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::{Input, run_outside};
    use crate::world::World;

    async fn reason_returned_by(step: impl FnOnce() -> Input + Send + 'static) -> String {
        let (sender, received) = mpsc::channel();
        let send_back = Arc::new(move |input| sender.send(input).expect("the test waits"));
        let tasks = World::real().tasks;
        run_outside(&tasks, send_back, step, |reason| Input::Interrupt {
            reason,
        });
        let waiting = tasks.blocking(move || received.recv().expect("a result"));
        let Input::Interrupt { reason } = waiting.await.expect("no panic") else {
            panic!("another input");
        };
        reason
    }

    #[tokio::test]
    async fn step_returns_its_result_or_that_it_panicked() {
        let reason = "it is over".to_owned();
        let returned = reason_returned_by(|| Input::Interrupt { reason }).await;
        assert_eq!(returned, "it is over");
        let returned = reason_returned_by(|| panic!("as the test wants")).await;
        assert!(
            returned.starts_with("task ") && returned.contains("as the test wants"),
            "{returned}"
        );
    }
}
