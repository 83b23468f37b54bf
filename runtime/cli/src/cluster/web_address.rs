//! The address of the dashboard on command lines and in the configuration file.

use std::net::SocketAddr;
use std::str::FromStr;

/// Whether and where to serve the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebAddress {
    Off,
    /// The default address, or another port if it is taken.
    Usual,
    At(SocketAddr),
}

impl WebAddress {
    /// Returns the flag, else the setting of the file, else the default.
    pub fn chosen(flag: Option<SocketAddr>, in_file: Option<WebAddress>) -> WebAddress {
        // A command that serves the dashboard ignores `off` in the file.
        let in_file = in_file.filter(|in_file| *in_file != WebAddress::Off).unwrap_or(WebAddress::Usual);
        flag.map_or(in_file, WebAddress::At)
    }
}

impl FromStr for WebAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<WebAddress, String> {
        if text == "off" {
            return Ok(WebAddress::Off);
        }
        let address = text.parse().map(WebAddress::At);
        address.map_err(|_| {
            format!("invalid address {text:?}: expected ADDRESS:PORT, such as 127.0.0.1:8088, or off")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_address_is_read_and_chosen() {
        let at = |text: &str| WebAddress::At(text.parse().expect("an address"));
        assert_eq!("off".parse(), Ok(WebAddress::Off));
        assert_eq!("127.0.0.1:80".parse(), Ok(at("127.0.0.1:80")));
        for text in ["", "on", "localhost:80", "127.0.0.1"] {
            let error = text.parse::<WebAddress>().expect_err(text);
            assert!(error.ends_with("expected ADDRESS:PORT, such as 127.0.0.1:8088, or off"), "{error}");
        }
        let flag = Some("127.0.0.1:80".parse().expect("an address"));
        assert_eq!(WebAddress::chosen(flag, Some(WebAddress::Off)), at("127.0.0.1:80"));
        assert_eq!(WebAddress::chosen(None, Some(at("127.0.0.1:81"))), at("127.0.0.1:81"));
        assert_eq!(WebAddress::chosen(None, Some(WebAddress::Off)), WebAddress::Usual);
    }
}
