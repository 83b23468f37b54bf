//! An embedded run as the person at the terminal sees it: processes, files, and what is left of them.

mod attempts;
mod commit;
mod output;
mod progress;
mod scenario;
mod signals;
