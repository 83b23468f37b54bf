//! The primitives for signing requests without a C compiler: SHA-256, HMAC, and RSA for Google's service
//! accounts. `rustls-graviola` provides those of TLS.

use hmac::{Hmac, Mac};
use object_store::Result;
use object_store::client::{
    CryptoProvider, DigestAlgorithm, DigestContext, HmacContext, Signer, SigningAlgorithm,
};
use sha2::{Digest, Sha256};

/// A crypto provider in Rust and assembly.
#[derive(Debug)]
pub(crate) struct PlainCrypto;

/// Length of a SHA-256 digest, in bytes.
const DIGEST_BYTES: usize = 32;

struct Sha256Context {
    digest: Sha256,
    done: [u8; DIGEST_BYTES],
}

struct HmacSha256Context {
    hmac: Hmac<Sha256>,
    done: [u8; DIGEST_BYTES],
}

impl CryptoProvider for PlainCrypto {
    fn digest(&self, algorithm: DigestAlgorithm) -> Result<Box<dyn DigestContext>> {
        match algorithm {
            DigestAlgorithm::Sha256 => Ok(Box::new(Sha256Context {
                digest: Sha256::new(),
                done: [0; DIGEST_BYTES],
            })),
            other => Err(unknown(&format!("{other:?}"))),
        }
    }

    fn hmac(&self, algorithm: DigestAlgorithm, secret: &[u8]) -> Result<Box<dyn HmacContext>> {
        match algorithm {
            DigestAlgorithm::Sha256 => {
                let hmac =
                    Hmac::new_from_slice(secret).map_err(|error| unknown(&error.to_string()))?;
                Ok(Box::new(HmacSha256Context {
                    hmac,
                    done: [0; DIGEST_BYTES],
                }))
            }
            other => Err(unknown(&format!("{other:?}"))),
        }
    }

    #[cfg(feature = "gcs")]
    fn sign(&self, algorithm: SigningAlgorithm, pem: &[u8]) -> Result<Box<dyn Signer>> {
        match algorithm {
            SigningAlgorithm::RS256 => Ok(Box::new(rsa::RsaSigner::of(pem)?)),
            other => Err(unknown(&format!("{other:?}"))),
        }
    }

    #[cfg(not(feature = "gcs"))]
    fn sign(&self, algorithm: SigningAlgorithm, _: &[u8]) -> Result<Box<dyn Signer>> {
        Err(unknown(&format!("{algorithm:?}")))
    }
}

impl DigestContext for Sha256Context {
    fn update(&mut self, data: &[u8]) {
        self.digest.update(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.done = self.digest.finalize_reset().into();
        Ok(&self.done)
    }
}

impl HmacContext for HmacSha256Context {
    fn update(&mut self, data: &[u8]) {
        self.hmac.update(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.done = self.hmac.clone().finalize().into_bytes().into();
        Ok(&self.done)
    }
}

fn unknown(what: &str) -> object_store::Error {
    object_store::Error::NotSupported {
        source: format!("{what} is not supported").into(),
    }
}

/// RSA signatures of service accounts.
#[cfg(feature = "gcs")]
mod rsa {
    use graviola::signing::rsa::SigningKey;
    use object_store::Result;
    use object_store::client::Signer;
    use rustls_pki_types::PrivateKeyDer;
    use rustls_pki_types::pem::PemObject;

    /// Length of the largest signature, in bytes.
    const SIGNATURE_BYTES_MAX: usize = 1024;

    pub(super) struct RsaSigner(SigningKey);

    impl RsaSigner {
        pub(super) fn of(pem: &[u8]) -> Result<RsaSigner> {
            // The error contains neither the key nor details of it.
            let bad = || super::unknown("a signature with a service account key that is not RSA");
            let key = match PrivateKeyDer::from_pem_slice(pem).map_err(|_| bad())? {
                PrivateKeyDer::Pkcs8(key) => SigningKey::from_pkcs8_der(key.secret_pkcs8_der()),
                PrivateKeyDer::Pkcs1(key) => SigningKey::from_pkcs1_der(key.secret_pkcs1_der()),
                _ => return Err(bad()),
            };
            key.map(RsaSigner).map_err(|_| bad())
        }
    }

    impl Signer for RsaSigner {
        fn sign(&self, string_to_sign: &[u8]) -> Result<Vec<u8>> {
            let mut signature = [0; SIGNATURE_BYTES_MAX];
            let signed = self.0.sign_pkcs1_sha256(&mut signature, string_to_sign);
            signed
                .map(<[u8]>::to_vec)
                .map_err(|_| super::unknown("a signature with the service account key"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn sha256_matches_standard() {
        let mut digest = PlainCrypto.digest(DigestAlgorithm::Sha256).expect("known");
        digest.update(b"ab");
        digest.update(b"c");
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex(digest.finish().expect("a digest")), expected);
    }

    #[test]
    fn hmac_matches_rfc_4231() {
        let mut hmac = PlainCrypto
            .hmac(DigestAlgorithm::Sha256, b"Jefe")
            .expect("known");
        hmac.update(b"what do ya want ");
        hmac.update(b"for nothing?");
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(hmac.finish().expect("a code")), expected);
    }
}
