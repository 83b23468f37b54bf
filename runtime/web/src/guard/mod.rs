//! Who may see and do what.
//!
//! Owns roles and what proves them, which hosts and origins are answered, and the headers that bind browsers.
//! Does not own which route needs which role (`routes`).

mod headers;
mod hosts;
mod pace;
mod revocations;
mod session;
mod token;

pub use headers::protect;
pub use hosts::{Hosts, Stranger};
pub use pace::Pace;
pub use revocations::{RevocationError, Revocations};
pub use session::{Credentials, Sessions, SignIn, SignInError};
pub use token::{Purpose, Signer, WebRole};
