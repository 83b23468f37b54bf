//! Metrics per queue.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;

use napreduce_protocol::{QueueListing, QueueSlots, QueueSummary};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::labels::{Labels, label};
use crate::tally::OTHERS;

/// Further queues are summed up in one series.
const QUEUES_MAX: usize = 200;

type Slots = Family<Labels, Gauge<f64, AtomicU64>>;

/// Registers the scheduler, the total demand, and three families per queue, which have no series if the
/// scheduler has no queues.
pub fn register(registry: &mut Registry, listing: &QueueListing) {
    let wanted = Slots::default();
    for (kind, slots) in [
        ("map", listing.wanted.map),
        ("reduce", listing.wanted.reduce),
    ] {
        wanted.get_or_create(&label("kind", kind)).set(slots as f64);
    }
    let help =
        "Slots that jobs could use in addition to those that they hold; demand for more workers";
    registry.register("slots_wanted", help, wanted);
    let scheduler = Slots::default();
    scheduler
        .get_or_create(&label("scheduler", &listing.scheduler))
        .set(1.0);
    registry.register("scheduler_info", "Name of the scheduler", scheduler);
    let queues = listing.queues.as_deref().unwrap_or_default();
    let held = family(queues, |slots| Some(slots.used as f64));
    registry.register("queue_held", "Slots held by a queue", held);
    let guaranteed = family(queues, |slots| {
        slots
            .guaranteed_permille
            .map(|permille| permille as f64 / 1e3)
    });
    registry.register(
        "queue_guarantee",
        "Guaranteed slots of a queue, if it has a guarantee",
        guaranteed,
    );
    let wanted = family(queues, |slots| Some(slots.wanted as f64));
    registry.register(
        "queue_wanted",
        "Slots that the jobs of a queue could use in addition",
        wanted,
    );
}

fn family(queues: &[QueueSummary], of: fn(&QueueSlots) -> Option<f64>) -> Slots {
    let slots = Slots::default();
    let (shown, others) = queues.split_at(queues.len().min(QUEUES_MAX));
    // The slots of a queue are counted in its parents, too.
    let parents: HashSet<&str> = queues
        .iter()
        .filter_map(|queue| queue.parent.as_deref())
        .collect();
    for (kind, slots_of) in [
        (
            "map",
            (|queue| &queue.map) as fn(&QueueSummary) -> &QueueSlots,
        ),
        ("reduce", |queue| &queue.reduce),
    ] {
        let labels =
            |queue: &str| -> Labels { vec![("queue", queue.into()), ("kind", kind.into())] };
        for queue in shown {
            if let Some(value) = of(slots_of(queue)) {
                slots.get_or_create(&labels(&queue.name)).set(value);
            }
        }
        let leaves = others
            .iter()
            .filter(|queue| !parents.contains(queue.name.as_str()));
        for value in leaves.filter_map(|queue| of(slots_of(queue))) {
            slots.get_or_create(&labels(OTHERS)).inc_by(value);
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use napreduce_protocol::SlotsWanted;
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn queue(name: &str, parent: Option<&str>, used: u64) -> QueueSummary {
        let map = QueueSlots {
            guaranteed_permille: Some(1_500),
            used,
            ..QueueSlots::default()
        };
        QueueSummary {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            weight_permille: None,
            map,
            reduce: QueueSlots::default(),
            running: 0,
            waiting: 0,
            remark: None,
        }
    }

    fn printed(queues: Vec<QueueSummary>) -> String {
        let mut registry = Registry::default();
        let mut text = String::new();
        let scheduler = "capacity".to_owned();
        let wanted = SlotsWanted { map: 7, reduce: 2 };
        register(
            &mut registry,
            &QueueListing {
                scheduler,
                queues: Some(queues),
                wanted,
            },
        );
        encode(&mut text, &registry).expect("text");
        text
    }

    #[test]
    fn queue_of_any_name_is_one_line() {
        let text = printed(vec![queue("a,\"b\"\n\\c}", None, 3)]);
        let line = r#"queue_held{queue="a,\"b\"\n\\c}",kind="map"} 3.0"#;
        assert!(text.lines().any(|known| known == line), "{text}");
    }

    #[test]
    fn queue_series_have_held_guaranteed_and_wanted_slots() {
        let text = printed(vec![queue("research", None, 3)]);
        for line in [
            "queue_held{queue=\"research\",kind=\"map\"} 3.0",
            "queue_held{queue=\"research\",kind=\"reduce\"} 0.0",
            "queue_guarantee{queue=\"research\",kind=\"map\"} 1.5",
            "queue_wanted{queue=\"research\",kind=\"map\"} 0.0",
            "slots_wanted{kind=\"map\"} 7.0",
            "slots_wanted{kind=\"reduce\"} 2.0",
        ] {
            assert!(
                text.lines().any(|known| known == line),
                "{line} is missing in\n{text}"
            );
        }
        assert!(
            !text.contains("queue_guarantee{queue=\"research\",kind=\"reduce\"}"),
            "{text}"
        );
    }

    #[test]
    fn surplus_queues_are_summed_without_parents() {
        let own = (0..QUEUES_MAX).map(|number| queue(&number.to_string(), None, 1));
        let more = [
            queue("all", None, 5),
            queue("left", Some("all"), 2),
            queue("right", Some("all"), 3),
        ];
        let text = printed(own.chain(more).collect());
        assert!(
            text.contains("queue_held{queue=\"other\",kind=\"map\"} 5.0\n"),
            "{text}"
        );
        assert!(
            !text.contains("queue=\"left\"") && text.contains("queue=\"199\""),
            "{text}"
        );
    }
}
