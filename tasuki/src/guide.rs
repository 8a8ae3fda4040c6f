//! The pages of docs/guide, whose programs the doc tests compile and run. The programs of schedules.md draw pictures,
//! which is a feature of this crate, so the examples test them. A page may need a feature; all of the workspace's tests
//! have it.

macro_rules! pages {
    ($($page:ident: $file:literal $(with $feature:literal)?,)*) => {
        $(
            #[cfg(all(doctest $(, feature = $feature)?))]
            #[doc = include_str!(concat!("../../docs/guide/", $file))]
            mod $page {}
        )*

        /// The pages that are tested here.
        #[cfg(test)]
        const PAGES: &[&str] = &[$($file),*];
    };
}

pages! {
    mpi: "mpi.md",
    messages: "messages.md" with "serde",
    collectives: "collectives.md",
    plans: "plans.md",
    one_sided: "one-sided.md",
    handlers_and_commands: "handlers-and-commands.md",
    asynchronous: "async.md",
    running: "running.md",
    testing: "testing.md",
    troubleshooting: "troubleshooting.md",
}

#[cfg(test)]
mod tests {
    use super::PAGES;

    /// Pages that the crate of the examples tests.
    const TESTED_BY_EXAMPLES: &[&str] = &["schedules.md"];

    #[test]
    fn every_page_with_programs_is_tested() {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide");
        for entry in std::fs::read_dir(guide).expect("the guide is in the tree") {
            let path = entry.expect("a file of the guide").path();
            let (name, text) = (path.file_name().expect("a name"), std::fs::read_to_string(&path));
            let (name, text) = (name.to_str().expect("plain letters"), text.expect("a page is text"));
            let blocks: Vec<&str> = text.lines().filter(|line| line.starts_with("```rust")).collect();
            let is_tested = PAGES.contains(&name) || TESTED_BY_EXAMPLES.contains(&name);
            assert!(is_tested || blocks.is_empty(), "{name} has programs: add it to the list in guide.rs");
            let untested = blocks.iter().find(|block| block.contains("ignore"));
            assert_eq!(untested, None, "{name}: a program that is not even compiled");
        }
    }
}
