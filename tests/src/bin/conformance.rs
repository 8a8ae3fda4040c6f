//! Runs one case as a program: `conformance NAME`, started in any way in which Tasuki programs are
//! started.
//!
//! Without a name it lists all cases. `conformance --list A D1` prints a line `NAME LEAST MOST` for
//! each case of the families A and D1: its name and its numbers of ranks. `cargo xtask test
//! mpiexec` reads these lines.

use std::process::ExitCode;
use tasuki::{Error, Job, Result};
use tasuki_tests::watchdog::Watchdog;
use tasuki_tests::{Body, Case, failing_jobs, table};

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        list();
        return ExitCode::from(2);
    };
    if name == "--list" {
        let families: Vec<String> = std::env::args().skip(2).collect();
        list_families(&families);
        return ExitCode::SUCCESS;
    }
    let _watched = Watchdog::over(name.clone());
    let handlers = table::find(&name).map(Case::handlers);
    let handlers = handlers
        .or_else(|| failing_jobs::find(&name).map(failing_jobs::Failing::handlers))
        .unwrap_or_default();
    tasuki::main_with(&handlers, |job: &Job| -> Result<()> { body(&name)?(job) })
}

fn body(name: &str) -> Result<Body> {
    let case = table::find(name).map(|case| case.body);
    let body = case.or_else(|| failing_jobs::find(name).map(|failing| failing.body));
    body.ok_or_else(|| Error::argument(format!("there is no case {name}; without a name all are listed")))
}

fn list_families(families: &[String]) {
    for case in table::CASES.iter().filter(|case| families.iter().any(|family| case.is_of(family))) {
        println!("{} {} {}", case.name, case.ranks.start(), case.ranks.end());
    }
}

fn list() {
    for case in table::CASES {
        let (least, most) = (case.ranks.start(), case.ranks.end());
        eprintln!("{:12} {:55} {least} to {most} ranks, {:?}", case.id, case.name, case.ways);
    }
    for failing in failing_jobs::FAILING {
        eprintln!("{:12} {:55} {} ranks, {:?}", "must fail", failing.name, failing.ranks, failing.ways);
    }
}
