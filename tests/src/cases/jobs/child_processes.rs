//! Processes that a rank starts. A program that a rank starts runs and inherits nothing from the
//! job. A forked child of a rank cannot act as the rank.
#![allow(unsafe_code)]
//! Unsafe: a fork. The child makes calls of the library, which must refuse them, and ends
//! without returning.

use crate::exchange::next;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::os::unix::process::CommandExt;
use std::process::Command;
use tasuki::engine::Cause;
use tasuki::onesided::{After, AtomicOp, Registered};
use tasuki::{Array, GlobalPtr, Job, Request, Result, Signal};

/// A rank may start programs. They run, their output can be read, and they inherit no descriptor of
/// the library.
pub fn other_programs_inherit_nothing(job: &Job) -> Result<()> {
    let (table, _own) = (job.alloc::<u64>(1)?, job.register(vec![0_u64])?);
    job.put(table.on(next(job)), &[1])?;
    job.barrier()?;
    let listing = Command::new("ls").args(["-l", "/proc/self/fd"]).output().expect("ls runs");
    assert!(listing.status.success());
    let text = String::from_utf8_lossy(&listing.stdout).into_owned();
    let names = text.lines().filter_map(|line| line.split_once(" -> "));
    let (mut seen, mut ours) = (0, Vec::new());
    for (before, target) in names {
        let number = before.rsplit(' ').next().unwrap_or_default();
        seen += 1;
        // Other programs may leave files or pipes open for all their descendants, so only the kinds
        // of descriptors that the library opens are counted.
        let is_beyond_the_standard = number.parse::<u32>().is_ok_and(|number| number > 2);
        let kinds = ["socket:", "anon_inode:", "/memfd:"];
        if target.contains("tasuki") || is_beyond_the_standard && kinds.iter().any(|k| target.starts_with(k))
        {
            ours.push(target);
        }
    }
    assert!(seen >= 3, "the output of ls has an unknown form: {text}");
    assert!(ours.is_empty(), "inherited: {ours:?}");
    assert_eq!(table.get(0)?, 1);
    job.barrier()
}

/// Ends a forked child with `code`, without running anything that the parent registered for its
/// end.
fn become_another(code: i32) -> ! {
    let failed = Command::new("sh").args(["-c", &format!("exit {code}")]).exec();
    eprintln!("a forked child cannot become another program: {failed}");
    std::process::abort()
}

/// The job of the parent and objects in it, as a forked child inherits them.
struct Inherited<'job> {
    job: &'job Job,
    table: Array<u64>,
    signal: Signal<'job>,
    own: Registered<u64>,
}

/// In a forked child every call fails with an error that says so. No call waits, and none changes
/// anything of the rank. Dropping the inherited objects frees nothing of the rank.
pub fn calls_from_a_forked_child_fail(job: &Job) -> Result<()> {
    let (table, signal) = (job.alloc::<u64>(4)?, job.signal()?);
    let own = job.register(vec![7_u64])?;
    job.raise(signal.on(job.rank()), 5)?;
    job.barrier()?;
    let before = job.memory();
    let inherited = Inherited { job, table, signal, own };
    // SAFETY: the child calls only the library, exec, and the allocator, which the C library keeps
    // usable after a fork.
    let inherited = match unsafe { fork() }.expect("fork works") {
        ForkResult::Child => {
            let code = inherited.try_everything();
            drop(inherited);
            become_another(code)
        }
        ForkResult::Parent { child } => {
            let ended = waitpid(child, None).expect("the child can be waited for");
            assert!(matches!(ended, WaitStatus::Exited(_, 0)), "the child ended as {ended:?}");
            inherited
        }
    };
    assert_eq!(inherited.table.to_vec()?, [0; 4], "the child wrote into the rank's memory");
    assert_eq!((signal.value(), inherited.own.to_vec()), (5, vec![7]));
    let after = job.memory();
    assert_eq!((after.registrations, after.signals), (before.registrations, before.signals));
    let fresh = job.alloc_local::<u64>(4)?;
    assert_eq!(fresh.to_vec()?, [0; 4]);
    job.barrier()?; // all ranks have checked their memory
    job.put(inherited.table.on(next(job)), &[1])?;
    job.barrier()?;
    assert_eq!(inherited.table.get(0)?, 1);
    job.barrier()
}

impl Inherited<'_> {
    /// Makes every call; returns 0 if all were refused as they should be.
    fn try_everything(&self) -> i32 {
        let Inherited { job, table, signal, own } = self;
        let place = table.on(job.rank()).at(1);
        let short = std::time::Duration::from_millis(1);
        let outcomes: [(&str, Result<()>); 20] = [
            ("put", job.put(place, &[9])),
            ("get", job.get(place, &mut [0])),
            ("get_value", job.get_value(place).map(drop)),
            ("put_signal", job.put_signal(place, &[9], signal.on(job.rank()), 1)),
            ("raise", job.raise(signal.on(job.rank()), 1)),
            ("fetch_add", job.fetch_add(place, 1).map(drop)),
            ("store", job.store(place, 9)),
            ("copy", job.copy(own.pointer(), place, 1, After::Nothing).map(drop)),
            ("ichange", job.iatomic(place, AtomicOp::Add(1), GlobalPtr::NULL, After::Nothing).map(drop)),
            ("iput", job.iput(place, vec![9], After::Nothing).map(drop)),
            ("wait_timeout", signal.reaches(100).wait_timeout(short).map(drop)),
            ("wait_timeout, met", signal.reaches(5).wait_timeout(short).map(drop)),
            ("wait_at_least", signal.wait_at_least(100)),
            ("wait_at_least, met", signal.wait_at_least(5)),
            ("barrier", job.barrier()),
            ("alloc", job.alloc::<u64>(4).map(drop)),
            ("alloc_local", job.alloc_local::<u64>(4).and_then(|array| array.fill(9))),
            ("register", job.register(vec![9_u64]).map(drop)),
            ("array.set", table.set(2, 9)),
            ("array.get", table.get(0).map(drop)),
        ];
        let is_forked = |outcome: &Result<()>| matches!(outcome, Err(e) if *e.cause() == Cause::Forked);
        let wrong: Vec<_> = outcomes.iter().filter(|(_, outcome)| !is_forked(outcome)).collect();
        for (call, outcome) in &wrong {
            eprintln!("in a forked child {call} gives {outcome:?}");
        }
        i32::from(!wrong.is_empty())
    }
}
