//! Each rank prints its number and the number of ranks.

use tasuki::prelude::*;

fn app(job: &Job) -> tasuki::Result<()> {
    println!("rank {} of {}", job.rank(), job.size());
    Ok(())
}

fn main() -> std::process::ExitCode {
    tasuki::main(app)
}
