//! Resource limits that a process may raise for itself.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Programs that close all possible descriptors become slow above it, and tasks inherit the limit.
const DESCRIPTORS_MAX: u64 = 1 << 19;

/// Raises the limit of open files to its maximum, at most `DESCRIPTORS_MAX`; returns the new limit.
pub fn raise_descriptors() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(DESCRIPTORS_MAX).min(DESCRIPTORS_MAX);
    let current = current.unwrap_or(u64::MAX);
    if current >= wanted {
        return current;
    }
    // If that is forbidden, the old limit stays.
    match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(wanted),
            maximum,
        },
    ) {
        Ok(()) => wanted,
        Err(_) => current,
    }
}

/// Returns how many files this process may have open.
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
            limit
                .maximum
                .is_none_or(|maximum| now >= maximum.min(DESCRIPTORS_MAX)),
            "{now} of {limit:?}"
        );
    }
}
