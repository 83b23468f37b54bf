//! Owns what every experiment needs from whoever runs it: the wish to stop, and where progress is told.
//! Which signals mean stop, and what a terminal looks like, is decided outside.

use std::fmt;

use crate::process::Interrupt;

/// How an experiment is attended to.
pub struct Session {
    /// Ends the experiment early.
    pub interrupt: Interrupt,
    tell: Box<dyn Fn(&str)>,
}

impl Session {
    /// `tell` is called with one line, without its newline, whenever a step is done.
    pub fn new(interrupt: Interrupt, tell: impl Fn(&str) + 'static) -> Session {
        Session { interrupt, tell: Box::new(tell) }
    }

    /// Tells of a step.
    pub fn say(&self, line: impl AsRef<str>) {
        (self.tell)(line.as_ref());
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("interrupt", &self.interrupt).finish_non_exhaustive()
    }
}
