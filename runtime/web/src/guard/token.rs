//! Signed words that prove a role: codes of links, cookies, tokens of programs. Their key is derived from the secret of
//! the cluster, so that they survive a restart.
//!
//! ```text
//! nap1.PURPOSE.ROLE.NAME.ISSUED.UNTIL.NONCE.MAC      times in milliseconds since 1970; MAC: keyed BLAKE2s of the rest
//! ```

use std::fmt::Write as _;
use std::str::FromStr;

use blake2::Blake2sMac256;
use blake2::digest::Mac;
use napreduce_engine::listed;
use napreduce_protocol::Secret;
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

const VERSION: &str = "nap1";
const NONCE_BYTES: usize = 8;
const NAME_CHARACTERS_MAX: usize = 64;

listed! {
    /// Permissions, each including the ones before.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum WebRole {
        /// Sign in.
        Nobody = "nobody",
        /// See everything.
        View = "view",
        /// Everything, including commands.
        Operate = "operate",
    }
}

impl FromStr for WebRole {
    type Err = String;

    fn from_str(text: &str) -> Result<WebRole, String> {
        match text {
            "view" => Ok(WebRole::View),
            "operate" => Ok(WebRole::Operate),
            other => Err(format!("unknown role {other:?}; expected view or operate")),
        }
    }
}

listed! {
    /// The only purpose that a signed word serves.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Purpose {
        /// Sign in, once.
        Code = "code",
        /// Read in a browser.
        Cookie = "cookie",
        /// Sign in with a shared link, and read in a browser, until it ends.
        Share = "share",
        /// Act as a program.
        Token = "token",
    }
}

/// The contents of a signed word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    pub purpose: Purpose,
    pub role: WebRole,
    /// The holder's name, recorded with its commands: letters, digits, `-` and `_`.
    pub name: String,
    pub issued_millis: u64,
    pub until_millis: u64,
    /// Makes equal claims distinct.
    pub nonce: u64,
}

/// Why a word is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TokenError {
    #[error("it belongs to another cluster, or is incomplete")]
    Foreign,
    #[error("it is for another purpose")]
    Misused,
    #[error("it has expired")]
    Expired,
}

/// Signs and verifies words.
#[derive(Debug, Clone)]
pub struct Signer {
    key: Secret,
}

impl Signer {
    /// Derives the key from the secret of a cluster.
    pub fn new(secret: &Secret) -> Signer {
        let derived = Signer {
            key: secret.clone(),
        }
        .mac("napreduce: what the web server signs");
        Signer {
            key: Secret::from_bytes(derived.finalize().into_bytes().into()),
        }
    }

    /// Issues a word that is valid for `for_millis`.
    ///
    /// # Errors
    /// Fails if the name is invalid, or the system has no random numbers.
    pub fn issue(
        &self,
        purpose: Purpose,
        role: WebRole,
        name: &str,
        now_millis: u64,
        for_millis: u64,
    ) -> Result<(Claims, String), String> {
        check_name(name)?;
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce)
            .map_err(|error| format!("no random numbers from the system: {error}"))?;
        let claims = Claims {
            purpose,
            role,
            name: name.to_owned(),
            issued_millis: now_millis,
            until_millis: now_millis.saturating_add(for_millis),
            nonce: u64::from_le_bytes(nonce),
        };
        let word = self.sign(&claims);
        Ok((claims, word))
    }

    fn sign(&self, claims: &Claims) -> String {
        let Claims {
            purpose,
            role,
            name,
            issued_millis,
            until_millis,
            nonce,
        } = claims;
        let mut word = format!(
            "{VERSION}.{purpose}.{role}.{name}.{issued_millis}.{until_millis}.{nonce:016x}"
        );
        let mac = self.mac(&word).finalize().into_bytes();
        word.push('.');
        push_digits(&mut word, &mac);
        word
    }

    /// Verifies a word: its signature, purpose and time.
    ///
    /// # Errors
    /// The reason why it is invalid.
    pub fn read(
        &self,
        word: &str,
        purpose: Purpose,
        now_millis: u64,
    ) -> Result<Claims, TokenError> {
        let (signed, mac) = word.rsplit_once('.').ok_or(TokenError::Foreign)?;
        let mac = digits(mac).ok_or(TokenError::Foreign)?;
        // In constant time.
        self.mac(signed)
            .verify_slice(&mac)
            .map_err(|_| TokenError::Foreign)?;
        let claims = parse(signed).ok_or(TokenError::Foreign)?;
        if claims.purpose != purpose {
            return Err(TokenError::Misused);
        }
        if now_millis >= claims.until_millis {
            return Err(TokenError::Expired);
        }
        Ok(claims)
    }

    /// Returns the cookie name of the cluster: cookies of `127.0.0.1` are shared by all ports.
    pub fn cookie_name(&self) -> String {
        let mac = self.mac("the name of the cookie").finalize().into_bytes();
        let mut name = String::from("nap_");
        push_digits(&mut name, &mac[..4]);
        name
    }

    fn mac(&self, text: &str) -> Blake2sMac256 {
        let mut mac =
            Blake2sMac256::new_from_slice(self.key.bytes()).expect("a key of 32 bytes is allowed");
        Mac::update(&mut mac, text.as_bytes());
        mac
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.is_empty() || name.len() > NAME_CHARACTERS_MAX || !name.bytes().all(is_allowed) {
        return Err(format!(
            "invalid token name {name:?}: use 1 to {NAME_CHARACTERS_MAX} letters, digits, - and _"
        ));
    }
    Ok(())
}

fn parse(signed: &str) -> Option<Claims> {
    let mut words = signed.split('.');
    let mut next = || words.next();
    if next()? != VERSION {
        return None;
    }
    let claims = Claims {
        purpose: Purpose::of_word(next()?)?,
        role: next()?.parse().ok()?,
        name: next()?.to_owned(),
        issued_millis: next()?.parse().ok()?,
        until_millis: next()?.parse().ok()?,
        nonce: u64::from_str_radix(next()?, 16).ok()?,
    };
    next().is_none().then_some(claims)
}

fn push_digits(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}

fn digits(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| Some((digit(pair[0])? * 16 + digit(*pair.get(1)?)?) as u8))
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn signer() -> Signer {
        Signer::new(&Secret::from_bytes([7; 32]))
    }

    fn issued(purpose: Purpose) -> (Claims, String) {
        signer()
            .issue(purpose, WebRole::View, "grafana", 1_000, 500)
            .expect("a valid name")
    }

    #[test]
    fn word_round_trips_until_it_expires() {
        let (claims, word) = issued(Purpose::Token);
        assert_eq!(signer().read(&word, Purpose::Token, 1_499), Ok(claims));
        assert_eq!(
            signer().read(&word, Purpose::Token, 1_500),
            Err(TokenError::Expired)
        );
    }

    #[test]
    fn word_is_valid_for_one_purpose_and_cluster() {
        let (_, word) = issued(Purpose::Cookie);
        for purpose in [Purpose::Code, Purpose::Token] {
            assert_eq!(
                signer().read(&word, purpose, 1_000),
                Err(TokenError::Misused)
            );
        }
        let other = Signer::new(&Secret::from_bytes([8; 32]));
        assert_eq!(
            other.read(&word, Purpose::Cookie, 1_000),
            Err(TokenError::Foreign)
        );
        assert_ne!(other.cookie_name(), signer().cookie_name());
    }

    #[test]
    fn names_with_other_characters_are_rejected() {
        for name in ["", "a.b", "a b", "ü", "a\n", &"a".repeat(65)] {
            assert!(
                signer()
                    .issue(Purpose::Token, WebRole::View, name, 0, 1)
                    .is_err(),
                "{name:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn changed_word_is_rejected(at in 0..200_usize, to in any::<u8>()) {
            let (_, word) = issued(Purpose::Token);
            let mut bytes = word.clone().into_bytes();
            let at = at % bytes.len();
            prop_assume!(!bytes[at].eq_ignore_ascii_case(&to) && to.is_ascii());
            bytes[at] = to;
            let changed = String::from_utf8(bytes).expect("ASCII");
            prop_assert_eq!(signer().read(&changed, Purpose::Token, 1_000), Err(TokenError::Foreign));
            prop_assert_eq!(signer().read(&word[..at], Purpose::Token, 1_000), Err(TokenError::Foreign));
        }

        #[test]
        fn other_text_is_rejected(text in "\\PC{0,120}") {
            prop_assert_eq!(signer().read(&text, Purpose::Token, 0), Err(TokenError::Foreign));
        }
    }
}
