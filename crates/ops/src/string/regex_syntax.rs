//! Translates RE2's syntax to that of the `regex` crate, where they differ.

/// The same pattern for `regex`: classes such as `\d` mean ASCII only, `\Q…\E` is literal, and brackets, ampersands and
/// tildes inside a class mean themselves.
pub(super) fn translated(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars();
    let mut class = Class::Outside;
    while let Some(c) = rest.next() {
        match (c, class) {
            ('\\', _) => escape(&mut rest, class != Class::Outside, &mut out),
            ('[', Class::Outside) => {
                out.push('[');
                class = Class::Start;
                continue;
            }
            ('^', Class::Start) => {
                out.push('^');
                continue; // a bracket may still stand for itself
            }
            (']', Class::Start) => out.push_str(r"\]"),
            (']', Class::Inside) => {
                out.push(']');
                class = Class::Outside;
                continue;
            }
            ('[', Class::Start | Class::Inside) => named_class(&mut rest, &mut out),
            ('&' | '~', Class::Start | Class::Inside) => out.extend(['\\', c]),
            _ => out.push(c),
        }
        if class == Class::Start {
            class = Class::Inside;
        }
    }
    out
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Outside,
    /// Right behind `[` or `[^`.
    Start,
    Inside,
}

/// Translates the characters after a backslash.
fn escape(rest: &mut std::str::Chars<'_>, in_class: bool, out: &mut String) {
    let Some(c) = rest.next() else { return out.push('\\') };
    let text = match (c, in_class) {
        ('d', false) => "[0-9]",
        ('D', false) => "[^0-9]",
        ('w', false) => "[0-9A-Za-z_]",
        ('W', false) => "[^0-9A-Za-z_]",
        ('s', false) => r"[\t\n\x0c\r ]",
        ('S', false) => r"[^\t\n\x0c\r ]",
        ('d', true) => "0-9",
        ('w', true) => "0-9A-Za-z_",
        ('s', true) => r"\t\n\x0c\r ",
        ('D', true) => "[^0-9]",
        ('W', true) => "[^0-9A-Za-z_]",
        ('S', true) => r"[^\t\n\x0c\r ]",
        ('b', false) => r"(?-u:\b)",
        ('B', false) => r"(?-u:\B)",
        ('C', false) => r"(?s-u:.)",
        ('Q', false) => return literal(rest, out),
        _ => return out.extend(['\\', c]),
    };
    out.push_str(text);
}

/// Quotes everything up to `\E`.
fn literal(rest: &mut std::str::Chars<'_>, out: &mut String) {
    let text = rest.as_str();
    let (literal, behind) = text.split_once(r"\E").unwrap_or((text, ""));
    out.push_str(&regex::escape(literal));
    *rest = behind.chars();
}

/// `[:alpha:]` inside a class, or just a bracket.
fn named_class(rest: &mut std::str::Chars<'_>, out: &mut String) {
    let text = rest.as_str();
    match text.strip_prefix(':').and_then(|text| text.split_once(":]")) {
        Some((name, behind)) if name.trim_start_matches('^').bytes().all(|byte| byte.is_ascii_alphabetic()) => {
            out.push_str(&format!("[:{name}:]"));
            *rest = behind.chars();
        }
        _ => out.push_str(r"\["),
    }
}
