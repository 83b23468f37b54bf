//! Scenarios of Natjam and Natjam-R. The choice of jobs and the limits of reclaim lists are checked by the
//! published cases.

use napreduce_engine::{Primitive, Span, TaskEviction};
use napreduce_schedulers::natjam::{
    DeadlineAdmission, DeadlineEviction, DeadlineSelection, JobEviction, Natjam,
    NatjamConfiguration, NatjamConfigurationError, NatjamR, NatjamRConfiguration,
};

use napreduce_engine::scenarios::check_with;

/// Suspends maps too.
fn natjam() -> NatjamConfiguration {
    NatjamConfiguration {
        primitive: Primitive::Suspend,
        preempt_maps: true,
        ..Default::default()
    }
}

fn check(configuration: NatjamConfiguration, script: &str) {
    check_with(
        Natjam::new(configuration).expect("a valid configuration"),
        script,
    );
}

fn by_deadline() -> NatjamRConfiguration {
    NatjamRConfiguration {
        primitive: Primitive::Suspend,
        preempt_maps: true,
        ..Default::default()
    }
}

fn check_r(configuration: NatjamRConfiguration, script: &str) {
    check_with(
        NatjamR::new(configuration).expect("a valid configuration"),
        script,
    );
}

#[test]
fn production_precedes_older_research() {
    check(
        natjam(),
        "job 1 maps 2 reduces 1 queue research
         job 2 maps 2 reduces 1 queue production.reports
         worker 1 3+0
             > launch 2:m0.1 on 1; launch 2:m1.1 on 1; launch m0.1 on 1",
    );
}

#[test]
fn production_preempts_and_research_resumes_first() {
    check(
        natjam(),
        "worker 1 2+0
         job 1 maps 4 reduces 1 queue research
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         job 2 maps 1 reduces 1 queue production
             > suspend m1.1
         suspended m1.1
             > launch 2:m0.1 on 1
         started 2:m0.1
         done 2:m0.1
             > resume m1.1",
    );
}

#[test]
fn victim_is_where_production_task_may_run() {
    // The production task failed on worker 1, whose research attempt is the youngest.
    check(
        NatjamConfiguration {
            task_eviction: TaskEviction::Youngest,
            ..natjam()
        },
        "worker 1 1+0
         job 2 maps 1 reduces 1 queue production
             > launch 2:m0.1 on 1
         started 2:m0.1
         worker 2 1+0
         job 1 maps 4 reduces 1 queue research
             > launch m0.1 on 2
         started m0.1
         failed 2:m0.1 retryable: a bad disk
             > launch m1.1 on 1; suspend m0.1
         started m1.1
         suspended m0.1
             > launch 2:m0.2 on 2
         tally requests_useless 0",
    );
}

#[test]
fn largest_research_job_is_preempted_once_per_slot() {
    check(
        natjam(),
        "worker 1 3+0
         job 1 maps 1 reduces 1 queue research
             > launch m0.1 on 1
         job 2 maps 4 reduces 1 queue research
             > launch 2:m0.1 on 1; launch 2:m1.1 on 1
         started m0.1
         started 2:m0.1
         started 2:m1.1
         at 300ms
         job 3 maps 1 reduces 1 queue production
         at 1000ms
         wake
             > suspend 2:m1.1
         at 2000ms
         wake
         at 3000ms
         wake",
    );
}

#[test]
fn smallest_research_job_can_be_preempted_first() {
    check(
        NatjamConfiguration {
            job_eviction: JobEviction::LeastResources,
            ..natjam()
        },
        "worker 1 3+0
         job 1 maps 1 reduces 1 queue research
             > launch m0.1 on 1
         job 2 maps 4 reduces 1 queue research
             > launch 2:m0.1 on 1; launch 2:m1.1 on 1
         started m0.1
         started 2:m0.1
         started 2:m1.1
         job 3 maps 1 reduces 1 queue production
             > suspend m0.1",
    );
}

#[test]
fn expired_request_ends_in_kill_and_counts_briefly() {
    check(
        natjam(),
        "worker 1 1+0
         job 1 maps 2 reduces 1 queue research
             > launch m0.1 on 1
         started m0.1
         job 2 maps 1 reduces 1 queue production
             > suspend m0.1
         at 12000ms
         wake
         at 13000ms
         wake
             > kill m0.1
         at 15000ms
         wake
         killed m0.1
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn maps_are_not_preempted_by_default() {
    check(
        NatjamConfiguration::default(),
        "worker 1 1+0
         job 1 maps 2 reduces 1 queue research
             > launch m0.1 on 1
         started m0.1
         job 2 maps 1 reduces 1 queue production
         at 1000ms
         wake",
    );
}

#[test]
fn checkpointed_reduces_restore_on_their_worker() {
    check(
        NatjamConfiguration::default(),
        "worker 1 1+1
         job 1 reduces 2 queue research
             > launch r0.1 on 1
         started r0.1
         job 2 reduces 1 queue production
             > checkpoint r0.1
         checkpointed r0.1
             > launch 2:r0.1 on 1
         worker 2 0+1
             > launch r0.2 on 2 from r0.1
         started 2:r0.1
         commits 2:r0.1
             > commit 2:r0.1
         done 2:r0.1
             > job 2 succeeded; launch r1.1 on 1",
    );
}

#[test]
fn production_does_not_preempt_production() {
    check(
        natjam(),
        "worker 1 1+0
         job 1 maps 2 reduces 1 queue production
             > launch m0.1 on 1
         started m0.1
         job 2 maps 1 reduces 1 queue production
         at 1000ms
         wake",
    );
}

#[test]
fn free_slot_prevents_preemption() {
    check(
        natjam(),
        "worker 1 2+0
         job 1 maps 1 reduces 1 queue research
             > launch m0.1 on 1
         started m0.1
         hold
         job 2 maps 1 reduces 1 queue production
         at 1000ms
         wake
         release
         at 2000ms
         wake
             > launch 2:m0.1 on 1",
    );
}

#[test]
fn earliest_deadline_preempts_latest() {
    check_r(
        by_deadline(),
        "worker 1 2+0
         job 1 maps 4 reduces 1 deadline 90000ms
             > launch m0.1 on 1; launch m1.1 on 1
         started m0.1
         started m1.1
         at 500ms
         job 2 maps 2 reduces 1 deadline 50000ms
         at 1000ms
         wake
             > suspend m1.1
         suspended m1.1
             > launch 2:m0.1 on 1
         at 2000ms
         wake
             > suspend m0.1
         suspended m0.1
             > launch 2:m1.1 on 1
         started 2:m0.1
         done 2:m0.1
             > resume m0.1
         at 3000ms
         wake",
    );
}

#[test]
fn job_without_deadline_is_preempted_first() {
    check_r(
        NatjamRConfiguration {
            per_run: 2,
            ..by_deadline()
        },
        "worker 1 2+0
         job 1 maps 1 reduces 1 deadline 90000ms
             > launch m0.1 on 1
         job 2 maps 4 reduces 1
             > launch 2:m0.1 on 1
         started m0.1
         started 2:m0.1
         job 3 maps 2 reduces 1 deadline 80000ms
         at 1000ms
         wake
             > suspend 2:m0.1; suspend m0.1",
    );
}

#[test]
fn least_laxity_is_served_first() {
    let configuration = NatjamRConfiguration {
        eviction: DeadlineEviction::MaximumLaxityFirst,
        ..by_deadline()
    };
    check_r(
        configuration,
        "worker 1 1+0
         job 1 maps 2 reduces 1 deadline 100000ms
             > launch m0.1 on 1
         started m0.1
         at 10000ms
         progress m0.1 1/10
         job 2 maps 1 reduces 1 deadline 60000ms
         at 11000ms
         wake",
    );
}

#[test]
fn laxity_margin_prevents_swapping() {
    let by_laxity = |laxity_margin| NatjamRConfiguration {
        eviction: DeadlineEviction::MaximumLaxityFirst,
        laxity_margin,
        ..by_deadline()
    };
    let script = |then: &str| {
        format!(
            "worker 1 1+0
             job 1 maps 2 reduces 1 deadline 52000ms
                 > launch m0.1 on 1
             started m0.1
             job 2 maps 1 reduces 1 deadline 50000ms
             at 1000ms
             wake
             {then}"
        )
    };
    check_r(by_laxity(Span(0)), &script("> suspend m0.1"));
    check_r(by_laxity(Span::from_secs(2)), &script(""));
    check_r(by_laxity(Span(1_999_999)), &script("> suspend m0.1"));
}

/// One map slot, preempted at full seconds.
fn admitting(admission: DeadlineAdmission) -> NatjamRConfiguration {
    NatjamRConfiguration {
        admission,
        preempt_maps: true,
        primitive: Primitive::Suspend,
        ..by_deadline()
    }
}

/// A job with one map of 10 s has finished, so the task length is known.
const KNOWN: &str = "
         worker 1 1+1
         job 1 maps 1 name ten
             > launch m0.1 on 1
         started m0.1
         at 10000ms
         commits m0.1
             > commit m0.1
         done m0.1
             > job 1 succeeded";

#[test]
fn infeasible_deadline_is_rejected_with_reason() {
    let script = format!(
        "{KNOWN}
         job 2 maps 2 name ten deadline 30000ms
             > launch 2:m0.1 on 1
         job 3 maps 1 name ten deadline 35000ms
             > job 3 failed: job_0003 cannot run: its tasks and those of 1 job with an earlier deadline may take 5.000000s longer \
         than its deadline allows; extend or remove its --deadline
         job 4 maps 1 name ten deadline 41000ms
         job 5 maps 1 name ten
         job 6 maps 1 name ten deadline 25000ms
             > job 6 failed: job_0006 cannot run: job_0002, whose deadline is later, may then be 10.000000s late; extend or \
         remove its --deadline"
    );
    check_r(admitting(DeadlineAdmission::Refuse), &script);
}

#[test]
fn invalid_configuration_is_rejected_with_allowed_values() {
    let mixed = NatjamRConfiguration {
        selection: Some(DeadlineSelection::LeastLaxityFirst),
        ..NatjamRConfiguration::default()
    };
    assert_eq!(
        NatjamR::new(mixed)
            .err()
            .map(|error| error.to_string())
            .as_deref(),
        Some(
            "eviction maximum-deadline-first does not match selection least-laxity-first: it would evict the job that was \
             just resumed; use maximum-deadline-first with earliest-deadline-first, or \
             maximum-laxity-first with least-laxity-first"
        )
    );
    let refused = |configuration| NatjamR::new(configuration).err();
    let margin = Span::from_secs(1);
    assert_eq!(
        refused(NatjamRConfiguration {
            laxity_margin: margin,
            ..by_deadline()
        }),
        Some(NatjamConfigurationError::Margin(margin))
    );
    assert_eq!(
        refused(NatjamRConfiguration {
            per_run: 0,
            ..by_deadline()
        }),
        Some(NatjamConfigurationError::PerRun)
    );
    assert_eq!(
        refused(NatjamRConfiguration {
            interval: Span(0),
            ..by_deadline()
        }),
        Some(NatjamConfigurationError::Interval("interval"))
    );
    let refused = |configuration| Natjam::new(configuration).err();
    assert_eq!(
        refused(NatjamConfiguration {
            preemptor_interval: Span(0),
            ..natjam()
        }),
        Some(NatjamConfigurationError::Interval("preemptor-interval"))
    );
    assert_eq!(
        refused(NatjamConfiguration {
            production: Vec::new(),
            ..natjam()
        }),
        Some(NatjamConfigurationError::NoProduction)
    );
    assert_eq!(
        refused(NatjamConfiguration {
            production: vec!["a..b".to_owned()],
            ..natjam()
        }),
        Some(NatjamConfigurationError::Queue("a..b".to_owned()))
    );
}

#[test]
fn page_documents_every_parameter_with_default() {
    let page = include_str!("../../../../docs/schedulers/natjam.md");
    let natjam =
        serde_json::to_value(NatjamConfiguration::default()).expect("plain data serializes");
    let natjam_r =
        serde_json::to_value(NatjamRConfiguration::default()).expect("plain data serializes");
    for (key, value) in [&natjam, &natjam_r]
        .into_iter()
        .flat_map(|table| table.as_object().expect("a table"))
    {
        let texts = [
            format!("| `{}` |", value.to_string().replace(',', ", ")),
            format!("| {value} |"),
        ];
        let mut rows = page
            .lines()
            .filter(|line| line.starts_with(&format!("| `{key}` | ")));
        let ignored = rows.any(|row| {
            key == "delay"
                || value.is_null()
                || texts.iter().any(|text| row.contains(text.as_str()))
        });
        assert!(ignored, "the page does not document {key} = {value}");
    }
}
