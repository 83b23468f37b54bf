//! The examples: command lines, output as in `examples/README.md`, and preemption.

mod command_lines;
mod preemption;
mod readme;
