//! The paths that the code of a Rust file names, with the module that names each, also in macros.
//! Comments, strings and whatever only tests compile do not count.

use crate::tidy::tokens::line_of;
use proc_macro2::{Delimiter, Group, Ident, TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::UseTree;

/// A module's path below the crate's root, or that of an item.
pub(super) type ModulePath = Vec<String>;

/// A path of a `use` or of an expression, as it is written.
pub(super) struct NamedPath {
    pub(super) parts: Vec<String>,
    pub(super) line: usize,
}

/// What one module names, that of a file or one inside a file.
#[derive(Default)]
pub(super) struct Names {
    pub(super) paths: Vec<NamedPath>,
    /// The names that `use` brings into the module, and the path that each stands for.
    pub(super) imports: BTreeMap<String, Vec<String>>,
}

/// What the modules of a file name.
#[derive(Default)]
pub(super) struct FileNames {
    pub(super) modules: BTreeMap<ModulePath, Names>,
    /// The modules that only tests compile and that have their own files.
    pub(super) test_modules: Vec<ModulePath>,
}

impl FileNames {
    /// `module` is the path of the file's own module.
    pub(super) fn of(tokens: &TokenStream, module: &ModulePath) -> FileNames {
        let mut names = FileNames::default();
        names.walk(tokens.clone(), module);
        names
    }

    fn walk(&mut self, tokens: TokenStream, module: &ModulePath) {
        self.modules.entry(module.clone()).or_default();
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += match token {
                TokenTree::Group(group) if is_test_attribute(&tokens[..at], group) => {
                    1 + self.skip_item(&tokens[at + 1..], module)
                }
                TokenTree::Group(group) => {
                    self.walk_group(&tokens[..at], group, module);
                    1
                }
                TokenTree::Ident(ident) if ident == "use" => {
                    1 + self.take_use(&tokens[at + 1..], line_of(ident), module)
                }
                TokenTree::Ident(ident) => self.take_path(&tokens[..at], ident, &tokens[at + 1..], module),
                _ => 1,
            };
        }
    }

    fn walk_group(&mut self, before: &[TokenTree], group: &Group, module: &ModulePath) {
        match before {
            // `pub(in crate::a)` says who may use an item, and uses nothing.
            [.., word] if is(word, "pub") && group.delimiter() == Delimiter::Parenthesis => {}
            [.., word, TokenTree::Ident(name)]
                if is(word, "mod") && group.delimiter() == Delimiter::Brace =>
            {
                self.walk(group.stream(), &below(module, name));
            }
            _ => self.walk(group.stream(), module),
        }
    }

    /// Returns the number of tokens of the item that follows the attribute of a test.
    fn skip_item(&mut self, rest: &[TokenTree], module: &ModulePath) -> usize {
        let is_use = rest.iter().find_map(|token| match token {
            TokenTree::Ident(ident) if ident != "pub" => Some(ident == "use"),
            _ => None,
        });
        let ends = |token: &TokenTree| match token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && is_use != Some(true),
            token => is_punct(token, ';'),
        };
        let length = rest.iter().position(ends).map_or(rest.len(), |end| end + 1);
        if let [.., word, TokenTree::Ident(name), end] = &rest[..length]
            && is(word, "mod")
            && is_punct(end, ';')
        {
            self.test_modules.push(below(module, name));
        }
        length
    }

    /// Returns the number of tokens of the `use` after its first word.
    fn take_use(&mut self, rest: &[TokenTree], line: usize, module: &ModulePath) -> usize {
        let Some(length) = rest.iter().position(|token| is_punct(token, ';')) else { return 0 };
        let Ok(tree) = syn::parse2::<UseTree>(rest[..length].iter().cloned().collect()) else { return 0 };
        let names = self.modules.entry(module.clone()).or_default();
        names.take_use_tree(&tree, &[], line);
        length
    }

    /// Returns the number of tokens of the path that begins with this word.
    fn take_path(
        &mut self,
        before: &[TokenTree],
        first: &Ident,
        rest: &[TokenTree],
        module: &ModulePath,
    ) -> usize {
        let mut parts = vec![first.to_string()];
        let mut rest = rest;
        while let [first, second, TokenTree::Ident(part), tail @ ..] = rest
            && is_punct(first, ':')
            && is_punct(second, ':')
        {
            parts.push(part.to_string());
            rest = tail;
        }
        let length = 3 * parts.len() - 2;
        let is_later_part =
            matches!(before, [.., first, second] if is_punct(first, ':') && is_punct(second, ':'));
        if parts.len() > 1 && !is_later_part {
            let names = self.modules.entry(module.clone()).or_default();
            names.paths.push(NamedPath { parts, line: line_of(first) });
        }
        length
    }
}

impl Names {
    fn take_use_tree(&mut self, tree: &UseTree, prefix: &[String], line: usize) {
        let with = |ident: &Ident| [prefix, &[ident.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.take_use_tree(&path.tree, &with(&path.ident), line),
            UseTree::Group(group) => {
                group.items.iter().for_each(|item| self.take_use_tree(item, prefix, line));
            }
            UseTree::Name(name) if name.ident == "self" => {
                let own_name = prefix.last().cloned().unwrap_or_default();
                self.import(own_name, prefix.to_vec(), line);
            }
            UseTree::Name(name) => self.import(name.ident.to_string(), with(&name.ident), line),
            UseTree::Rename(rename) => {
                self.import(rename.rename.to_string(), with(&rename.ident), line);
            }
            UseTree::Glob(_) => self.paths.push(NamedPath { parts: prefix.to_vec(), line }),
        }
    }

    fn import(&mut self, name: String, parts: Vec<String>, line: usize) {
        self.imports.insert(name, parts.clone());
        self.paths.push(NamedPath { parts, line });
    }
}

fn below(module: &ModulePath, name: &Ident) -> ModulePath {
    [module.as_slice(), &[name.to_string()]].concat()
}

/// Returns true for the brackets of `#[test]`, `#[cfg(test)]` and `#[cfg(all(test, ..))]`.
fn is_test_attribute(before: &[TokenTree], group: &Group) -> bool {
    let is_attribute =
        group.delimiter() == Delimiter::Bracket && matches!(before, [.., hash] if is_punct(hash, '#'));
    is_attribute && demands_test(group.stream())
}

fn demands_test(condition: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = condition.into_iter().collect();
    tokens.iter().enumerate().any(|(at, token)| match token {
        TokenTree::Ident(ident) => {
            ident == "test" && tokens.get(at + 1).is_none_or(|next| is_punct(next, ','))
        }
        TokenTree::Group(group) => {
            at > 0
                && (is(&tokens[at - 1], "cfg") || is(&tokens[at - 1], "all"))
                && demands_test(group.stream())
        }
        _ => false,
    })
}

fn is(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_punct(token: &TokenTree, letter: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(code: &str) -> Vec<String> {
        let names = FileNames::of(&code.parse().unwrap(), &vec!["a".to_owned()]);
        let paths = names.modules.iter().flat_map(|(module, names)| {
            let line = move |path: &NamedPath| format!("{}: {}", module.join("::"), path.parts.join("::"));
            names.paths.iter().map(line)
        });
        paths.collect()
    }

    #[test]
    fn uses_and_inline_paths_are_named_with_their_module() {
        assert_eq!(
            named("use crate::b::{self, C, d::E as F};"),
            ["a: crate::b", "a: crate::b::C", "a: crate::b::d::E"]
        );
        assert_eq!(
            named("fn f() -> crate::b::C { g!(super::h::<u8>()) }"),
            ["a: crate::b::C", "a: super::h"]
        );
        assert_eq!(named("mod inner { use super::B; }"), ["a::inner: super::B"]);
    }

    #[test]
    fn tests_comments_strings_and_visibilities_are_not_named() {
        assert_eq!(named("// crate::b::C\n/// [crate::b::C]\nconst A: &str = \"crate::b::C\";"), [""; 0]);
        assert_eq!(named("pub(in crate::b) struct A;"), [""; 0]);
        assert_eq!(named("#[cfg(test)]\nmod tests { use crate::b::C; }"), [""; 0]);
        assert_eq!(
            named("#[cfg(all(test, not(loom)))]\nuse crate::b::{C, D};\nuse crate::e;"),
            ["a: crate::e"]
        );
        assert_eq!(named("#[cfg(not(test))]\nuse crate::e;"), ["a: crate::e"]);
    }

    #[test]
    fn a_test_module_with_its_own_file_is_remembered() {
        let names = FileNames::of(&"#[cfg(test)]\nmod tests;".parse().unwrap(), &vec!["a".to_owned()]);
        assert_eq!(names.test_modules, [["a", "tests"]]);
    }
}
