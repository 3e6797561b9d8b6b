//! The command lines in the documentation and in the help texts are ones that the program accepts.

use super::Cli;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser};
use std::path::{Path, PathBuf};

/// README.md and docs/*.md with their text. A published crate comes without them.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).into_iter().flatten().flatten().map(|entry| entry.path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let pages = pages.chain([root.join("README.md")]);
    pages.filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?))).collect()
}

/// The words of a shell command: quotes are removed, and the command ends at `&&`, `|`, `#` or a remark in brackets.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), close) if open == close => quote = None,
            (None, space) if space.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let end = words.iter().position(|word| ["&&", "|", "#"].contains(&word.as_str()) || word.starts_with('('));
    words.truncate(end.unwrap_or(words.len()));
    words
}

/// The words of a command from `flowgrid` on, if the line is one. Variables may be set before it.
fn command(line: &str) -> Option<Vec<String>> {
    let words = words(line);
    let start = words.iter().position(|word| !word.contains('='))?;
    (words[start] == "flowgrid").then(|| words[start..].to_vec())
}

fn assert_parses(place: &str, words: &[String]) {
    match Cli::try_parse_from(words) {
        Err(error) if error.kind() != ErrorKind::DisplayHelp => panic!("{place}: {words:?}: {error}"),
        _ => {}
    }
}

#[test]
fn examples_in_help_texts_parse() {
    let mut count = 0;
    for subcommand in Cli::command().get_subcommands() {
        let help = subcommand.get_after_help().map(ToString::to_string).unwrap_or_default();
        for words in help.lines().filter_map(|line| command(line.trim())) {
            assert_parses(subcommand.get_name(), &words);
            count += 1;
        }
    }
    assert!(count >= 15, "only {count} examples were found");
}

/// The lines of the fenced blocks of a page, with the language of each block.
fn fenced(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut language = None;
    text.lines().filter_map(move |line| match line.trim_start().strip_prefix("```") {
        Some(opened) => {
            language = if language.is_none() { Some(opened.trim()) } else { None };
            None
        }
        None => Some((language?, line)),
    })
}

#[test]
fn shell_blocks_of_the_documentation_parse() {
    let pages = pages();
    let mut count = 0;
    for (path, text) in &pages {
        for (_, line) in fenced(text).filter(|(language, _)| *language == "sh") {
            if let Some(words) = command(line) {
                assert_parses(&path.display().to_string(), &words);
                count += 1;
            }
        }
    }
    assert!(pages.is_empty() || count > 0, "no command was found");
}

/// Whether a subcommand has a flag of this name.
fn has_flag(subcommand: &Command, name: &str) -> bool {
    name == "help"
        || subcommand.get_arguments().any(|flag| {
            flag.get_long() == Some(name) || flag.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        })
}

/// Commands in running text may leave out arguments, but their subcommands and flags exist.
#[test]
fn subcommands_and_flags_that_the_documentation_names_exist() {
    let program = Cli::command();
    let pages = pages();
    let mut count = 0;
    for (path, text) in &pages {
        let mut is_block = false;
        let prose = text.lines().filter(|line| {
            let fence = line.trim_start().starts_with("```");
            is_block ^= fence;
            !is_block && !fence
        });
        let prose = prose.collect::<Vec<_>>().join(" ");
        for words in prose.split('`').skip(1).step_by(2).filter_map(command) {
            let Some(name) = words.get(1).filter(|name| !name.starts_with(['-', '…'])) else { continue };
            let subcommand = program.find_subcommand(name);
            let subcommand = subcommand.unwrap_or_else(|| panic!("{}: {words:?}", path.display()));
            let nested = words.get(2).and_then(|name| subcommand.find_subcommand(name));
            let subcommand = nested.unwrap_or(subcommand);
            for flag in words.iter().filter_map(|word| word.strip_prefix("--")) {
                let flag = flag.split('=').next().unwrap_or(flag);
                assert!(has_flag(subcommand, flag), "{}: {words:?} has no flag --{flag}", path.display());
            }
            count += 1;
        }
    }
    assert!(pages.is_empty() || count > 5, "only {count} commands were found");
}
