//! Scenarios of the engine, for the tests of the engine itself and for those of every policy.
//!
//! Owns the language in which a scenario is written (`script`), its short names (`names`), random events
//! under any policy (`random`), and a policy for scenarios that are not about policies. No program is built
//! with this feature. The live coordinator's tests have a language of their own, with these names and reports.

mod actions;
mod in_order;
pub mod names;
pub mod random;
mod script;

pub use in_order::InOrder;
pub use script::{check, check_settings, check_with, report, spec};
