//! The rank that this process is: started by the first interface that is initialised, ended by the last that is
//! finalised, or when the process ends.
//!
//! A thread of the library runs [`tasuki::main_with`], whose program is to wait for that end. So joining, leaving, and the
//! report of a failure are those of every Tasuki program. The threads of the C program make their calls on a handle of
//! the job; any thread of a rank may make any call.

use crate::status::Failure;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use tasuki::{Error, Handlers, Job};

/// How a rank's program ends.
type End = Result<(), Error>;

/// What ends the rank, and the process that it belongs to: a forked child may not end it.
struct Running {
    users: usize,
    end: Sender<End>,
    thread: JoinHandle<Result<(), Error>>,
    pid: u32,
}

/// `None` before the rank has started, and after its end.
static RUNNING: Mutex<Option<Running>> = Mutex::new(None);
/// The job of the process. A process is a rank once: it cannot leave its job and join again.
static JOB: OnceLock<Job> = OnceLock::new();

fn running() -> std::sync::MutexGuard<'static, Option<Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the job, if this process has joined one.
#[inline(always)]
pub fn job() -> Option<&'static Job> {
    JOB.get()
}

/// Starts the rank unless it runs. Each success needs an [`end`].
pub fn start() -> Result<&'static Job, Failure> {
    start_with(Handlers::new())
}

/// Starts the rank with handlers unless it runs: a rank that runs keeps those that it was started with. Each success
/// needs an [`end`].
pub fn start_with(handlers: Handlers) -> Result<&'static Job, Failure> {
    let mut running = running();
    if let (Some(running), Some(job)) = (&mut *running, job()) {
        running.users += 1;
        return Ok(job);
    }
    if job().is_some() {
        return Err(Failure::not_running("this process has left its job, and cannot join one again"));
    }
    let (joined, from_thread) = channel();
    let (end, of_program) = channel::<End>();
    let of_program = Mutex::new(Some(of_program));
    let program = move |job: &Job| {
        // Threads of a program that are ranks would share its global variables.
        let end = of_program.lock().unwrap_or_else(PoisonError::into_inner).take();
        let end = end.ok_or_else(|| {
            Error::program(
                "a program in C or Fortran is one rank: start it without --threads and --fabric sim",
            )
        })?;
        let _ = joined.send(job.clone()); // fails only if the starting thread has gone
        end.recv().unwrap_or(Ok(()))
    };
    let name = std::thread::Builder::new().name("tasuki-rank".into());
    let thread = name.spawn(move || tasuki::bindings::run(&handlers, program));
    let thread = thread.map_err(|error| Error::program(format!("no thread could be started: {error}")))?;
    let Ok(joined) = from_thread.recv() else {
        return Err(match thread.join() {
            Ok(Err(error)) => error.into(),
            _ => Failure::not_running("the rank could not join its job"),
        });
    };
    let job = JOB.get_or_init(|| joined);
    *running = Some(Running { users: 1, end, thread, pid: std::process::id() });
    if !tasuki::bindings::at_exit(end_at_exit) {
        eprintln!("tasuki: the library cannot leave the job at the end of the process: call finalize");
    }
    Ok(job)
}

/// Ends one use of the rank; the last one leaves the job.
pub fn end() -> Result<(), Failure> {
    let mut running = running();
    match &mut *running {
        None => Err(Failure::not_running("it was not initialised, or was finalised before")),
        Some(Running { users: 2.., .. }) => {
            running.as_mut().into_iter().for_each(|running| running.users -= 1);
            Ok(())
        }
        Some(_) => running.take().map_or(Ok(()), |running| leave(running, Ok(()))),
    }
}

fn leave(running: Running, how: End) -> Result<(), Failure> {
    let _ = running.end.send(how); // fails only if the program has ended
    match running.thread.join() {
        Ok(outcome) => outcome.map_err(Failure::from),
        Err(_) => Err(Failure::not_running("the thread of the rank has panicked")),
    }
}

/// Leaves the job if the program has not.
extern "C" fn end_at_exit() {
    let _ = std::panic::catch_unwind(|| {
        // A thread that holds the lock ends the rank now, or starts it.
        let Ok(mut running) = RUNNING.try_lock() else { return };
        if running.as_ref().is_some_and(|running| running.pid == std::process::id())
            && let Some(running) = running.take()
        {
            let _ = leave(running, Ok(())); // the rank's thread has printed an error
        }
    });
}
