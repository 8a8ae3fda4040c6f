//! Checks that adding `tasuki` to a program never calls a C compiler: no dependency can call one,
//! and it builds where every compiler fails.

use super::dependency_count::below_tasuki;
use crate::test::shell::Shell;
use crate::test::step::Outcome;
use anyhow::{Result, bail};
use cargo_metadata::{MetadataCommand, Package};

/// Crates that build scripts use to call compilers or to find native libraries.
const BUILDERS: &[&str] = &["autotools", "bindgen", "cc", "cmake", "meson", "pkg-config", "vcpkg"];
/// Variables that name compilers and builders.
const COMPILERS: &[&str] = &["CC", "CXX", "TARGET_CC", "TARGET_CXX", "HOST_CC", "HOST_CXX", "CMAKE"];
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(super) fn run(shell: &Shell) -> Result<Outcome> {
    let native = native_crates(shell)?;
    if !native.is_empty() {
        bail!("below tasuki: {}", native.join(", "));
    }
    let mut build = shell.cargo("build --package tasuki --all-features");
    build.env("CARGO_TARGET_DIR", shell.folder("no_c")?);
    shell.expect(build.envs(COMPILERS.iter().map(|name| (name, "/bin/false"))))?;
    Ok(Outcome::Passed("builds with CC=/bin/false".to_owned()))
}

/// The dependencies of `tasuki` that are bound to native code or may be.
fn native_crates(shell: &Shell) -> Result<Vec<String>> {
    let below = below_tasuki(shell, "--all-features ", TARGET)?;
    let of_target = ["--filter-platform".to_owned(), TARGET.to_owned()];
    let metadata = MetadataCommand::new().current_dir(shell.root()).other_options(of_target).exec()?;
    let is_below = |package: &&Package| below.contains(&format!("{} v{}", package.name, package.version));
    Ok(metadata.packages.iter().filter(is_below).filter_map(native_reason).collect())
}

fn native_reason(package: &Package) -> Option<String> {
    let name = package.name.as_str();
    if BUILDERS.contains(&name) {
        return Some(format!("{name} builds native code"));
    }
    package.links.as_ref().map(|library| format!("{name} links {library}"))
}
