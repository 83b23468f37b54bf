//! What a round needs to know about the cluster: the applications of its leaves, and which containers are
//! worth taking.

use napreduce_engine::Ratio;

use super::intra::Claim;
use super::victims::{Application, Victim};

/// The cluster as a round sees it.
pub trait Source {
    /// Returns the applications of a leaf. A round asks at most once per leaf.
    fn applications(&mut self, leaf: usize) -> Vec<Application>;

    /// Announces the ideal amounts, and the claims within a queue, for the victims that follow. `sweep` counts
    /// from 0: see [`Source::sweeps`].
    fn begin_pass(&mut self, _ideal: &[Ratio], _claims: &[Claim], _sweep: usize) {}

    /// Returns whether somebody will use what a container frees; if so, the container is taken.
    fn accepts(&mut self, _victim: &Victim) -> bool {
        true
    }

    /// Returns how often a pass over the queues looks for victims: first for the best ones.
    fn sweeps(&self) -> usize {
        1
    }

    /// Returns whether applications of a leaf may take from each other.
    fn may_take_within(&self, _leaf: usize) -> bool {
        true
    }
}

/// The published source: every container is worth taking.
pub(super) struct Applications<'a>(pub &'a mut dyn FnMut(usize) -> Vec<Application>);

impl Source for Applications<'_> {
    fn applications(&mut self, leaf: usize) -> Vec<Application> {
        (self.0)(leaf)
    }
}
