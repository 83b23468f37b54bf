//! Chains of jobs: intermediate data is kept as long as it is needed, across programs that disconnect and
//! coordinators that are killed. `chain` tests the removal itself.

use super::script::check;

/// The data is removed when the program ends the chain. Meanwhile, other chains begin and end.
#[test]
fn intermediate_data_stays_until_program_ends() {
    check(
        "set chain-grace 0ms
         root 7
         hold chain 7
         submit 1 maps 1 reduces 1 chain 7
         kill 1: it is enough
         ask end 1                       > killed: it is enough
         root 8
         hold chain 8
         release chain 8
         until root 8                    > gone
         ask root 7                      > there
         end chain 7
         ask root 7                      > gone
         end chain 7",
    );
}

/// The programs of two chains are killed; one chain has a running job and keeps its data. Ending a chain
/// while its detached job runs removes nothing.
#[test]
fn input_of_detached_job_stays_until_its_end() {
    check(
        "set chain-grace 0ms
         root 7
         root 8
         hold chain 7
         hold chain 8
         submit 1 maps 1 reduces 1 chain 7
         release chain 7
         release chain 8
         until root 8                    > gone
         ask root 7                      > there
         end chain 7
         restart
         root 9
         hold chain 9
         end chain 9
         ask root 9                      > gone
         ask root 7                      > there
         kill 1: it is enough
         ask end 1                       > killed: it is enough
         until root 7                    > gone",
    );
}

/// The chain is held twice if the coordinator has not noticed the end of the first connection. A snapshot
/// also includes it.
#[test]
fn chain_survives_restart_and_reconnection() {
    check(
        "set chain-grace 3600000ms
         root 7
         hold chain 7
         restart
         hold chain 7
         hold chain 7
         release chain 7
         stop coordinator
         ask root 7                      > there
         set chain-grace 0ms
         start
         until root 7                    > gone",
    );
}

#[test]
fn only_root_of_chain_is_removed() {
    const ROOT: &str = ".out.intermediate-00000000000000000000000000000007";
    check(&format!(
        "make place
         hold chain 7 at place           > refused: invalid directory name ...place for a chain
         root 7
         remove {ROOT}/.napreduce-intermediate
         hold chain 7
         hold chain 7 at x/{ROOT}        > refused: the chain already has the directory ...
         end chain 7
         ask root 7                      > there
         ask files place                 > nothing"
    ));
}
