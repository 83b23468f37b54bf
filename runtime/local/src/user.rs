//! User names.

/// Returns the user's name from the environment or else from the system, or else the numeric id.
pub fn current_user() -> String {
    let named = ["USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok());
    let id = rustix::process::geteuid().as_raw();
    named
        .filter(|name| !name.is_empty())
        .or_else(|| name_of(id))
        .unwrap_or_else(|| id.to_string())
}

/// Formats a user for people: `ada (user 1000)`, or `user 1000` if the system has no name for the id.
pub fn whom(id: u32) -> String {
    name_of(id).map_or_else(
        || format!("user {id}"),
        |name| format!("{name} (user {id})"),
    )
}

fn name_of(id: u32) -> Option<String> {
    let user = uzers::get_user_by_uid(id)?;
    user.name()
        .to_str()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_name_comes_from_the_system() {
        assert_eq!(whom(0), "root (user 0)");
        assert_eq!(whom(u32::MAX - 7), format!("user {}", u32::MAX - 7));
    }
}
