//! Delay scheduling of saved work, under every policy that uses it.

use napreduce_engine::Span;
use napreduce_engine::scenarios::check_with;
use napreduce_schedulers::fair::{Fair, FairConfiguration};
use napreduce_schedulers::natjam::{Natjam, NatjamConfiguration};
use napreduce_schedulers::serving::DelaySettings;

fn delay(declines: u32) -> DelaySettings {
    DelaySettings {
        declines,
        rack_declines: 0,
        heartbeat: Span::from_millis(10),
    }
}

#[test]
fn saved_work_migrates_after_declines() {
    let fair = FairConfiguration {
        delay: delay(2),
        ..FairConfiguration::default()
    };
    let natjam = NatjamConfiguration {
        delay: delay(2),
        ..NatjamConfiguration::default()
    };
    let script = "
        worker 1 0+1
        job 2 reduces 1 queue research
            > launch 2:r0.1 on 1
        started 2:r0.1
        operator checkpoint 2:r0.1: make room
            > checkpoint 2:r0.1
        drain 1
        checkpointed 2:r0.1
            > leave 1
        worker 2 0+1
        at 10ms
        wake
        at 20ms
        wake
            > launch 2:r0.2 on 2 from 2:r0.1";
    check_with(Fair::new(fair).expect("a valid configuration"), script);
    check_with(Natjam::new(natjam).expect("a valid configuration"), script);
}
