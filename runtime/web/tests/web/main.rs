//! Tests of the server through its HTTP interface.

mod kit;
mod ledger;
mod load;
mod manners;
mod monitoring;
mod readers;
mod recordings;
mod routes;
mod strangers;
mod streams;
mod totals;
mod what_if;
