//! Scenarios for the tests of the engine and of every policy: the scenario language (`script`), its short
//! names (`names`), random events under any policy (`random`), and a default policy. No program is built with
//! this feature. The live coordinator's tests have their own language with the same names and reports.

mod actions;
mod in_order;
pub mod names;
pub mod random;
mod script;

pub use in_order::InOrder;
pub use script::{check, check_settings, check_with, report, spec};
