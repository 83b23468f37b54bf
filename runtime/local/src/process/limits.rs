//! Resource limits that a process may raise for itself.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Above it some programs that close every descriptor they might have become slow, and tasks inherit it.
const DESCRIPTORS_MAX: u64 = 1 << 19;

/// Raises the number of files that this process may have open to what it is allowed, within reason, and says
/// how many it is now.
pub fn raise_descriptors() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    let current = current.unwrap_or(u64::MAX);
    if current >= wanted {
        return current;
    }
    // Where it is forbidden after all, what there was has to do.
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum }) {
        Ok(()) => wanted,
        Err(_) => current,
    }
}

/// How many files this process may have open.
pub fn descriptors_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptor_limit_is_raised_to_its_maximum() {
        let now = raise_descriptors();
        let limit = getrlimit(Resource::Nofile);
        assert!(limit.current.is_none_or(|current| current >= now));
        assert!(
            limit.maximum.is_none_or(|maximum| now >= maximum.min(DESCRIPTORS_MAX)),
            "{now} of {limit:?}"
        );
    }
}
