//! Fair's decisions against simple references on generated instances, and scenarios of the policy.

mod configurations;
mod order;
mod scenarios;
mod shares;
mod starving;
