//! Rules about names, comments and documents.

pub(crate) mod commented_out;
pub(crate) mod doc_paths;
pub(crate) mod heads;
pub(crate) mod length;
pub(crate) mod names;
pub(crate) mod retired_words;
pub(crate) mod unfinished_marks;
