//! The steps, in the order in which they run: those that fail fastest come first.

use super::step::Step;

mod asan;
mod c_free;
mod crates_below;
mod demo;
mod examples;
mod house;
mod loom;
mod miri;
mod mpiexec;
mod one_command;
mod rust_version;
mod tests;

/// All steps.
pub(super) const ALL: &[Step] = &[
    Step::quick("rustfmt", one_command::rustfmt),
    Step::quick("tidy", house::tidy),
    Step::quick("clippy", one_command::clippy),
    Step::quick("rust version", rust_version::run),
    Step::quick("crates below", crates_below::run),
    Step::quick("tests", tests::all),
    Step::quick("doc tests", tests::in_documentation),
    Step::slow("documentation", one_command::documentation),
    Step::slow("no C compiler", c_free::run),
    Step::slow("examples", examples::run),
    Step::slow("demo", demo::run),
    Step::slow("mpiexec", mpiexec::run),
    Step::slow("loom models", loom::models),
    Step::slow("loom planted faults", loom::planted_faults),
    Step::slow("asan tests", asan::tests),
    Step::slow("asan planted faults", asan::planted_faults),
    Step::optional("miri", miri::run),
];
