//! Limits: each kind of call that waits ends when its time limit is reached, and what it leaves behind is as promised.

use crate::exchange::is_simulated;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};
use std::thread::ThreadId;
use std::time::Duration;
use tasuki::collective::{Product, quiesce};
use tasuki::message::set_send_buffer;
use tasuki::onesided::PayloadSignal;
use tasuki::{
    Blocks, Communicator, ErrorKind, Job, Member, Rank, Request, Result, Signal, Slot, Sum, Uneven, wait_all,
    wait_any,
};

const SHORT: Duration = Duration::from_millis(2);
const LONG: Duration = Duration::from_secs(3600);

/// The error of a call that has reached its limit. It names its rank and the call.
fn late<T>(job: &Job, outcome: Result<T>, call: &str) {
    let error = outcome.err().unwrap_or_else(|| panic!("{call}: no other rank has come"));
    assert_eq!((error.kind(), error.rank()), (ErrorKind::TimedOut, Some(job.rank())), "{call}: {error}");
    assert!(
        error.to_string().contains(call) && error.to_string().contains("timed out after"),
        "{call}: {error}"
    );
}

/// Tells all ranks that this one has reached a point, and waits for a number of them, without any collective call.
struct Points<'job>(&'job Job, Signal<'job>);

impl Points<'_> {
    fn reach(&self) -> Result<()> {
        self.0.ranks().try_for_each(|rank| self.0.raise(self.1.on(rank), 1))
    }

    /// Waits until ranks have reached points `count` times.
    fn wait(&self, count: usize) -> Result<()> {
        self.1.wait_at_least(count as u64)
    }
}

/// Sends and receives of all lengths end, by the limit of their communicator or the default of the rank. A message that
/// was not received goes to the next receive, and a send that has ended was not sent and reads its values no more.
pub fn limits_of_messages(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let (points, peer) = (Points(job, job.signal()?), Rank(job.size() - 1));
    let alone = job.world().split(job.rank().index())?;
    let mut met = 0;
    for (len, by_default) in
        [8, 48, 49, 5000, 200_000].into_iter().flat_map(|len| [(len, false), (len, true)])
    {
        let limited = if by_default { job.clone() } else { job.within(SHORT) };
        let (world, mut into) = (limited.world(), vec![0_u8; len]);
        if job.rank() == 0 {
            job.set_timeout(by_default.then_some(SHORT));
            quiesce(&alone)?; // the calls after a collective call do not share a deadline either
            let mut values = vec![1_u8; len];
            late(job, world.send(&values, peer, Slot(3)), &format!("send(slot 3 to rank {peer})"));
            values.fill(99);
            late(job, world.recv(&mut into, peer, Slot(4)), &format!("recv(slot 4 from rank {peer})"));
            late(job, world.recv(&mut into, peer, Slot::ANY), "recv(any slot");
            late(job, world.sendrecv(&values, peer, &mut into, peer, Slot(5)), "slot 5");
            late(job, world.scope(|s| s.recv(&mut into, peer, Slot(6)).map(drop)), "slot 6");
            late(job, world.scope(|s| s.send(&values, peer, Slot(6)).map(drop)), "slot 6");
            assert!(into.iter().all(|&byte| byte == 0), "nothing was received");
            // Of two limits, the one that ends first counts.
            let scope = |outer, inner| {
                job.world()
                    .within(outer)
                    .scope(|_| job.world().within(inner).recv(&mut [0_u8], peer, Slot(7)))
            };
            late(job, scope(LONG, SHORT), "slot 7");
            late(job, scope(SHORT, LONG), "slot 7");
            job.set_timeout(by_default.then_some(LONG)); // no call has the deadline of an earlier one
            points.reach()?;
            let world = if by_default { job.world().clone() } else { job.world().within(LONG) };
            world.send(&vec![7_u8; len], peer, Slot(3))?;
            for slot in [Slot(4), Slot(5), Slot(6)] {
                world.recv(&mut into, peer, slot)?;
                assert!(into.iter().all(|&byte| byte == slot.0 as u8), "{len} on slot {slot:?}");
            }
            job.set_timeout(None);
            points.reach()?;
        } else if job.rank() == peer {
            points.wait(met + 1)?;
            job.compute(2 * SHORT); // longer than a short limit
            let world = job.world();
            world.recv(&mut into, Rank(0), Slot(3))?;
            assert!(into.iter().all(|&byte| byte == 7), "{len}: a send that has ended by time was sent");
            for slot in [4, 5, 6] {
                world.send(&vec![slot as u8; len], Rank(0), Slot(slot))?;
            }
        }
        met += 2;
        points.wait(met)?;
    }
    job.barrier()
}

/// A wait for a request, a signal or operations that reaches the default limit changes nothing.
pub fn limits_of_waits_for_requests(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    let (points, peer, next) = (Points(job, job.signal()?), Rank(job.size() - 1), job.rank_after(1));
    let (world, never, payload) = (job.world(), job.signal()?, PayloadSignal::<u64>::new(job)?);
    let table = job.alloc::<u64>(64)?;
    let mut plan = world.allreduce_init::<u64>(20, Sum)?;
    let mut chunked = world.allreduce_init::<u64>(16, Sum)?.chunked()?;
    if job.rank() != peer {
        job.set_timeout(Some(SHORT));
        let mut short = world.irecv(vec![0_u64], peer, Slot(0))?;
        let mut long = world.irecv(vec![0_u64; 1000], peer, Slot(1))?;
        let mut send = world.isend(vec![5_u64; 1000], peer, Slot(2))?;
        late(job, short.wait(), "irecv(slot 0");
        late(job, long.wait(), "irecv(slot 1");
        late(job, send.wait(), "isend(slot 2");
        late(job, wait_any([&mut short, &mut long]), "irecv");
        late(job, wait_all((&mut short, &mut long)), "irecv");
        late(job, never.wait_at_least(1), "signal");
        late(job, never.reaches(1).wait(), "signal");
        late(job, payload.reader(Some(peer)).wait(), "payload");
        let mut sum = world.iallreduce(vec![1_u64; 2000], Sum)?;
        late(job, sum.wait(), "allreduce");
        let mut barrier = world.fuzzy_barrier()?;
        late(job, barrier.wait(), "fuzzy_barrier");
        plan.start()?;
        late(job, plan.wait(), "allreduce");
        chunked.start(vec![2; 50])?;
        late(job, chunked.wait(), "allreduce");
        assert_eq!(job.iget(table.on(next), vec![9; 3], tasuki::onesided::After::Nothing)?.wait()?, [0; 3]);
        points.reach()?;
        job.set_timeout(None);
        assert_eq!((short.wait()?.0, long.wait()?.0), (vec![3], vec![4; 1000]));
        assert_eq!(send.wait()?, vec![5; 1000]);
        assert_eq!(sum.wait()?, vec![job.size() as u64; 2000]);
        barrier.wait()?;
        plan.wait()?;
        assert_eq!(chunked.wait()?, vec![2 * job.size() as u64; 50]);
    } else {
        points.wait(job.size() - 1)?;
        for rank in (0..job.size() - 1).map(Rank) {
            world.send(&3_u64, rank, Slot(0))?;
            world.send(&[4_u64; 1000], rank, Slot(1))?;
            assert_eq!(world.irecv(vec![0_u64; 1000], rank, Slot(2))?.wait()?.0, [5; 1000]);
        }
        let sum = world.iallreduce(vec![1_u64; 2000], Sum)?;
        let barrier = world.fuzzy_barrier()?;
        plan.start()?;
        chunked.start(vec![2; 50])?;
        wait_all((sum, barrier, &mut plan, &mut chunked))?;
    }
    job.barrier()
}

/// A collective call on a communicator with a limit. Its result, if it has one, must be right.
fn collective(part: &Communicator, which: usize, len: usize) -> Result<()> {
    let (me, size, root) = (part.rank().index() as u64, part.size() as u64, Member(part.size() - 1));
    let (mine, sum_to) = (vec![me + 1; len], |count: u64| count * (count + 1) / 2);
    let per_member = |value: &dyn Fn(u64) -> u64| -> Vec<u64> {
        (0..size).flat_map(|member| std::iter::repeat_n(value(member), len)).collect()
    };
    let (to_all, members) = (per_member(&|to| 100 * me + to), per_member(&|member| member + 1));
    match which {
        0 => part.barrier(),
        1 => part.allreduce(&mine, Sum).map(|got| assert_eq!(got, vec![sum_to(size); len])),
        2 => {
            part.allreduce(&mine, Product).map(|got| assert_eq!(got, vec![(1..=size).product::<u64>(); len]))
        }
        3 => {
            let mut values = mine;
            part.bcast(&mut values, root).map(|()| assert_eq!(values, vec![size; len]))
        }
        4 => part.allgather(&mine).map(|got| assert_eq!(got, members)),
        5 => part.alltoall(&to_all).map(|got| assert_eq!(got, per_member(&|from| 100 * from + me))),
        6 => part.scatter(&members, len, root).map(|got| assert_eq!(got, mine)),
        7 => {
            let sum = 100 * sum_to(size - 1) + size * me;
            part.reduce_scatter(&to_all, Sum).map(|got| assert_eq!(got, vec![sum; len]))
        }
        8 => part.scan(&mine, Sum).map(|got| assert_eq!(got, vec![sum_to(me + 1); len])),
        9 => part.exscan(&mine, Sum).map(|got| assert_eq!(got, (me > 0).then(|| vec![sum_to(me); len]))),
        10 => part.allgather(Uneven(&mine)).map(|got| assert_eq!(got.values(), members)),
        11 => {
            let blocks = Blocks::new(to_all, &vec![len; part.size()])?;
            part.alltoall(&blocks).map(|got| assert_eq!(got.values(), per_member(&|from| 100 * from + me)))
        }
        12 => part.dup().map(drop),
        13 => part.split(0).map(drop),
        14 => part.allreduce_init::<u64>(len, Sum).map(drop),
        _ => quiesce(part),
    }
}

/// A member does not come to a collective call. The others get an error when the limit is reached, or when they
/// learn of the failure. When that member comes, it gets an error, or the right result. All later calls fail, on all
/// members. A communicator that is created again works.
pub fn limits_of_collective_calls(job: &Job) -> Result<()> {
    let (points, last) = (Points(job, job.signal()?), job.size() - 1);
    let mut met = 0;
    let lengths: &[usize] = if is_simulated(job) { &[1, 3000] } else { &[1, 3000, 100_000] };
    let calls = (0..16).flat_map(|which| lengths.iter().map(move |&len| (which, len)));
    for (which, len) in calls.filter(|&(which, len)| len == 1 || (1..12).contains(&which)) {
        for warm in [0, 5] {
            let part = job.world().dup()?;
            for _ in 0..if (1..10).contains(&which) { warm } else { 0 } {
                collective(&part, which, len)?;
            }
            job.barrier()?; // all have ended the calls before
            let what = format!("call {which} of {len} after {warm}");
            // Members need nothing from later ones in a scan, and everything from the root.
            let absent = if matches!(which, 8 | 9) { 0 } else { last };
            if job.rank() == absent {
                points.wait(met + last)?; // all others have ended
            }
            match collective(&part.within(SHORT), which, len) {
                // What it needs from the others may have come before they have given up; then its result is right.
                Ok(()) => assert_eq!(job.rank(), absent, "{what}"),
                Err(error) => {
                    let is_named = match error.kind() {
                        ErrorKind::TimedOut => true,
                        // Members that cannot read each other's records do not know who has failed.
                        ErrorKind::PeerFailed => match error.peer() {
                            Some(peer) => peer != job.rank(),
                            None => error.to_string().contains("has failed on another member"),
                        },
                        _ => false,
                    };
                    assert!(is_named, "{what}: {error}");
                }
            }
            points.reach()?;
            met += job.size();
            points.wait(met)?;
            let later = [
                part.barrier(),
                part.allreduce(&1_u64, Sum).map(drop),
                part.bcast(&mut [0_u64; 3], Member(0)),
                part.scan(&1_u64, Sum).map(drop),
                part.iallreduce(vec![1_u64], Sum).and_then(|mut request| request.wait()).map(drop),
                part.fuzzy_barrier().and_then(|mut barrier| barrier.wait()),
                part.allreduce_init::<u64>(1, Sum).map(drop),
                quiesce(&part),
                part.dup().map(drop),
            ];
            for later in later {
                let error = later.expect_err(&what);
                assert!(error.to_string().contains("failed"), "{what}: {error}");
            }
            let again = part.recreate()?;
            assert_eq!(again.allreduce(&1_u64, Sum)?, job.size() as u64, "{what}");
        }
    }
    job.barrier()
}

/// A barrier or an allocation of the job that ends by its limit ends all later ones, on all ranks.
pub fn limits_of_calls_of_the_job(job: &Job) -> Result<()> {
    let (points, last) = (Points(job, job.signal()?), job.size() - 1);
    let world = job.world().dup()?;
    world.barrier()?; // nobody is in a call of the world any more, which fails below
    if job.rank() == last {
        points.wait(last)?; // all others have ended
    }
    let ended = job.within(SHORT).alloc::<u64>(100);
    let text = ended.expect_err("one rank did not come").to_string();
    assert!(text.contains("alloc"), "{text}");
    points.reach()?;
    points.wait(job.size())?;
    for later in [job.barrier(), job.alloc::<u64>(100).map(drop), job.world().barrier()] {
        let error = later.expect_err("a rank has given up a call of the job");
        assert_eq!(error.kind(), ErrorKind::PeerFailed, "{error}");
    }
    assert_eq!(world.allreduce(&1_u64, Sum)?, job.size() as u64, "another communicator goes on");
    assert_eq!(job.world().recreate()?.allreduce(&1_u64, Sum)?, job.size() as u64);
    job.barrier().expect_err("the ranks do not agree about the number of barriers any more");
    world.barrier()
}

/// A waker of the program that receives a message, as an executor does that polls tasks in their wakers.
struct ReceivesInWaker {
    job: Job,
    thread: ThreadId,
    /// Whether it ran on that thread, and what it got.
    got: Mutex<Option<(bool, Result<u64>)>>,
}

impl Wake for ReceivesInWaker {
    fn wake(self: Arc<Self>) {
        let (mut value, from) = ([0_u64], Rank(self.job.size() - 1));
        let received = self.job.world().recv(&mut value, from, Slot(8));
        let is_same = std::thread::current().id() == self.thread;
        *self.got.lock().expect("no thread panics") = Some((is_same, received.map(|_| value[0])));
    }
}

/// The limit of a call does not hold for a task that the call wakes on its way, nor for the continuation of other
/// calls.
pub fn limits_hold_for_their_own_calls(job: &Job) -> Result<()> {
    let (peer, world) = (Rank(job.size() - 1), job.world());
    // Either this thread or the waker thread finds the message; it must have been this one once.
    let (mut round, mut is_done) = (0, false);
    while !is_done && round < 200 {
        round += 1;
        if job.rank() == peer {
            std::thread::sleep(SHORT / 2); // the others wait
            for to in (0..job.size() - 1).map(Rank) {
                world.send(&vec![1_u64; 1000], to, Slot(7))?;
            }
            std::thread::sleep(2 * SHORT);
            for to in (0..job.size() - 1).map(Rank) {
                world.send(&5_u64, to, Slot(8))?;
            }
        } else {
            let got = Mutex::default();
            let waker =
                Arc::new(ReceivesInWaker { job: job.clone(), thread: std::thread::current().id(), got });
            let mut request = world.irecv(vec![0_u64; 1000], peer, Slot(7))?;
            let by_default = round % 2 == 0;
            job.set_timeout(by_default.then_some(SHORT));
            let is_pending =
                request.poll_finished(&mut Context::from_waker(&waker.clone().into())).is_pending();
            let limited = if by_default { job.clone() } else { job.within(SHORT) };
            while is_pending && waker.got.lock().expect("no thread panics").is_none() {
                late(job, limited.world().recv(&mut [0_u64], peer, Slot(9)), "recv(slot 9");
            }
            job.set_timeout(None);
            request.wait()?;
            match waker.got.lock().expect("no thread panics").take() {
                // A call of the waker thread is a call of its own, which has the default limit if that is set.
                Some((false, Err(error))) if by_default && error.is_timeout() => {
                    world.recv(&mut [0_u64], peer, Slot(8))?;
                }
                Some((is_same, received)) => {
                    assert_eq!(received?, 5, "the limit of another call");
                    is_done = is_same;
                }
                None => drop(world.recv(&mut [0_u64], peer, Slot(8))?), // the message was there at once
            }
        }
        is_done = world.allreduce(&u64::from(is_done || job.rank() == peer), Product)? == 1;
    }
    assert!(is_done, "no call has woken the task");
    job.barrier()
}
