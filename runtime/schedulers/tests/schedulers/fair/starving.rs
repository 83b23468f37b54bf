//! Properties of starvation and victim search on generated clusters.

use napreduce_engine::{Ratio, Span, Time};
use napreduce_schedulers::fair::{
    Container, Holder, Host, JobNeed, PoolNeed, Search, StarvationPatience, starvation,
};
use proptest::prelude::*;

const NOW: Time = Time(1_000_000);

fn jobs() -> impl Strategy<Value = Vec<JobNeed>> {
    let job = (0_u64..10, 0_u64..12, 0_u64..10, 0_u64..2, 0_u64..2);
    let job = job.prop_map(|(usage, share, more, since, later)| JobNeed {
        usage,
        share,
        demand: usage + more,
        last_at_share: Time(since * NOW.0),
        next_check: Time(later * 2 * NOW.0),
    });
    prop::collection::vec(job, 0..7)
}

fn patience() -> impl Strategy<Value = StarvationPatience> {
    let timeout = || prop_oneof![Just(None), Just(Some(Span(0))), Just(Some(Span(1)))];
    (timeout(), timeout(), 0_i128..5).prop_map(|(min, fair, quarters)| StarvationPatience {
        min_share_timeout: min,
        fair_share_timeout: fair,
        fair_share_threshold: Ratio::new(quarters, 4),
    })
}

fn cluster() -> impl Strategy<Value = (Vec<Host>, Vec<Holder>)> {
    let containers = prop::collection::vec((0_usize..4, 1_u64..4, prop::bool::weighted(0.2)), 0..6);
    let hosts = prop::collection::vec((0_u64..3, containers), 1..5);
    let holders = prop::collection::vec((0_u64..8, prop::bool::weighted(0.8)), 4);
    (hosts, holders).prop_map(|(hosts, holders)| {
        let container = |(holder, size, master)| Container {
            holder,
            size,
            master,
        };
        let host = |(free, containers): (u64, Vec<_>)| Host {
            free,
            containers: containers.into_iter().map(container).collect(),
        };
        let hosts: Vec<Host> = hosts.into_iter().map(host).collect();
        let usage = |of: usize| -> u64 {
            let all = hosts.iter().flat_map(|host| &host.containers);
            all.filter(|container| container.holder == of)
                .map(|container| container.size)
                .sum()
        };
        let holder = |(of, (share, preemptable))| Holder {
            usage: usage(of),
            share,
            preemptable,
        };
        let holders = holders.into_iter().enumerate().map(holder).collect();
        (hosts, holders)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn starvation_is_bounded_by_demand(mut jobs in jobs(), patience in patience(), min in 0_u64..20) {
        let usage = jobs.iter().map(|job| job.usage).sum();
        let demand = jobs.iter().map(|job| job.demand).sum();
        let mut pool = PoolNeed { usage, min, demand, patience, last_at_min: Time(0) };
        let before = jobs.clone();
        let amounts = starvation(NOW, &mut pool, &mut jobs);
        prop_assert_eq!(amounts.len(), jobs.len());
        for (job, amount) in before.iter().zip(&amounts) {
            prop_assert!(job.usage + amount <= job.demand);
            prop_assert!(job.next_check <= NOW || *amount == 0);
        }
        if patience.fair_share_timeout.is_none() {
            let lacking = min.min(demand).saturating_sub(usage);
            prop_assert!(amounts.iter().sum::<u64>() <= lacking);
        }
        if patience.min_share_timeout.is_none() {
            for (job, amount) in before.iter().zip(&amounts) {
                let part = patience.fair_share_threshold * Ratio::whole(job.share);
                let least = |amount| Ratio::whole(amount) >= part || amount == job.demand;
                // With the missing amount it reaches its threshold or demand; with one less it does not.
                let held = job.usage + amount;
                prop_assert!(*amount == 0 || (least(held) && !least(held - 1)));
            }
        }
    }

    #[test]
    fn victims_make_room_above_their_shares(
        (hosts, holders) in cluster(),
        requests in prop::collection::vec(1_u64..5, 1..8),
    ) {
        let mut search = Search::new(hosts.clone(), holders.clone());
        let mut left: Vec<u64> = holders.iter().map(|holder| holder.usage).collect();
        let mut free: Vec<u64> = hosts.iter().map(|host| host.free).collect();
        let mut gone = vec![Vec::new(); hosts.len()];
        for request in requests {
            let Some(room) = search.make_room(request) else { continue };
            for place in room.taken {
                prop_assert!(!gone[room.host].contains(&place), "the container was taken before");
                gone[room.host].push(place);
                let Container { holder, size, .. } = hosts[room.host].containers[place];
                prop_assert!(holders[holder].preemptable);
                left[holder] -= size;
                prop_assert!(left[holder] >= holders[holder].share);
                free[room.host] += size;
            }
            prop_assert!(free[room.host] >= request, "the request fits");
            free[room.host] -= request;
        }
    }

    #[test]
    fn search_finds_room_on_any_host((hosts, holders) in cluster(), request in 1_u64..5) {
        // Tries the hosts one by one: if no single host has room, the search must fail.
        let alone = |host: &Host| Search::new(vec![host.clone()], holders.clone()).make_room(request);
        let rooms: Vec<_> = hosts.iter().map(alone).collect();
        let masters = |host: usize, taken: &[usize]| {
            taken.iter().filter(|place| hosts[host].containers[**place].master).count()
        };
        let fewest = rooms
            .iter()
            .enumerate()
            .filter_map(|(host, room)| Some((masters(host, &room.as_ref()?.taken), host)))
            .min();
        let found = Search::new(hosts.clone(), holders.clone()).make_room(request);
        prop_assert_eq!(found.map(|room| (masters(room.host, &room.taken), room.host)), fewest);
    }
}

#[test]
fn job_without_slot_starves_at_share_of_one() {
    // Share, usage, and the slots missing to half of the share.
    for (share, usage, lacks) in [
        (0, 0, 0),
        (1, 0, 1),
        (1, 1, 0),
        (2, 0, 1),
        (2, 1, 0),
        (5, 2, 1),
        (5, 3, 0),
    ] {
        let fair_share_timeout = Some(Span(0));
        let patience = StarvationPatience {
            min_share_timeout: None,
            fair_share_timeout,
            fair_share_threshold: Ratio::new(1, 2),
        };
        let mut pool = PoolNeed {
            usage,
            min: 0,
            demand: 9,
            patience,
            last_at_min: Time(0),
        };
        let job = JobNeed {
            usage,
            share,
            demand: 9,
            last_at_share: Time(0),
            next_check: Time(0),
        };
        assert_eq!(
            starvation(NOW, &mut pool, &mut [job]),
            [lacks],
            "{usage} of {share}"
        );
    }
}
