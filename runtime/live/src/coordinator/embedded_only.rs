//! In the place of `lasting` in a program without the feature `cluster`: there is no coordinator of a cluster.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use napreduce_engine::JobId;
use napreduce_history::EndedJob;

use super::daemon::Coordinator;
use super::entry::Accepted;
use super::job::LiveJob;
use super::requests::Request;

pub(crate) type JournalError = Infallible;

/// Nothing: an embedded job runs the program that it is part of.
#[derive(Debug, Default)]
pub(crate) struct Pins;

#[derive(Debug)]
pub(crate) enum ClusterInput {}

pub(super) enum Lasting {}

pub(super) enum Keeper {}

impl Lasting {
    pub(super) fn directory(&self) -> PathBuf {
        match *self {}
    }

    pub(super) fn pin(&mut self, _job: JobId, _pins: Pins) {
        match *self {}
    }

    pub(super) fn unpin(&mut self, _job: JobId) {
        match *self {}
    }

    pub(super) fn pinning(&self) -> fn(&Accepted) -> Pins {
        match *self {}
    }

    pub(super) fn write(&mut self, _entries: &[Vec<u8>], _sync: bool) -> Result<(), JournalError> {
        match *self {}
    }
}

impl Keeper {
    pub(super) fn keep(self, _: &LiveJob, _: &mut EndedJob, _: &mut Vec<String>) -> Result<(), String> {
        match self {}
    }
}

impl Coordinator {
    pub(super) fn take_cluster_input(&mut self, input: ClusterInput) {
        match input {}
    }

    pub(super) fn answer(&mut self, _nobody_asks: Request) {}

    pub(super) fn look_after_cluster(&mut self, _paused: Duration) {}

    pub(super) fn keeper(&self) -> Option<Keeper> {
        None
    }

    pub(super) fn compact_if_due(&mut self) -> Result<(), JournalError> {
        Ok(())
    }

    pub(super) async fn compact_at_the_end(&mut self) -> Result<(), JournalError> {
        Ok(())
    }
}
