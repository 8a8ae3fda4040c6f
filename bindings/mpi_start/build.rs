//! Gives the shared library its versioned name, under which programs find it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg=-Wl,-soname,libtasuki_mpi_start.so.0");
}
