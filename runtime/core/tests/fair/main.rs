//! Fair's decisions against slow and simple ones, on generated instances.

mod order;
mod shares;
mod starving;
