//! Fair's decisions against slow and simple ones, on generated instances.

mod configurations;
mod order;
mod shares;
mod starving;
