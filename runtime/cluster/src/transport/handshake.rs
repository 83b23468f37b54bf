//! The handshake as a computation on bytes: Noise with both ephemeral keys and the cluster's secret.
//!
//! The client's preamble is the prologue, so version and role cannot be altered in transit. The first message
//! alone may be a replay. The server authenticates the client by its confirmation, which depends on the
//! server's key for this handshake.

use std::sync::Arc;

use napreduce_local::world::Random;
use napreduce_protocol::Secret;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash};
use snow::{Builder, HandshakeState};

use super::error::TransportError;
use super::preamble::{self, ANSWER_BYTES, GREETING_BYTES, Role};
use super::records::{CONFIRMATION_BYTES, Opener, Sealer};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// An ephemeral public key and a tag.
pub(super) const NOISE_BYTES: usize = 48;
pub(super) const OPENING_BYTES: usize = GREETING_BYTES + NOISE_BYTES;
pub(super) const REPLY_BYTES: usize = ANSWER_BYTES + NOISE_BYTES;

/// Both directions of a connection.
#[derive(Debug)]
pub(super) struct Keys {
    pub(super) sealer: Sealer,
    pub(super) opener: Opener,
}

/// The client's side, waiting for the second message.
pub(super) struct Initiator(HandshakeState);

impl Initiator {
    /// Begins; returns the bytes to send.
    pub(super) fn open(
        role: Role,
        secret: &Secret,
        random: &Random,
    ) -> Result<(Initiator, [u8; OPENING_BYTES]), TransportError> {
        let greeting = preamble::greeting(role);
        let builder = builder(secret, &greeting, random)?;
        let mut noise = builder.build_initiator().map_err(TransportError::Cipher)?;
        let mut opening = [0; OPENING_BYTES];
        opening[..GREETING_BYTES].copy_from_slice(&greeting);
        noise
            .write_message(&[], &mut opening[GREETING_BYTES..])
            .map_err(TransportError::Cipher)?;
        Ok((Initiator(noise), opening))
    }

    /// Completes it with the server's message; returns the keys and the confirmation to send.
    pub(super) fn finish(
        mut self,
        message: &[u8; NOISE_BYTES],
    ) -> Result<(Keys, [u8; CONFIRMATION_BYTES]), TransportError> {
        self.0
            .read_message(message, &mut [])
            .map_err(|_| TransportError::OtherSecret)?;
        let mut keys = keys(self.0)?;
        let confirmation = keys.sealer.confirmation()?;
        Ok((keys, confirmation))
    }
}

/// The server's side, waiting for the confirmation.
pub(super) struct Responder(Keys);

impl Responder {
    /// Checks the client's first message; returns the reply.
    pub(super) fn reply(
        greeting: &[u8; GREETING_BYTES],
        message: &[u8; NOISE_BYTES],
        secret: &Secret,
        random: &Random,
    ) -> Result<(Responder, [u8; REPLY_BYTES]), TransportError> {
        let builder = builder(secret, greeting, random)?;
        let mut noise = builder.build_responder().map_err(TransportError::Cipher)?;
        noise
            .read_message(message, &mut [])
            .map_err(|_| TransportError::OtherSecret)?;
        let mut reply = [0; REPLY_BYTES];
        reply[..ANSWER_BYTES].copy_from_slice(&preamble::answer());
        noise
            .write_message(&[], &mut reply[ANSWER_BYTES..])
            .map_err(TransportError::Cipher)?;
        Ok((Responder(keys(noise)?), reply))
    }

    /// Authenticates the client by its confirmation.
    pub(super) fn confirm(
        mut self,
        confirmation: &[u8; CONFIRMATION_BYTES],
    ) -> Result<Keys, TransportError> {
        self.0.opener.check_confirmation(confirmation)?;
        Ok(self.0)
    }
}

fn builder<'a>(
    secret: &'a Secret,
    prologue: &'a [u8],
    random: &Random,
) -> Result<Builder<'a>, TransportError> {
    let parameters = PATTERN.parse().map_err(TransportError::Cipher)?;
    let resolver = Resolver {
        random: random.clone(),
    };
    let builder = Builder::with_resolver(parameters, Box::new(resolver))
        .prologue(prologue)
        .map_err(TransportError::Cipher)?;
    builder
        .psk(0, secret.bytes())
        .map_err(TransportError::Cipher)
}

fn keys(noise: HandshakeState) -> Result<Keys, TransportError> {
    let shared = Arc::new(
        noise
            .into_stateless_transport_mode()
            .map_err(TransportError::Cipher)?,
    );
    Ok(Keys {
        sealer: Sealer::new(Arc::clone(&shared)),
        opener: Opener::new(shared),
    })
}

/// Makes ephemeral keys of the given random numbers. Everything else is snow's.
struct Resolver {
    random: Random,
}

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn snow::types::Random>> {
        Some(Box::new(KeyMaterial {
            random: self.random.clone(),
        }))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        DefaultResolver.resolve_cipher(choice)
    }
}

struct KeyMaterial {
    random: Random,
}

impl snow::types::Random for KeyMaterial {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), snow::Error> {
        self.random.fill(bytes).map_err(|_| snow::Error::Rng)
    }
}
