//! The sources as rules see them: text files with paths relative to the root; Rust files parsed
//! once.

use anyhow::{Context, Result};
use proc_macro2::TokenStream;
use std::fmt;
use std::fs;
use std::path::Path;

/// A violation of a rule.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    pub(crate) file: String,
    /// Counts from 1; line 1 also stands for the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// One text file.
pub(crate) struct File {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    /// Present for Rust files.
    pub(crate) rust: Option<Rust>,
}

/// The parsed form of a Rust file.
pub(crate) struct Rust {
    pub(crate) syntax: syn::File,
    pub(crate) tokens: TokenStream,
}

/// What a rule's own test expects for sources without violations.
#[cfg(test)]
pub(crate) const NO_LINES: [usize; 0] = [];

/// All text files of the repository.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
}

/// Kinds of files that rules read; `run` is .ci/run.
const TEXT: &[&str] = &["rs", "toml", "md", "sh", "run", "c", "h"];

impl File {
    fn parse(path: String, text: String) -> Result<File> {
        let rust = if path.ends_with(".rs") { Some(Rust::parse(&text).context(path.clone())?) } else { None };
        Ok(File { path, text, rust })
    }

    /// Lines, numbered from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Returns true if the file lies below the folder; `folder` ends with `/`.
    pub(crate) fn below(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    pub(crate) fn finding(&self, line: usize, message: impl Into<String>) -> Finding {
        Finding { file: self.path.clone(), line, message: message.into() }
    }
}

impl Rust {
    fn parse(text: &str) -> Result<Rust> {
        let tokens = text.parse().map_err(|error| anyhow::anyhow!("not Rust: {error}"))?;
        Ok(Rust { syntax: syn::parse_file(text)?, tokens })
    }
}

impl Tree {
    /// Reads the files below `root`, except build output and hidden folders other than `.ci` and
    /// `.cargo`.
    pub(crate) fn read(root: &Path) -> Result<Tree> {
        let mut files = Vec::new();
        read_folder(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files })
    }

    /// The Rust files with their parsed forms.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &Rust)> {
        self.files.iter().filter_map(|file| file.rust.as_ref().map(|rust| (file, rust)))
    }

    /// The manifests of all packages, and the root's.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.path.rsplit('/').next() == Some("Cargo.toml"))
    }

    /// A finding if no Rust file is below the folder: a rule about an empty place guards nothing.
    pub(crate) fn vacant(&self, folder: &str) -> Option<Finding> {
        let empty = !self.rust().any(|(file, _)| file.below(folder));
        let message = format!("no source below {folder}, so this rule guards nothing: correct its path");
        empty.then(|| Finding { file: folder.to_owned(), line: 1, message })
    }

    /// A tree made of strings, for the rules' own tests.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let parse = |(path, text): &(&str, &str)| File::parse((*path).to_owned(), (*text).to_owned());
        Tree { files: files.iter().map(parse).collect::<Result<_>>().unwrap() }
    }
}

fn read_folder(root: &Path, relative: &str, files: &mut Vec<File>) -> Result<()> {
    for entry in fs::read_dir(root.join(relative))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
        if entry.file_type()?.is_dir() {
            if is_source_folder(&name) {
                read_folder(root, &path, files)?;
            }
        } else if TEXT.contains(&name.rsplit('.').next().unwrap_or_default()) {
            let text = fs::read_to_string(entry.path()).context(path.clone())?;
            files.push(File::parse(path, text)?);
        }
    }
    Ok(())
}

fn is_source_folder(name: &str) -> bool {
    name != "target" && (!name.starts_with('.') || [".ci", ".cargo"].contains(&name))
}
