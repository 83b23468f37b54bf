//! Sessions: sign-in by a link, cookies for pages, tokens for commands. A cookie only permits reading, because browsers
//! send it with requests of foreign pages, too.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use napreduce_protocol::lock;
use thiserror::Error;

use super::links::{LinkError, Links, SharedLink};
use super::pace::Pace;
use super::revocations::{RevocationError, Revocations};
use super::token::{Claims, Purpose, Signer, TokenError, WebRole};

const MINUTE_MILLIS: u64 = 60_000;
/// Name of the sessions opened by a link of `nap web link`.
pub const BROWSER: &str = "browser";
/// Lifetime of a link.
const CODE_MILLIS: u64 = 15 * MINUTE_MILLIS;
/// Lifetime of a cookie since its last renewal, and of a page's token.
const COOKIE_MILLIS: u64 = 12 * 60 * MINUTE_MILLIS;
/// Older cookies are renewed.
const RENEW_MILLIS: u64 = 60 * MINUTE_MILLIS;
/// Wrong links that are allowed before a pause.
const WRONG_MAX: u32 = 5;
const WRONG_TIME: Duration = Duration::from_secs(10);
/// How long the revocations are cached.
const REVOCATIONS_AGE: Duration = Duration::from_secs(1);

/// The result of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    pub role: WebRole,
    pub name: String,
    pub until_millis: u64,
    /// `NAME=VALUE; ...` for `Set-Cookie`.
    pub cookie: String,
    /// For commands, kept by the page; only for operators.
    pub token: Option<String>,
}

/// Why a sign-in failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SignInError {
    #[error("this link was used before, has expired (15 minutes), or belongs to another cluster")]
    Wrong,
    #[error("too many wrong links; try again in 10 seconds")]
    TooMany,
    #[error("{0}")]
    Unavailable(String),
}

/// The credentials of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    pub role: WebRole,
    pub name: String,
    pub until_millis: u64,
    /// A new cookie that replaces an old one.
    pub renewed: Option<String>,
}

impl Credentials {
    /// The credentials of an anonymous request.
    pub fn anonymous() -> Credentials {
        Credentials {
            role: WebRole::Nobody,
            name: String::new(),
            until_millis: 0,
            renewed: None,
        }
    }
}

/// The sessions of a server. They are signed, so only used codes have to be kept.
#[derive(Debug)]
pub struct Sessions {
    signer: Signer,
    started_millis: u64,
    /// Used codes by nonce, until they expire.
    spent: Mutex<HashMap<u64, u64>>,
    wrong: Pace,
    revocations_file: Option<PathBuf>,
    revoked: Mutex<Option<(Instant, Revocations)>>,
    links: Links,
}

impl Sessions {
    /// Starts now. Codes issued earlier are rejected, because it is unknown whether they were used.
    pub fn new(
        signer: Signer,
        revocations_file: Option<PathBuf>,
        links_file: Option<PathBuf>,
        now_millis: u64,
    ) -> Sessions {
        Sessions {
            signer,
            started_millis: now_millis,
            spent: Mutex::default(),
            wrong: Pace::new(WRONG_MAX, WRONG_TIME, Instant::now()),
            revocations_file,
            revoked: Mutex::default(),
            links: Links::new(links_file),
        }
    }

    /// Issues the code of a sign-in link, the part after `#code=`.
    ///
    /// # Errors
    /// Fails if the system has no random numbers.
    pub fn code(signer: &Signer, role: WebRole, now_millis: u64) -> Result<String, String> {
        signer
            .issue(Purpose::Code, role, BROWSER, now_millis, CODE_MILLIS)
            .map(|(_, word)| word)
    }

    /// Issues a link to view the page until a chosen time; returns it with its code.
    ///
    /// # Errors
    /// Fails if the name is invalid or taken, or the link cannot be recorded.
    pub fn share(
        &self,
        name: &str,
        address: &str,
        now_millis: u64,
        for_millis: u64,
    ) -> Result<(SharedLink, String), LinkError> {
        if name == BROWSER {
            return Err(LinkError::Invalid(format!(
                "the name {BROWSER:?} is reserved; choose another"
            )));
        }
        let issued = self
            .signer
            .issue(Purpose::Share, WebRole::View, name, now_millis, for_millis);
        let (claims, code) = issued.map_err(LinkError::Invalid)?;
        let link = SharedLink {
            name: claims.name,
            address: address.to_owned(),
            issued_millis: claims.issued_millis,
            until_millis: claims.until_millis,
            nonce: claims.nonce,
        };
        self.links
            .add(link.clone(), &self.revoked_links()?, now_millis)?;
        Ok((link, code))
    }

    /// Returns the shared links that are valid.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub fn links(&self, now_millis: u64) -> Result<Vec<SharedLink>, LinkError> {
        self.links.valid(&self.revoked_links()?, now_millis)
    }

    /// Revokes a shared link and the sessions that it opened.
    ///
    /// # Errors
    /// Fails if there is none with this name, or that cannot be recorded.
    pub fn revoke_link(&self, name: &str, now_millis: u64) -> Result<(), LinkError> {
        self.links.remove(name, &self.revoked_links()?, now_millis)
    }

    fn revoked_links(&self) -> Result<Revocations, LinkError> {
        self.revoked()
            .map_err(|error| LinkError::Invalid(error.to_string()))
    }

    /// Returns the claims of a shared link, if it is valid.
    fn shared(&self, word: &str, now_millis: u64) -> Result<Option<Claims>, String> {
        let Ok(claims) = self.signer.read(word, Purpose::Share, now_millis) else {
            return Ok(None);
        };
        let revoked = self.revoked().map_err(|error| error.to_string())?;
        let is_listed = self
            .links
            .has(&claims, &revoked, now_millis)
            .map_err(|error| error.to_string())?;
        Ok(is_listed.then_some(claims))
    }

    /// Signs in with the code of a link, which can be used once, or of a shared link.
    ///
    /// # Errors
    /// Fails if the code is invalid, or too many were.
    pub fn sign_in(&self, code: &str, now_millis: u64) -> Result<SignIn, SignInError> {
        if let Some(claims) = self
            .shared(code, now_millis)
            .map_err(SignInError::Unavailable)?
        {
            // The link itself is the cookie: it ends with the link, and is never renewed.
            let cookie = self.set_cookie(code, claims.until_millis.saturating_sub(now_millis));
            let Claims {
                name, until_millis, ..
            } = claims;
            return Ok(SignIn {
                role: WebRole::View,
                name,
                until_millis,
                cookie,
                token: None,
            });
        }
        let claims = self.signer.read(code, Purpose::Code, now_millis);
        let claims = claims
            .ok()
            .filter(|claims| claims.issued_millis >= self.started_millis);
        let is_revoked = |claims: &Claims| self.revoked().map(|revoked| revoked.covers(claims));
        let unavailable = |error: RevocationError| SignInError::Unavailable(error.to_string());
        match claims {
            Some(claims)
                if !is_revoked(&claims).map_err(unavailable)?
                    && self.spend(&claims, now_millis) =>
            {
                self.admit(claims.role, now_millis)
                    .map_err(SignInError::Unavailable)
            }
            _ if self.wrong.allows(Instant::now()) => Err(SignInError::Wrong),
            _ => Err(SignInError::TooMany),
        }
    }

    fn admit(&self, role: WebRole, now_millis: u64) -> Result<SignIn, String> {
        let issue = |purpose, role| {
            self.signer
                .issue(purpose, role, BROWSER, now_millis, COOKIE_MILLIS)
        };
        let (claims, cookie) = issue(Purpose::Cookie, WebRole::View)?;
        let token = match role {
            WebRole::Operate => Some(issue(Purpose::Token, role)?.1),
            _ => None,
        };
        Ok(SignIn {
            role,
            name: claims.name,
            until_millis: claims.until_millis,
            cookie: self.set_cookie(&cookie, COOKIE_MILLIS),
            token,
        })
    }

    /// Marks the code as used; returns `false` if it was used before.
    fn spend(&self, claims: &Claims, now_millis: u64) -> bool {
        let mut spent = lock(&self.spent);
        spent.retain(|_, until| *until > now_millis);
        spent.insert(claims.nonce, claims.until_millis).is_none()
    }

    /// Returns the credentials in a request's headers. An invalid token is an error, not an anonymous request.
    ///
    /// # Errors
    /// Fails if the token is invalid, or the revocations cannot be read.
    pub fn credentials(&self, headers: &HeaderMap, now_millis: u64) -> Result<Credentials, String> {
        if let Some(value) = headers.get(AUTHORIZATION) {
            let word = value
                .to_str()
                .ok()
                .and_then(|value| value.strip_prefix("Bearer "));
            let claims = word
                .ok_or(TokenError::Foreign)
                .and_then(|word| self.signer.read(word.trim(), Purpose::Token, now_millis));
            let claims = claims.map_err(|error| format!("invalid token: {error}"))?;
            if self
                .revoked()
                .map_err(|error| error.to_string())?
                .covers(&claims)
            {
                return Err("the token was revoked".to_owned());
            }
            let Claims {
                role,
                name,
                until_millis,
                ..
            } = claims;
            return Ok(Credentials {
                role,
                name,
                until_millis,
                renewed: None,
            });
        }
        let Some(claims) = self.cookie(headers, now_millis)? else {
            return Ok(Credentials::anonymous());
        };
        if self
            .revoked()
            .map_err(|error| error.to_string())?
            .covers(&claims)
        {
            return Ok(Credentials::anonymous());
        }
        let is_old = claims.purpose == Purpose::Cookie
            && now_millis.saturating_sub(claims.issued_millis) > RENEW_MILLIS;
        let mut renewed = None;
        if is_old {
            let (_, word) = self.signer.issue(
                Purpose::Cookie,
                WebRole::View,
                &claims.name,
                now_millis,
                COOKIE_MILLIS,
            )?;
            renewed = Some(self.set_cookie(&word, COOKIE_MILLIS));
        }
        Ok(Credentials {
            role: WebRole::View,
            name: claims.name,
            until_millis: claims.until_millis,
            renewed,
        })
    }

    /// Returns the claims of the cookie: of a session, or of a shared link.
    fn cookie(&self, headers: &HeaderMap, now_millis: u64) -> Result<Option<Claims>, String> {
        let ours = self.signer.cookie_name();
        let all = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let pairs = all
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        for (_, word) in pairs.filter(|(name, _)| *name == ours) {
            let session = self.signer.read(word, Purpose::Cookie, now_millis).ok();
            let claims =
                session.map_or_else(|| self.shared(word, now_millis), |claims| Ok(Some(claims)))?;
            if claims.is_some() {
                return Ok(claims);
            }
        }
        Ok(None)
    }

    fn set_cookie(&self, word: &str, for_millis: u64) -> String {
        let name = self.signer.cookie_name();
        let seconds = for_millis / 1_000;
        format!("{name}={word}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict")
    }

    /// Returns the `Set-Cookie` value that deletes the cookie.
    pub fn clear_cookie(&self) -> String {
        self.set_cookie("", 0)
    }

    fn revoked(&self) -> Result<Revocations, RevocationError> {
        let Some(file) = &self.revocations_file else {
            return Ok(Revocations::default());
        };
        let mut known = lock(&self.revoked);
        match known
            .as_ref()
            .filter(|(read, _)| read.elapsed() < REVOCATIONS_AGE)
        {
            Some((_, revoked)) => Ok(revoked.clone()),
            None => {
                let revoked = Revocations::read(file)?;
                *known = Some((Instant::now(), revoked.clone()));
                Ok(revoked)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use napreduce_protocol::Secret;

    use super::*;

    const START: u64 = 1_790_000_000_000;

    fn signer() -> Signer {
        Signer::new(&Secret::from_bytes([7; 32]))
    }

    fn sessions() -> Sessions {
        Sessions::new(signer(), None, None, START)
    }

    fn code(role: WebRole, at: u64) -> String {
        Sessions::code(&signer(), role, at).expect("a code")
    }

    fn headers(name: axum::http::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).expect("a header"))])
    }

    #[test]
    fn link_signs_in_once() {
        let sessions = sessions();
        let code = code(WebRole::Operate, START);
        let signed = sessions.sign_in(&code, START + 1).expect("valid");
        assert_eq!(
            (signed.role, signed.token.is_some()),
            (WebRole::Operate, true)
        );
        assert_eq!(sessions.sign_in(&code, START + 2), Err(SignInError::Wrong));
    }

    #[test]
    fn expired_links_are_rejected() {
        let sessions = sessions();
        let late = sessions.sign_in(&code(WebRole::View, START), START + CODE_MILLIS);
        assert_eq!(late, Err(SignInError::Wrong));
        assert_eq!(
            sessions.sign_in(&code(WebRole::View, START - 1), START),
            Err(SignInError::Wrong)
        );
    }

    #[test]
    fn five_wrong_links_cause_a_pause() {
        let sessions = sessions();
        let tried = [(); 6].map(|()| sessions.sign_in("nonsense", START));
        assert_eq!(tried[..5], [const { Err(SignInError::Wrong) }; 5]);
        assert_eq!(tried[5], Err(SignInError::TooMany));
        assert!(
            sessions.sign_in(&code(WebRole::View, START), START).is_ok(),
            "a valid link has to wait"
        );
    }

    #[test]
    fn cookie_permits_viewing_and_token_commands() {
        let sessions = sessions();
        let signed = sessions
            .sign_in(&code(WebRole::Operate, START), START)
            .expect("valid");
        let cookie = signed.cookie.split(';').next().expect("a pair");
        assert!(
            signed.cookie.ends_with("; HttpOnly; SameSite=Strict"),
            "{}",
            signed.cookie
        );
        let viewer = sessions
            .credentials(&headers(COOKIE, &format!("other=1; {cookie}")), START)
            .expect("valid");
        assert_eq!((viewer.role, viewer.renewed), (WebRole::View, None));
        let token = signed.token.expect("an operator's");
        let bearer = |word: &str| {
            sessions.credentials(&headers(AUTHORIZATION, &format!("Bearer {word}")), START)
        };
        assert_eq!(bearer(&token).expect("valid").role, WebRole::Operate);
        let (_, word) = cookie.split_once('=').expect("a pair");
        assert!(
            bearer(word)
                .expect_err("a cookie is not a token")
                .contains("for another purpose")
        );
        assert!(bearer("x").is_err() && bearer("").is_err());
        assert_eq!(
            sessions.credentials(&HeaderMap::new(), START),
            Ok(Credentials::anonymous())
        );
        let nonsense = sessions.credentials(
            &headers(COOKIE, &format!("{}=x", signer().cookie_name())),
            START,
        );
        assert_eq!(nonsense, Ok(Credentials::anonymous()));
    }

    #[test]
    fn used_cookie_is_renewed() {
        let sessions = sessions();
        let signed = sessions
            .sign_in(&code(WebRole::View, START), START)
            .expect("valid");
        assert_eq!(signed.token, None);
        let cookie = headers(COOKIE, signed.cookie.split(';').next().expect("a pair"));
        let at = |millis| {
            sessions
                .credentials(&cookie, START + millis)
                .expect("no error")
        };
        assert!(at(RENEW_MILLIS).renewed.is_none() && at(RENEW_MILLIS + 1).renewed.is_some());
        assert_eq!(at(COOKIE_MILLIS), Credentials::anonymous());
        assert!(sessions.clear_cookie().contains("=; Path=/; Max-Age=0;"));
    }

    #[test]
    fn shared_link_permits_viewing_until_it_ends() {
        let sessions = sessions();
        let (link, code) = sessions
            .share("ada", "/jobs?state=failed", START, 5_000_000)
            .expect("shared");
        assert_eq!(
            (link.until_millis, sessions.links(START).expect("readable")),
            (START + 5_000_000, vec![link])
        );
        let [first, second] =
            [1, 2].map(|after| sessions.sign_in(&code, START + after).expect("valid"));
        assert_eq!(
            (first.role, &first.token, first.until_millis),
            (WebRole::View, &None, START + 5_000_000)
        );
        assert!(
            first
                .cookie
                .contains("Max-Age=4999; HttpOnly; SameSite=Strict"),
            "{}",
            first.cookie
        );
        let cookie = headers(COOKIE, second.cookie.split(';').next().expect("a pair"));
        let at = |after| {
            sessions
                .credentials(&cookie, START + after)
                .expect("no error")
        };
        assert_eq!((at(3).role, at(3).name.as_str()), (WebRole::View, "ada"));
        assert_eq!(
            at(RENEW_MILLIS + 1).renewed,
            None,
            "the session would outlive its link"
        );
        assert_eq!(at(5_000_000), Credentials::anonymous());
        assert!(sessions.sign_in(&code, START + 5_000_000).is_err());
        let bearer = headers(AUTHORIZATION, &format!("Bearer {code}"));
        assert!(
            sessions.credentials(&bearer, START).is_err(),
            "a link is not a token"
        );
        sessions.revoke_link("ada", START + 4).expect("revoked");
        assert_eq!(at(5), Credentials::anonymous());
        assert_eq!(sessions.sign_in(&code, START + 5), Err(SignInError::Wrong));
        assert!(
            sessions.share(BROWSER, "/", START, 1_000).is_err()
                && sessions.share("a b", "/", START, 1_000).is_err()
        );
    }

    #[test]
    fn shared_link_survives_restart_and_is_revoked_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let [revocations, links] =
            ["web.toml", "web-links.json"].map(|name| folder.path().join(name));
        let start =
            |at| Sessions::new(signer(), Some(revocations.clone()), Some(links.clone()), at);
        let (_, code) = start(START)
            .share("ada", "/", START, 5_000)
            .expect("shared");
        assert!(start(START + 1).sign_in(&code, START + 2).is_ok());
        let mut revoked = Revocations::default();
        revoked.revoke(Some("ada"), START + 3);
        revoked.write(&revocations).expect("written");
        let sessions = start(START + 4);
        assert_eq!(sessions.sign_in(&code, START + 5), Err(SignInError::Wrong));
        assert_eq!(sessions.links(START + 5).expect("readable"), []);
        assert!(
            sessions.share("ada", "/", START + 5, 5_000).is_ok(),
            "the name is free again"
        );
    }

    #[test]
    fn revoked_token_is_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("web.toml");
        let mut revoked = Revocations::default();
        revoked.revoke(Some("grafana"), START);
        revoked.write(&file).expect("written");
        let sessions = Sessions::new(signer(), Some(file), None, START);
        let token = |name, at| {
            signer()
                .issue(Purpose::Token, WebRole::View, name, at, 1_000)
                .expect("a token")
                .1
        };
        let bearer = |word: String| {
            sessions.credentials(
                &headers(AUTHORIZATION, &format!("Bearer {word}")),
                START + 1,
            )
        };
        assert_eq!(
            bearer(token("grafana", START)),
            Err("the token was revoked".to_owned())
        );
        assert!(
            bearer(token("grafana", START + 1)).is_ok() && bearer(token("other", START)).is_ok()
        );
    }
}
