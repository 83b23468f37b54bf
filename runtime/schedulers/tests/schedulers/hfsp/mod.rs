//! HFSP: the virtual cluster against a reference model, and scenarios of the policy.

mod scenarios;
mod virtual_cluster;
