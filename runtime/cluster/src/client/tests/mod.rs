//! Client and coordinator's desk over real connections, the loop behind the desk being scripted.
//!
//! Owns nothing but the vocabulary in `scene`. Jobs that really run are the whole-system tests' business.

mod chains;
mod desk;
mod jobs;
mod scene;
mod transfers;
