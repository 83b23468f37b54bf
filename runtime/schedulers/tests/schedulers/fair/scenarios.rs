//! Scenarios of Fair under the engine. Shares, order, starvation and victims are checked by the published
//! cases.

use napreduce_engine::{Primitive, Ratio, Span};
use napreduce_schedulers::fair::{
    Fair, FairConfiguration, PoolConfiguration, PoolOrder, Timeout, UnknownPools,
};

use napreduce_engine::scenarios::check_with;

fn pool(of: impl FnOnce(&mut PoolConfiguration)) -> PoolConfiguration {
    let mut pool = PoolConfiguration::default();
    of(&mut pool);
    pool
}

fn with_pools<const N: usize>(pools: [(&str, PoolConfiguration); N]) -> FairConfiguration {
    let mut configuration = FairConfiguration::default();
    configuration.root.pools = pools
        .into_iter()
        .map(|(name, pool)| (name.to_owned(), pool))
        .collect();
    configuration
}

fn check(configuration: FairConfiguration, script: &str) {
    check_with(
        Fair::new(configuration).expect("a valid configuration"),
        script,
    );
}

/// Preempts immediately for jobs below their share.
fn preempting(primitive: Primitive) -> FairConfiguration {
    let mut configuration = FairConfiguration {
        preemption: true,
        primitive,
        utilization_gate: Ratio::ZERO,
        ..Default::default()
    };
    configuration.root.fair_share_timeout = Some(Timeout(Some(Span(0))));
    configuration.root.fair_share_threshold = Some(Ratio::ONE);
    configuration
}

#[test]
fn job_with_less_usage_is_served_first() {
    check(
        FairConfiguration::default(),
        "worker 1 3+0
         job 1 maps 4 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
         job 2 maps 2 reduces 1
         started m0.1
         done m0.1
             > launch 2:m0.1 on 1
         started m1.1
         done m1.1
             > launch m3.1 on 1",
    );
}

#[test]
fn pool_limit_admits_longest_waiting_job() {
    let mut configuration = with_pools([("a", pool(|pool| pool.max_running_jobs = Some(1)))]);
    configuration.user_max_running_jobs = Some(2);
    check(
        configuration,
        "worker 1 9+0
         job 1 queue a maps 1 reduces 0
             > launch m0.1 on 1
         job 2 queue a user bob maps 1 reduces 0
         job 3 queue a user eve maps 1 reduces 0
         job 4 queue b user bob maps 1 reduces 0
             > launch 4:m0.1 on 1
         job 5 queue b user bob maps 1 reduces 0
             > launch 5:m0.1 on 1
         job 6 queue b user bob maps 1 reduces 0
         whyjob 2
             > waiting; 0 of 1 map tasks are done; 0 running, 0 suspended, 1 waiting
             > the scheduler left a map slot of worker_0001 empty: every pool with demand is at its maximum
             > it waits: pool a runs 1 job, its limit
         started m0.1
         commits m0.1
             > commit m0.1
         done m0.1
             > job 1 succeeded; launch 3:m0.1 on 1
         whyjob 2
             > waiting; 0 of 1 map tasks are done; 0 running, 0 suspended, 1 waiting
             > the scheduler left a map slot of worker_0001 empty: every pool with demand is at its maximum
             > it waits: user bob runs 2 jobs, the limit per user",
    );
}

#[test]
fn double_weight_gets_twice_the_slots() {
    check(
        with_pools([("heavy", pool(|pool| pool.weight = Ratio::whole(2)))]),
        "job 1 maps 9 reduces 1 queue light
         job 2 maps 9 reduces 1 queue heavy
         worker 1 6+0
             > launch 2:m0.1 on 1; launch m0.1 on 1; launch 2:m1.1 on 1; launch 2:m2.1 on 1; launch m1.1 on 1; launch 2:m3.1 on 1",
    );
}

#[test]
fn pool_minimum_and_maximum_are_respected() {
    check(
        with_pools([
            ("needy", pool(|pool| pool.min_maps = 2)),
            ("small", pool(|pool| pool.max_maps = Some(1))),
        ]),
        "job 1 maps 9 reduces 1 queue small
         job 2 maps 9 reduces 1 queue other
         job 3 maps 9 reduces 1 queue needy
         worker 1 5+0
             > launch 3:m0.1 on 1; launch 3:m1.1 on 1; launch m0.1 on 1; launch 2:m0.1 on 1; launch 2:m1.1 on 1",
    );
}

#[test]
fn slots_stay_empty_with_all_pools_at_maximum() {
    check(
        with_pools([("small", pool(|pool| pool.max_maps = Some(1)))]),
        "worker 1 2+0
         job 1 maps 2 reduces 1 queue small
             > launch m0.1 on 1
         declined 1: every pool with demand is at its maximum
         started m0.1
         done m0.1
             > launch m1.1 on 1",
    );
}

#[test]
fn fifo_pool_serves_jobs_in_order() {
    check(
        with_pools([("turns", pool(|pool| pool.order = PoolOrder::Fifo))]),
        "job 1 maps 2 reduces 1 queue turns
         job 2 maps 2 reduces 1 queue turns priority 1
         worker 1 3+0
             > launch 2:m0.1 on 1; launch 2:m1.1 on 1; launch m0.1 on 1",
    );
}

#[test]
fn pools_share_before_jobs() {
    check(
        FairConfiguration::default(),
        "job 1 maps 4 reduces 1 queue crowd
         job 2 maps 4 reduces 1 queue crowd
         job 3 maps 4 reduces 1 queue lonely
         worker 1 4+0
             > launch m0.1 on 1; launch 3:m0.1 on 1; launch 2:m0.1 on 1; launch 3:m1.1 on 1",
    );
}

#[test]
fn unknown_pools_can_map_to_default() {
    check(
        FairConfiguration {
            unknown_pools: UnknownPools::Default,
            ..FairConfiguration::default()
        },
        "job 1 maps 4 reduces 1 queue crowd
         job 2 maps 4 reduces 1 queue crowd
         job 3 maps 4 reduces 1 queue lonely
         worker 1 3+0
             > launch m0.1 on 1; launch 2:m0.1 on 1; launch 3:m0.1 on 1",
    );
}

#[test]
fn starved_job_preempts_up_to_its_share() {
    check(
        preempting(Primitive::Suspend),
        "worker 1 4+0
         job 1 maps 8 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1; launch m3.1 on 1
         started m0.1
         started m1.1
         started m2.1
         at 10ms
         started m3.1
         job 2 maps 8 reduces 1
         at 500ms
         wake
             > suspend m3.1; suspend m2.1
         suspended m3.1
             > launch 2:m0.1 on 1
         suspended m2.1
             > launch 2:m1.1 on 1
         at 40000ms
         wake
         started 2:m0.1
         done 2:m0.1
             > launch 2:m2.1 on 1
         done m0.1
             > resume m2.1",
    );
}

#[test]
fn no_preemption_before_timeout() {
    let mut configuration = preempting(Primitive::Kill);
    configuration.root.fair_share_timeout = Some(Timeout(Some(Span::from_secs(5))));
    configuration.kill_wait = Span(0);
    check(
        configuration,
        "worker 1 1+0
         worker 2 1+0
         job 1 maps 8 reduces 1
             > launch m0.1 on 1; launch m1.1 on 2
         started m0.1
         started m1.1
         job 2 maps 1 reduces 1
         at 4999ms
         wake
         at 5499ms
         wake
             > kill m0.1
         killed m0.1
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn unresponsive_victim_is_killed_after_grace() {
    let mut configuration = preempting(Primitive::Suspend);
    configuration.kill_wait = Span::from_secs(15);
    check(
        configuration,
        "worker 1 2+0
         job 1 maps 8 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         job 2 maps 1 reduces 1
         at 500ms
         wake
             > suspend m1.1
         at 15499ms
         wake
         at 15500ms
         wake
             > kill m1.1
         killed m1.1
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn protected_pool_is_not_preempted() {
    let mut configuration = preempting(Primitive::Kill);
    configuration.kill_wait = Span(0);
    let protected = pool(|pool| pool.allow_preemption_from = Some(false));
    configuration.root.pools = [("safe".to_owned(), protected)].into();
    check(
        configuration,
        "worker 1 2+0
         job 1 maps 8 reduces 1 queue safe
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         job 2 maps 1 reduces 1
         at 500ms
         wake",
    );
}

#[test]
fn pool_below_minimum_preempts_for_its_jobs() {
    let minimum = pool(|pool| {
        pool.min_maps = 1;
        pool.min_share_timeout = Some(Timeout(Some(Span(0))));
    });
    let mut configuration = with_pools([("needy", minimum)]);
    configuration.preemption = true;
    configuration.kill_wait = Span(0);
    check(
        configuration,
        "worker 1 3+0
         job 1 maps 8 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
         started m0.1
         started m1.1
         started m2.1
         job 2 maps 8 reduces 1 queue needy
         at 500ms
         wake
             > kill m2.1
         killed m2.1
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn pool_of_pools_below_minimum_preempts_for_its_jobs() {
    let group = pool(|pool| {
        pool.min_maps = 2;
        pool.min_share_timeout = Some(Timeout(Some(Span(0))));
        pool.pools = [("inner".to_owned(), PoolConfiguration::default())].into();
    });
    let mut configuration = with_pools([("group", group)]);
    configuration.preemption = true;
    configuration.kill_wait = Span(0);
    check(
        configuration,
        "worker 1 3+0
         job 1 maps 8 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1; launch m2.1 on 1
         started m0.1
         started m1.1
         started m2.1
         job 2 maps 8 reduces 1 queue group.inner
         at 500ms
         wake
             > kill m2.1; kill m1.1
         killed m2.1
             > launch 2:m0.1 on 1
         killed m1.1
             > launch 2:m1.1 on 1
         at 9000ms
         wake",
    );
}

#[test]
fn explanation_names_jobs_in_fair_order() {
    check(
        FairConfiguration::default(),
        "worker 1 2+0
         job 1 maps 4
             > launch m0.1 on 1; launch m1.1 on 1
         job 2 maps 4
         job 3 maps 4 priority 5
         why 3:m0
             > waiting; no map slot is free: job_0001 holds 2
             > jobs that want map slots and come first: job_0002
         why m2
             > waiting; no map slot is free: job_0001 holds 2
             > jobs that want map slots and come first: job_0002, job_0003",
    );
}

#[test]
fn utilization_gate_prevents_preemption() {
    let mut configuration = preempting(Primitive::Kill);
    configuration.utilization_gate = Ratio::ONE;
    check(
        configuration,
        "worker 1 1+0
         job 1 maps 8 reduces 1
             > launch m0.1 on 1
         started m0.1
         job 2 maps 1 reduces 1",
    );
}

#[test]
fn job_of_rejected_pool_fails_at_submission() {
    let mut refusing = with_pools([("a", PoolConfiguration::default())]);
    refusing.unknown_pools = UnknownPools::Refuse;
    check_with(
        Fair::new(refusing).expect("a valid configuration"),
        "worker 1 1+0
         job 1 maps 1 queue b
             > job 1 failed: job_0001 cannot run: there is no pool b; submit to a configured pool, or set unknown-pools to create or default
         job 2 maps 1 queue a
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn min_share_timeout_starts_with_pool_demand() {
    let patient = |pool: &mut PoolConfiguration| {
        pool.min_maps = 1;
        pool.min_share_timeout = Some(Timeout(Some(Span::from_secs(5))));
    };
    let mut configuration = FairConfiguration {
        kill_wait: Span(0),
        ..preempting(Primitive::Kill)
    };
    configuration.root = with_pools([("needy", pool(patient))]).root;
    check(
        configuration,
        "worker 1 1+0
         job 1 maps 9 reduces 0 queue other
             > launch m0.1 on 1
         started m0.1
         at 5000ms
         wake
         at 10000ms
         job 2 maps 1 reduces 0 queue needy
         at 14900ms
         wake
         at 15400ms
         wake
             > kill m0.1",
    );
}

#[test]
fn fair_share_timeout_starts_with_job_demand() {
    let mut configuration = FairConfiguration {
        kill_wait: Span(0),
        ..preempting(Primitive::Kill)
    };
    configuration.root.fair_share_timeout = Some(Timeout(Some(Span::from_secs(5))));
    check(
        configuration,
        "worker 1 2+2
         job 1 maps 1 reduces 9
             > launch m0.1 on 1
         job 2 maps 1 reduces 1
             > launch 2:m0.1 on 1
         started m0.1
         started 2:m0.1
         done m0.1
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 1 reading m0.1
         started r0.1
         started r1.1
         at 5000ms
         wake
         at 10000ms
         done 2:m0.1
         at 14900ms
         wake
         at 15400ms
         wake
             > kill r1.1",
    );
}
