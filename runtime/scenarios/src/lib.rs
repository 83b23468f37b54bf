//! Scenarios of the engine, for the tests of the engine itself and for those of every policy.
//!
//! Owns the language in which a scenario is written (`script`), random events under any policy (`random`),
//! and a policy for scenarios that are not about policies. No program is built with this crate.

mod actions;
mod in_order;
mod names;
pub mod random;
mod script;

pub use in_order::InOrder;
pub use script::{check, check_settings, check_with, spec};
