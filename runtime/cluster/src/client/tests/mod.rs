//! Client and coordinator over real connections, with a scripted coordinator loop.

mod chains;
mod desk;
mod jobs;
mod scene;
mod started;
mod transfers;
mod uploads;
