//! Where the page of a cluster is served.
//!
//! Owns how that is written. Does not own the page (`web`).

use std::net::SocketAddr;
use std::str::FromStr;

/// Whether there is a page, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebAddress {
    /// None.
    Off,
    /// The usual place, or another port of this machine.
    Usual,
    /// Here or nowhere.
    At(SocketAddr),
}

impl WebAddress {
    /// What a flag says, else a file, else the usual place.
    pub fn chosen(flag: Option<SocketAddr>, filed: Option<WebAddress>) -> WebAddress {
        // Whoever asks for a page outright wants one.
        let filed = filed.filter(|filed| *filed != WebAddress::Off).unwrap_or(WebAddress::Usual);
        flag.map_or(filed, WebAddress::At)
    }
}

impl FromStr for WebAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<WebAddress, String> {
        if text == "off" {
            return Ok(WebAddress::Off);
        }
        let address = text.parse().map(WebAddress::At);
        address.map_err(|_| format!("{text:?} is neither ADDRESS:PORT, such as 127.0.0.1:8088, nor off"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_where_it_is_said_or_nowhere() {
        let at = |text: &str| WebAddress::At(text.parse().expect("an address"));
        assert_eq!("off".parse(), Ok(WebAddress::Off));
        assert_eq!("127.0.0.1:80".parse(), Ok(at("127.0.0.1:80")));
        for text in ["", "on", "localhost:80", "127.0.0.1"] {
            let error = text.parse::<WebAddress>().expect_err(text);
            assert!(error.ends_with("is neither ADDRESS:PORT, such as 127.0.0.1:8088, nor off"), "{error}");
        }
        let flag = Some("127.0.0.1:80".parse().expect("an address"));
        assert_eq!(WebAddress::chosen(flag, Some(WebAddress::Off)), at("127.0.0.1:80"));
        assert_eq!(WebAddress::chosen(None, Some(at("127.0.0.1:81"))), at("127.0.0.1:81"));
        assert_eq!(WebAddress::chosen(None, Some(WebAddress::Off)), WebAddress::Usual);
    }
}
