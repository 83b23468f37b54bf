//! Maps that run again and write other records: no two reduces of a job use different ones.

use napreduce_engine::scenarios::check;

/// The end of the reason of a job whose map wrote other records.
const REQUIREMENT: &str = "a map must emit the same records in the same order whenever it reads the same input: without the \
                           order of a HashMap, the time, random numbers or a hash with a random seed, and its input \
                           must not change while the job runs";

fn check_with_requirement(script: &str) {
    check(&script.replace("REQUIREMENT", REQUIREMENT));
}

#[test]
fn equal_records_of_second_attempt_are_used() {
    check(
        "worker 1 1+2
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1 wrote 7
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 1 reading m0.1
         started r0.1
         commits r0.1
             > commit r0.1
         done r0.1
         failed r1.1 retryable losing m0.1: damaged
             > launch m0.2 on 1
         done m0.2 wrote 7
             > launch r1.2 on 1 reading m0.2
         started r1.2
         commits r1.2
             > commit r1.2
         done r1.2
             > job 1 succeeded",
    );
}

#[test]
fn other_records_after_finished_reduce_fail_job() {
    check_with_requirement(
        "worker 1 1+2
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1 wrote 7
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 1 reading m0.1
         started r0.1
         commits r0.1
             > commit r0.1
         done r0.1
         failed r1.1 retryable losing m0.1: damaged
             > launch m0.2 on 1
         done m0.2 wrote 8
             > job 1 failed: job_0001_m_0000 is not deterministic: job_0001_m_0000.2 wrote other records than job_0001_m_0000.1, whose output job_0001_r_0000 has used; REQUIREMENT",
    );
}

#[test]
fn other_records_while_reduce_commits_fail_job() {
    check_with_requirement(
        "worker 1 1+2
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1 wrote 7
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 1 reading m0.1
         started r0.1
         started r1.1
         commits r0.1
             > commit r0.1
         lacks r1.1 m0.1: no such file
             > launch m0.2 on 1
         done m0.2 wrote 8
             > kill r0.1; kill r1.1
         done r0.1
         killed r1.1
             > job 1 failed: job_0001_m_0000 is not deterministic: job_0001_m_0000.2 wrote other records than job_0001_m_0000.1, whose output job_0001_r_0000 has used; REQUIREMENT",
    );
}

#[test]
fn other_records_before_any_reduce_replace_first() {
    check(
        "worker 1 2+1
         job 1 maps 2 reduces 1
             > launch m0.1 on 1; launch m1.1 on 1
         done m0.1 wrote 7
         worker 2 2+1
         lost 1
             > launch m0.2 on 2; launch m1.2 on 2
         done m0.2 wrote 8
         done m1.2 wrote 9
             > launch r0.1 on 2 reading m0.2 m1.2",
    );
}

#[test]
fn other_records_restart_running_reduces() {
    check_with_requirement(
        "worker 1 1+2
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1 wrote 7
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 1 reading m0.1
         started r0.1
         started r1.1
         lacks r1.1 m0.1: no such file
             > launch m0.2 on 1
         done m0.2 wrote 8
             > kill r0.1; kill r1.1
             > warn job_0001_m_0000 is not deterministic: job_0001_m_0000.2 wrote other records than job_0001_m_0000.1; the reduces that may have read the output of job_0001_m_0000.1 start again; REQUIREMENT
         killed r0.1
             > launch r0.2 on 1 reading m0.2
         killed r1.1
             > launch r1.2 on 1 reading m0.2
         started r0.2
         commits r0.2
             > commit r0.2
         done r0.2
         failed r1.2 retryable losing m0.2: damaged
             > launch m0.3 on 1
         done m0.3 wrote 8
             > launch r1.3 on 1 reading m0.3",
    );
}

#[test]
fn other_records_discard_checkpoint_of_reduce() {
    check_with_requirement(
        "worker 1 1+1
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1 wrote 7
             > launch r0.1 on 1 reading m0.1
         started r0.1
         hold
         operator checkpoint r0.1: ada wants it
             > checkpoint r0.1
         checkpointed r0.1
         worker 2 1+1
         lost 1
         release
         wake
             > launch m0.2 on 2
         done m0.2 wrote 8
             > warn job_0001_m_0000 is not deterministic: job_0001_m_0000.2 wrote other records than job_0001_m_0000.1; the reduces that may have read the output of job_0001_m_0000.1 start again; REQUIREMENT
             > launch r0.2 on 2 reading m0.2",
    );
}

#[test]
fn checkpoint_written_after_other_records_is_not_used() {
    check_with_requirement(
        "worker 1 1+1
         job 1 maps 1 reduces 1
             > launch m0.1 on 1
         done m0.1 wrote 7
             > launch r0.1 on 1 reading m0.1
         started r0.1
         lacks r0.1 m0.1: no such file
             > launch m0.2 on 1
         operator checkpoint r0.1: ada wants it
             > checkpoint r0.1
         done m0.2 wrote 8
             > kill r0.1
             > warn job_0001_m_0000 is not deterministic: job_0001_m_0000.2 wrote other records than job_0001_m_0000.1; the reduces that may have read the output of job_0001_m_0000.1 start again; REQUIREMENT
         checkpointed r0.1
             > launch r0.2 on 1 reading m0.2",
    );
}

#[test]
fn suspended_reduce_restarts_when_operator_resumes_it() {
    check_with_requirement(
        "worker 1 1+1
         worker 2 1+1
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1 wrote 7
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 2 reading m0.1
         started r0.1
         started r1.1
         operator suspend r1.1: ada wants it
             > suspend r1.1
         suspended r1.1
         lost 1
             > launch m0.2 on 2
         done m0.2 wrote 8
             > kill r1.1
             > warn job_0001_m_0000 is not deterministic: job_0001_m_0000.2 wrote other records than job_0001_m_0000.1; the reduces that may have read the output of job_0001_m_0000.1 start again; REQUIREMENT
             > launch r0.2 on 2 reading m0.2
         killed r1.1
         worker 3 1+1
         operator resume r1.1: now
             > launch r1.2 on 3 reading m0.2",
    );
}

#[test]
fn output_without_digest_is_not_compared() {
    check(
        "worker 1 1+2
         job 1 maps 1 reduces 2
             > launch m0.1 on 1
         done m0.1
             > launch r0.1 on 1 reading m0.1; launch r1.1 on 1 reading m0.1
         started r0.1
         commits r0.1
             > commit r0.1
         done r0.1
         failed r1.1 retryable losing m0.1: damaged
             > launch m0.2 on 1
         done m0.2 wrote 7
             > launch r1.2 on 1 reading m0.2",
    );
}
