//! A plan that a file holds, in place of a collective.

use tasuki_command::misuse;
use tasuki_schedule::Schedule;
use tasuki_schedule::json;

/// Whether that names a file: what is there and called as one is none of the operations.
pub(crate) fn is_file(what: &str) -> bool {
    what.ends_with(".json") || what.contains('/')
}

/// Reads it. None of these options was given along: the file says all that they would.
pub(crate) fn read<'o>(what: &str, given: impl Iterator<Item = &'o str>) -> anyhow::Result<Schedule> {
    let mut given = given;
    if let Some(option) = given.next() {
        return Err(misuse(format!("{option} is said by the file: leave it out")));
    }
    let wrong = |why: &dyn std::fmt::Display| misuse(format!("{what}: {why}"));
    let text = std::fs::read_to_string(what).map_err(|error| wrong(&error))?;
    json::parse(&text).map_err(|error| wrong(&error))
}
