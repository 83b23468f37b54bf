//! HFSP: its virtual cluster against a slow one, and the policy as a whole in scenarios.
//!
//! Owns the list of what is compared and shown.

mod scenarios;
mod virtual_cluster;
