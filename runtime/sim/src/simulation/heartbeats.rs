//! Heartbeats: with a heartbeat interval, a worker delivers its reports and gets its orders at multiples of
//! the interval, and immediately after the end of a task if the settings say so.

use super::Simulation;
use super::reports::Delivery;

impl Simulation {
    /// Whether an order reaches the worker immediately.
    pub(super) fn is_in_contact(&mut self, worker: u32) -> bool {
        let now = self.clock.now();
        let period = self.settings.overheads.heartbeat;
        if period.0 == 0 {
            return true;
        }
        self.workers.at_mut(worker).make_contact(now, period)
    }

    /// Schedules the worker's next regular heartbeat.
    pub(super) fn expect_heartbeat(&mut self, worker: u32) {
        let now = self.clock.now();
        let period = self.settings.overheads.heartbeat;
        let next = self.workers.at(worker).regular_heartbeat(now, period);
        if self.workers.at_mut(worker).plan_heartbeat(next) {
            self.clock.schedule_heartbeat(worker, next);
        }
    }

    /// Schedules a heartbeat of the worker for now, between its regular ones.
    pub(super) fn expect_heartbeat_now(&mut self, worker: u32) {
        let now = self.clock.now();
        if self.workers.at_mut(worker).plan_heartbeat(now) {
            self.clock.schedule_heartbeat(worker, now);
        }
    }

    /// Handles a heartbeat: delivers the worker's reports and dispatches its orders.
    pub(super) fn heartbeat(&mut self, worker: u32) {
        let now = self.clock.now();
        let Some(heartbeat) = self.workers.at_mut(worker).take_heartbeat(now) else {
            return;
        };
        for report in heartbeat.reports {
            self.receive_report(worker, report, Delivery::WithHeartbeat);
        }
        for order in heartbeat.orders {
            self.dispatch_order(order);
        }
    }
}
