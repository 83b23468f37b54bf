//! Tests of the history's files through the public interface.

mod bounds;
mod crashes;
mod damage;
mod findings;
mod folder;
mod former;
mod heads;
mod index;
mod ledger;
mod round_trip;
mod samples;
mod size;
mod timeline;
