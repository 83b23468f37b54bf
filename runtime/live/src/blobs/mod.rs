//! Blobs: programs and side files, named by the digest of their bytes.
//!
//! Owns how they are named. What is in them nobody here looks at, except to say why a program cannot run.

mod digest;

pub use digest::{Digest, DigestError};
