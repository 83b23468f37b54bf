//! Checks of `Host` and `Origin`. A foreign page can make its own name resolve to this address (DNS rebinding); only the
//! requested host name reveals that.

use std::net::SocketAddr;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};

/// The accepted values of `Host`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    names: Vec<String>,
}

/// Why a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// The host is missing, repeated or not ours.
    Host,
    /// It comes from a page of another site.
    Page,
}

impl Hosts {
    /// Accepts the address, `localhost` with its port, and further names (`NAME` or `NAME:PORT`).
    pub fn new(address: SocketAddr, further: &[String]) -> Hosts {
        let mut names = vec![address.to_string(), format!("localhost:{}", address.port())];
        names.extend(further.iter().map(|name| name.to_ascii_lowercase()));
        Hosts { names }
    }

    /// Checks host and origin of a request. `is_data` is set for responses with data of the cluster.
    ///
    /// # Errors
    /// The reason for rejecting the request.
    pub fn check(&self, headers: &HeaderMap, is_data: bool) -> Result<(), Stranger> {
        let mut named = headers.get_all(HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(Stranger::Host);
        };
        let is_ours = |name: &str| {
            self.names
                .iter()
                .any(|ours| ours.eq_ignore_ascii_case(name))
        };
        if !host.to_str().is_ok_and(is_ours) {
            return Err(Stranger::Host);
        }
        for origin in headers.get_all(ORIGIN) {
            let page = origin.to_str().ok().and_then(|origin| {
                origin
                    .strip_prefix("http://")
                    .or_else(|| origin.strip_prefix("https://"))
            });
            if !page.is_some_and(is_ours) {
                return Err(Stranger::Page);
            }
        }
        let site = headers.get("sec-fetch-site").map(|site| site.as_bytes());
        match site {
            Some(b"same-origin" | b"none") | None => Ok(()),
            Some(_) if is_data => Err(Stranger::Page),
            // A link from another site was followed.
            Some(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    fn check(headers: &[(&'static str, &'static str)], is_data: bool) -> Result<(), Stranger> {
        let hosts = Hosts::new(
            "127.0.0.1:8088".parse().expect("an address"),
            &["Nap.example".to_owned()],
        );
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        hosts.check(&map, is_data)
    }

    #[test]
    fn foreign_hosts_are_rejected() {
        for host in [
            "127.0.0.1:8088",
            "localhost:8088",
            "LOCALHOST:8088",
            "nap.example",
        ] {
            assert_eq!(check(&[("host", host)], true), Ok(()), "{host}");
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "evil.example:8088",
            "localhost",
            "",
            "127.0.0.1:8088.evil.example",
        ] {
            assert_eq!(
                check(&[("host", host)], false),
                Err(Stranger::Host),
                "{host}"
            );
        }
        assert_eq!(check(&[], false), Err(Stranger::Host));
        assert_eq!(
            check(
                &[("host", "localhost:8088"), ("host", "evil.example")],
                false
            ),
            Err(Stranger::Host)
        );
    }

    #[test]
    fn foreign_pages_are_rejected() {
        let from = |origin| check(&[("host", "localhost:8088"), ("origin", origin)], false);
        assert_eq!(from("http://localhost:8088"), Ok(()));
        assert_eq!(from("https://nap.example"), Ok(()));
        for origin in [
            "http://evil.example",
            "null",
            "http://localhost:8089",
            "localhost:8088",
            "",
        ] {
            assert_eq!(from(origin), Err(Stranger::Page), "{origin}");
        }
        let site = |site, is_data| {
            check(
                &[("host", "localhost:8088"), ("sec-fetch-site", site)],
                is_data,
            )
        };
        for word in ["same-origin", "none"] {
            assert_eq!(site(word, true), Ok(()), "{word}");
        }
        for word in ["cross-site", "same-site", "nonsense"] {
            assert_eq!(
                (site(word, true), site(word, false)),
                (Err(Stranger::Page), Ok(())),
                "{word}"
            );
        }
    }
}
