//! `cargo xtask install`: the command, the libraries for C and Fortran, and what compilers and build systems need to
//! find them.

use anyhow::{Context, Result, bail};
use cargo_metadata::Metadata;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder below which bin, lib and include are filled; it is made if it does not exist
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
}

/// A library: what cargo builds, and what it is installed as.
struct Library {
    built: &'static str,
    name: &'static str,
    text: &'static str,
}

const LIBRARIES: &[Library] = &[
    Library { built: "tasuki_c", name: "tasuki", text: "FMPL over Tasuki" },
    Library { built: "tasuki_blacs", name: "tasuki_blacs", text: "BLACS and FMPL over Tasuki" },
    Library {
        built: "tasuki_mpi_start",
        name: "tasuki_mpi_start",
        text: "How programs of MPI start and end, over BLACS",
    },
];
/// The number of the interface, which is the end of the name under which programs find a library.
const INTERFACE: &str = "0";
/// Libraries of the system that the static ones need.
const SYSTEM: &str = "-lpthread -ldl -lm -lrt -lgcc_s";

pub(crate) fn run(workspace: &Metadata, options: &Options) -> Result<bool> {
    let (root, target) = (workspace.workspace_root.as_std_path(), workspace.target_directory.as_std_path());
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "-p", "tasuki-c", "-p", "tasuki-blacs"]);
    build.args(["-p", "tasuki-mpi-start", "-p", "tasuki-tools"]);
    succeed(build.current_dir(root))?;
    fs::create_dir_all(&options.prefix).with_context(|| options.prefix.display().to_string())?;
    let prefix = options.prefix.canonicalize()?;
    let version = version(workspace)?;
    let installed = Prefix { prefix, version };
    let built = target.join("release");
    installed.copy(&built.join("tasuki"), "bin/tasuki")?;
    for library in LIBRARIES {
        installed.library(&built, library)?;
    }
    for header in ["c/include/fmpl.h", "c/include/nicam.h", "c/include/acp.h", "blacs/include/tasuki_blacs.h"]
    {
        let header = root.join("bindings").join(header);
        let name = header.file_name().context("a header without a name")?.to_os_string();
        installed.copy(&header, &Path::new("include").join(name).to_string_lossy())?;
    }
    installed.fortran(&root.join("bindings/fortran/fmpl.f90"))?;
    println!("installed in {}", installed.prefix.display());
    println!(
        "  C:         cc $(PKG_CONFIG_PATH={0}/lib/pkgconfig pkg-config --cflags --libs tasuki) prog.c",
        installed.prefix.display()
    );
    println!("  ScaLAPACK: {}/bin/tasuki run -n 4 --blacs ./prog", installed.prefix.display());
    Ok(true)
}

/// The version of the libraries.
fn version(workspace: &Metadata) -> Result<String> {
    let package = workspace.packages.iter().find(|package| package.name == "tasuki-c");
    Ok(package.context("no package tasuki-c")?.version.to_string())
}

fn succeed(command: &mut Command) -> Result<()> {
    match command.status().with_context(|| format!("{command:?}"))? {
        status if status.success() => Ok(()),
        status => bail!("{command:?}: {status}"),
    }
}

struct Prefix {
    prefix: PathBuf,
    version: String,
}

impl Prefix {
    /// Returns the path of a file, whose folder exists then.
    fn place(&self, name: &str) -> Result<PathBuf> {
        let place = self.prefix.join(name);
        let folder = place.parent().context("a file without a folder")?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        Ok(place)
    }

    fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.place(to)?;
        // A program that runs keeps its file; the new one gets the name.
        if to.symlink_metadata().is_ok() {
            fs::remove_file(&to).with_context(|| to.display().to_string())?;
        }
        fs::copy(from, &to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
        Ok(())
    }

    fn write(&self, to: &str, text: &str) -> Result<()> {
        let to = self.place(to)?;
        fs::write(&to, text).with_context(|| to.display().to_string())
    }

    fn link(&self, to: &str, name: &str) -> Result<()> {
        let place = self.place(name)?;
        if place.symlink_metadata().is_ok() {
            fs::remove_file(&place)?;
        }
        symlink(to, &place).with_context(|| place.display().to_string())
    }

    fn library(&self, built: &Path, library: &Library) -> Result<()> {
        let &Library { built: from, name, text } = library;
        let (version, prefix) = (&self.version, self.prefix.display());
        self.copy(&built.join(format!("lib{from}.so")), &format!("lib/lib{name}.so.{version}"))?;
        self.link(&format!("lib{name}.so.{version}"), &format!("lib/lib{name}.so.{INTERFACE}"))?;
        self.link(&format!("lib{name}.so.{INTERFACE}"), &format!("lib/lib{name}.so"))?;
        let archive = built.join(format!("lib{from}.a"));
        if archive.exists() {
            self.copy(&archive, &format!("lib/lib{name}.a"))?;
        }
        let package = format!(
            "prefix={prefix}\nlibdir=${{prefix}}/lib\nincludedir=${{prefix}}/include\n\nName: {name}\nDescription: {text}\n\
             Version: {version}\nLibs: -L${{libdir}} -l{name} -Wl,-rpath,${{libdir}}\nLibs.private: {SYSTEM}\n\
             Cflags: -I${{includedir}}\n"
        );
        self.write(&format!("lib/pkgconfig/{name}.pc"), &package)?;
        let cmake = format!(
            "# {text}: find_package({name} CONFIG), then target_link_libraries(prog {name}::{name}).\n\
             get_filename_component(_prefix \"${{CMAKE_CURRENT_LIST_DIR}}/../../..\" ABSOLUTE)\n\
             if(NOT TARGET {name}::{name})\n  add_library({name}::{name} SHARED IMPORTED)\n  \
             set_target_properties({name}::{name} PROPERTIES\n    \
             IMPORTED_LOCATION \"${{_prefix}}/lib/lib{name}.so.{INTERFACE}\"\n    \
             IMPORTED_SONAME \"lib{name}.so.{INTERFACE}\"\n    \
             INTERFACE_INCLUDE_DIRECTORIES \"${{_prefix}}/include\")\nendif()\n\
             set({name}_VERSION {version})\n"
        );
        self.write(&format!("lib/cmake/{name}/{name}Config.cmake"), &cmake)
    }

    /// Installs the module of Fortran: its source, and compiled if there is a compiler.
    fn fortran(&self, source: &Path) -> Result<()> {
        self.copy(source, "include/fmpl.f90")?;
        let object = self.prefix.join("include/fmpl.o");
        let mut compile = Command::new("gfortran");
        compile.arg("-c").arg(source).arg("-o").arg(&object).current_dir(self.prefix.join("include"));
        match compile.status() {
            Ok(status) if status.success() => Ok(fs::remove_file(object)?), // it has no code
            Ok(status) => bail!("{compile:?}: {status}"),
            Err(_) => {
                println!("no gfortran: compile include/fmpl.f90 by your compiler to use the module fmpl");
                Ok(())
            }
        }
    }
}
