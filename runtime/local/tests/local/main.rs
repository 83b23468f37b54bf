//! Tests of embedded runs from outside: their processes and files, and that nothing is left of them.

mod attempts;
mod commit;
mod library;
mod output;
mod progress;
mod scenario;
mod signals;
mod threads;
