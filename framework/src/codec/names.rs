//! Names of types as people read them.

/// Returns the name of a type without the paths of modules: `Option<String>` for
/// `core::option::Option<alloc::string::String>`.
pub(crate) fn short_name(type_name: &str) -> String {
    let is_of_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let mut short = String::new();
    let mut rest = type_name;
    while !rest.is_empty() {
        let path_length = rest
            .find(|letter| !is_of_path(letter))
            .unwrap_or(rest.len());
        let path = &rest[..path_length];
        short.push_str(path.rsplit("::").next().unwrap_or(path));
        rest = &rest[path_length..];
        let between = rest.find(is_of_path).unwrap_or(rest.len());
        short.push_str(&rest[..between]);
        rest = &rest[between..];
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_name_has_no_modules() {
        assert_eq!(short_name("u64"), "u64");
        assert_eq!(
            short_name("(core::option::Option<alloc::string::String>, [a::b::Page<'_>; 4])"),
            "(Option<String>, [Page<'_>; 4])"
        );
        assert_eq!(short_name("&str"), "&str");
    }
}
