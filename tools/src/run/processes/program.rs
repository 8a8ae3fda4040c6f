//! Finds the program before any process is started, so that a misspelt name gives one message only.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tasuki_command::misuse;
use tasuki_core::bootstrap::did_you_mean::nearest;

/// The file of the program `name`: the path itself if it contains a slash, otherwise the first
/// match in the folders of `path`.
pub(crate) fn find(name: &OsStr, path: Option<&OsStr>) -> anyhow::Result<PathBuf> {
    if name.is_empty() {
        return Err(misuse("the program's name is empty"));
    }
    if name.as_encoded_bytes().contains(&b'/') {
        return named(Path::new(name));
    }
    let folders: Vec<PathBuf> = path.map(std::env::split_paths).into_iter().flatten().collect();
    let files = folders.iter().map(|folder| folder.join(name));
    files.into_iter().find(|file| is_program(file)).ok_or_else(|| unknown(name, &folders))
}

fn named(file: &Path) -> anyhow::Result<PathBuf> {
    if is_program(file) {
        return Ok(file.to_path_buf());
    }
    let shown = file.display();
    if file.is_dir() {
        return Err(misuse(format!("{shown} is a folder, not a program")));
    }
    if file.exists() {
        return Err(misuse(format!("{shown} may not be executed (`chmod +x {shown}` if it is a program)")));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let near =
        file.file_name().and_then(|name| suggestion(name, std::slice::from_ref(&folder.to_path_buf())));
    let near = near.map(|name| folder.join(name));
    Err(misuse(match near {
        Some(near) => format!("there is no program {shown}; did you mean {}?", near.display()),
        None => format!("there is no program {shown}"),
    }))
}

fn unknown(name: &OsStr, folders: &[PathBuf]) -> anyhow::Error {
    let shown = name.display();
    if is_program(&Path::new(".").join(name)) {
        return misuse(format!("there is no program {shown} in PATH; did you mean ./{shown}?"));
    }
    misuse(match suggestion(name, folders) {
        Some(near) => format!("there is no program {shown} in PATH; did you mean {near}?"),
        None => format!("there is no program {shown} in PATH"),
    })
}

/// The program in `folders` whose name is nearest.
fn suggestion(name: &OsStr, folders: &[PathBuf]) -> Option<String> {
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let near_in_length = |other: &OsString| other.len().abs_diff(name.len()) <= name.len() / 3 + 1;
    let files = entries.filter(|entry| near_in_length(&entry.file_name()) && is_program(&entry.path()));
    let names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    nearest(name.to_str()?, names.iter().map(String::as_str)).map(str::to_string)
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(name: &str, path: &str) -> String {
        find(OsStr::new(name), Some(OsStr::new(path))).unwrap_err().to_string()
    }

    #[test]
    fn programs_are_found_by_path_and_by_name() {
        assert_eq!(find(OsStr::new("/bin/sh"), None).unwrap(), Path::new("/bin/sh"));
        assert_eq!(find(OsStr::new("sh"), Some(OsStr::new("/nowhere:/bin"))).unwrap(), Path::new("/bin/sh"));
    }

    #[test]
    fn an_unknown_program_is_reported_with_the_nearest_name() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path();
        fs::write(folder.join("heat"), "").unwrap();
        let path = folder.to_str().unwrap();
        let file = |name: &str| folder.join(name).to_str().unwrap().to_string();
        assert!(fault(&file("heat"), path).contains("may not be executed"));
        fs::set_permissions(folder.join("heat"), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(fault(&file("haet"), path).ends_with(&format!("did you mean {}?", file("heat"))));
        assert!(fault("heta", path).ends_with("in PATH; did you mean heat?"));
        assert!(fault(path, path).contains("is a folder"));
        assert_eq!(fault("entirely-else", path), "there is no program entirely-else in PATH");
        assert!(fault("", path).contains("empty"));
    }
}
