//! Patterns of file names, as in `MatchingFiles`.

use super::path;
use status::{Code, Result};

/// The characters that make a name a pattern.
const SPECIAL: [char; 4] = ['*', '?', '[', '\\'];

/// The names that match a pattern, on a file system given by its `list` and `exists`.
pub(super) fn expand(
    pattern: &str,
    list: impl Fn(&str) -> Result<Vec<String>>,
    exists: impl Fn(&str) -> Result<bool>,
) -> Result<Vec<String>> {
    let Some(special) = pattern.find(SPECIAL) else {
        return Ok(if exists(pattern)? { vec![pattern.to_string()] } else { Vec::new() });
    };
    // The folder before the first special character is used literally.
    let folder = path::dirname(&pattern[..special]);
    let rest = pattern[folder.len()..].trim_start_matches('/');
    let folder = if folder.is_empty() { "." } else { folder };
    let mut found = vec![folder.to_string()];
    for part in rest.split('/').filter(|part| !part.is_empty()) {
        let mut deeper = Vec::new();
        for folder in &found {
            let names = listed(&list, folder)?;
            deeper.extend(names.iter().filter(|name| matches(part, name)).map(|name| path::join(folder, name)));
        }
        found = deeper;
    }
    found.sort();
    Ok(found)
}

/// The entries of a folder, or none if it is not a folder.
fn listed(list: impl Fn(&str) -> Result<Vec<String>>, folder: &str) -> Result<Vec<String>> {
    match list(folder) {
        Err(error) if matches!(error.code, Code::NotFound | Code::FailedPrecondition) => Ok(Vec::new()),
        result => result,
    }
}

/// True if one component of a name, without slashes, matches a pattern.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where to continue if the last `*` must match one more character.
    let mut retry = None;
    loop {
        let step = match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
                continue;
            }
            None if n == name.len() => return true,
            None => None,
            Some(_) => name.get(n).and_then(|&c| one(&pattern[p..], c)),
        };
        match (step, retry) {
            (Some(length), _) => (p, n) = (p + length, n + 1),
            (None, Some((after, from))) if from < name.len() => {
                retry = Some((after, from + 1));
                (p, n) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

/// The length of the first element of a pattern, if it matches this character.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern[0] {
        '?' => Some(1),
        '[' => match set(pattern, c) {
            Some((length, within)) => within.then_some(length),
            None => (c == '[').then_some(1), // a bracket that is never closed is literal
        },
        '\\' if pattern.len() > 1 => (pattern[1] == c).then_some(2),
        literal => (literal == c).then_some(1),
    }
}

/// The length of the set at the start of a pattern, and whether it contains the character.
fn set(pattern: &[char], c: char) -> Option<(usize, bool)> {
    let negated = matches!(pattern.get(1), Some('!' | '^'));
    let first = if negated { 2 } else { 1 };
    let mut at = first;
    let mut found = false;
    loop {
        match *pattern.get(at)? {
            ']' if at > first => return Some((at + 1, found != negated)),
            mut low => {
                if low == '\\' {
                    at += 1;
                    low = *pattern.get(at)?;
                }
                let range = pattern.get(at + 1) == Some(&'-') && pattern.get(at + 2).is_some_and(|&high| high != ']');
                let high = if range { pattern[at + 2] } else { low };
                found |= (low..=high).contains(&c);
                at += if range { 3 } else { 1 };
            }
        }
    }
}
