//! A network of three hosts on this machine: network namespaces, connected by a bridge in a namespace of its
//! own. It is not visible from outside.
//!
//! ```text
//! host 0 (10.77.0.1) --+
//! host 1 (10.77.0.2) --+-- bridge        each line a veth pair; cut and healed at the bridge's end
//! host 2 (10.77.0.3) --+
//! ```

use std::process::{Command, Stdio};

const HOSTS: usize = 3;

pub struct Network {
    prefix: String,
}

impl Network {
    /// Creates hosts that can reach each other; returns an error if that is not possible.
    pub fn start() -> Result<Network, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("needs root, to make network namespaces".to_owned());
        }
        let network = Network {
            prefix: format!("nap{}", std::process::id()),
        };
        network.build().map(|()| network)
    }

    fn build(&self) -> Result<(), String> {
        let bridge = self.namespace("b");
        ip(&["netns", "add", &bridge])?;
        ip(&["-n", &bridge, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", &bridge, "link", "set", "bridge", "up"])?;
        for host in 0..HOSTS {
            let name = self.namespace(&host.to_string());
            let port = format!("port{host}");
            ip(&["netns", "add", &name])?;
            ip(&["-n", &name, "link", "set", "lo", "up"])?;
            ip(&[
                "-n", &bridge, "link", "add", &port, "type", "veth", "peer", "name", "eth",
                "netns", &name,
            ])?;
            ip(&[
                "-n", &bridge, "link", "set", &port, "master", "bridge", "up",
            ])?;
            ip(&[
                "-n",
                &name,
                "addr",
                "add",
                &format!("{}/24", self.host(host)),
                "dev",
                "eth",
            ])?;
            ip(&["-n", &name, "link", "set", "eth", "up"])?;
        }
        Ok(())
    }

    fn namespace(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.prefix)
    }

    /// Returns the address of a host.
    pub fn host(&self, host: usize) -> String {
        format!("10.77.0.{}", host + 1)
    }

    /// Wraps a command so that it runs on a host.
    pub fn inside(&self, host: usize, command: Command) -> Command {
        let mut inside = Command::new("ip");
        inside
            .args(["netns", "exec", &self.namespace(&host.to_string())])
            .arg(command.get_program());
        inside.args(command.get_args()).stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    /// Disconnects a host from all others.
    pub fn cut(&self, host: usize) {
        self.set_port(host, "down");
    }

    /// Reconnects a host.
    pub fn heal(&self, host: usize) {
        self.set_port(host, "up");
    }

    fn set_port(&self, host: usize, state: &str) {
        let set = ip(&[
            "-n",
            &self.namespace("b"),
            "link",
            "set",
            &format!("port{host}"),
            state,
        ]);
        set.expect("a port of this network");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let suffixes = (0..HOSTS)
            .map(|host| host.to_string())
            .chain(["b".to_owned()]);
        for suffix in suffixes {
            // Fails if the namespace could not be created.
            let _ = ip(&["netns", "del", &self.namespace(&suffix)]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let what = format!("ip {}", arguments.join(" "));
    let ended = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let ended = ended.map_err(|error| format!("{what}: {error}"))?;
    if ended.status.success() {
        Ok(())
    } else {
        Err(format!(
            "{what}: {}",
            String::from_utf8_lossy(&ended.stderr).trim()
        ))
    }
}
