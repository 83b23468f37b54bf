//! The examples: their command lines, what the README says that they print, and preemption.

mod command_lines;
mod preemption;
mod readme;
