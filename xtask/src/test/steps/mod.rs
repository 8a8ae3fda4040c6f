//! The steps, in the order in which they run: those that fail fastest come first.

use super::step::Step;

mod asan;
mod c_free;
mod c_programs;
mod cargo_commands;
mod demo;
mod dependency_count;
mod examples;
mod loom;
mod miri;
mod mpiexec;
mod rust_version;
mod scalapack;
mod scalapack_examples;
mod tests;
mod tidy;

/// All steps.
pub(super) const ALL: &[Step] = &[
    Step::quick("rustfmt", cargo_commands::rustfmt),
    Step::quick("tidy", tidy::tidy),
    Step::quick("clippy", cargo_commands::clippy),
    Step::quick("rust version", rust_version::run),
    Step::quick("crates below", dependency_count::run),
    Step::quick("tests", tests::all),
    Step::quick("doc tests", tests::in_documentation),
    Step::slow("documentation", cargo_commands::documentation),
    Step::slow("no C compiler", c_free::run),
    Step::slow("examples", examples::run),
    Step::slow("ScaLAPACK", scalapack::run),
    Step::slow("C and Fortran", c_programs::run),
    Step::slow("demo", demo::run),
    Step::slow("mpiexec", mpiexec::run),
    Step::slow("loom models", loom::models),
    Step::slow("loom planted faults", loom::planted_faults),
    Step::slow("asan tests", asan::tests),
    Step::slow("asan planted faults", asan::planted_faults),
    Step::optional("miri", miri::run),
];
