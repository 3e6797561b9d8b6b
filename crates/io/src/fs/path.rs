//! File names: scheme, folder and base name. All functions are lexical; they do not access a file system.

use status::{Result, invalid};

/// The scheme of a name (`ram` in `ram://a/b`, empty for plain paths) and the rest.
pub fn split_scheme(path: &str) -> (&str, &str) {
    let scheme_of = |at: usize| {
        let scheme = &path[..at];
        let begins = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
        begins && scheme.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
    };
    match path.find("://") {
        Some(at) if scheme_of(at) => (&path[..at], &path[at + 3..]),
        _ => ("", path),
    }
}

/// A path as the name of a file. Names are UTF-8, since they may be URLs such as `s3://bucket/model`.
pub fn to_str(path: &std::path::Path) -> Result<&str> {
    path.to_str().ok_or_else(|| invalid!("path {} is not valid UTF-8", path.display()))
}

/// The length of scheme and host at the start of a name.
fn root_length(path: &str) -> usize {
    match split_scheme(path) {
        ("", _) => 0,
        (_, rest) => path.len() - rest.len() + rest.find('/').unwrap_or(rest.len()),
    }
}

/// The folder of a name and its base name.
pub fn split(path: &str) -> (&str, &str) {
    let root = root_length(path);
    match path[root..].rfind('/') {
        None => (&path[..root], &path[root..]),
        Some(0) => (&path[..root + 1], &path[root + 1..]),
        Some(at) => (&path[..root + at], &path[root + at + 1..]),
    }
}

/// The folder of a name; empty if it has none.
pub fn dirname(path: &str) -> &str {
    split(path).0
}

/// The base name.
pub fn basename(path: &str) -> &str {
    split(path).1
}

/// A name inside a folder. An absolute name is returned unchanged.
pub fn join(folder: &str, name: &str) -> String {
    match is_absolute(name) || folder.is_empty() {
        true => name.to_string(),
        false if folder.ends_with('/') => format!("{folder}{name}"),
        false => format!("{folder}/{name}"),
    }
}

/// True if a name does not depend on a current folder.
pub fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || !split_scheme(path).0.is_empty()
}

/// The name of `path` relative to `folder`.
pub fn relative(path: &str, folder: &str) -> String {
    let (path, folder) = (parts(path), parts(folder));
    let common = path.iter().zip(&folder).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..", folder.len() - common);
    let seen: Vec<&str> = up.chain(path[common..].iter().copied()).collect();
    if seen.is_empty() { ".".to_string() } else { seen.join("/") }
}

/// The components of a name, without `.` and with `..` resolved where possible.
fn parts(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|&last| last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts
}
