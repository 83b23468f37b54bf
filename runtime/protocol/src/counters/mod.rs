//! Counters: built-in ones, user counters, and their sums. The coordinator sums only attempts whose result
//! counts.

mod built_in;
mod values;

pub use built_in::{Counter, Counters};
pub use values::CounterValues;
