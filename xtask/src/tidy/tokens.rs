//! Identifiers in a stream of tokens, including those inside macros, which a parsed syntax tree
//! does not show.

use proc_macro2::{Ident, TokenStream, TokenTree};

/// Every identifier at any depth.
pub(super) fn identifiers(tokens: &TokenStream) -> Vec<Ident> {
    let mut found = Vec::new();
    collect(tokens.clone(), &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<Ident>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => found.push(ident),
            TokenTree::Group(group) => collect(group.stream(), found),
            _ => {}
        }
    }
}

/// The line of a token, from 1.
pub(super) fn line_of(ident: &Ident) -> usize {
    ident.span().start().line
}
