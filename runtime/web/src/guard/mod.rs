//! Access control: roles and their proofs, accepted hosts and origins, security headers.

mod headers;
mod hosts;
mod links;
mod pace;
mod revocations;
mod session;
mod token;

pub use headers::protect;
pub use hosts::{Hosts, Stranger};
pub use links::{LinkAnswer, LinkError};
pub use pace::Pace;
pub use revocations::{RevocationError, Revocations};
pub use session::{BROWSER, Credentials, Sessions, SignIn, SignInError};
pub use token::{Purpose, Signer, WebRole};
