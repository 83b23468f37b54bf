//! Scenarios for the tests of the engine and of every policy: the scenario language (`script`), its short
//! names (`names`), random events under any policy (`random`), and a default policy. Only tests enable this
//! feature. The tests of the cluster coordinator have a script language of their own with the same names and
//! reports.

mod actions;
mod in_order;
pub mod names;
pub mod random;
mod script;

pub use in_order::InOrder;
pub use script::{check, check_settings, check_with, report, spec};
