//! Client and coordinator's desk over real connections, the loop behind the desk being scripted.

mod chains;
mod desk;
mod jobs;
mod scene;
mod transfers;
