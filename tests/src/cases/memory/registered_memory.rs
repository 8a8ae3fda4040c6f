//! Registered memory, which peers access by a kernel copy or by a request to the owner.

use crate::exchange::{effort, exchange_all, next, previous};
use crate::pattern;
use tasuki::message::send_from;
use tasuki::onesided::{After, Registered, TransferRequest};
use tasuki::{GlobalPtr, Job, Rank, Request, Result, Slot};

/// Sizes around those of the buffers of requests.
const SIZES: [usize; 10] = [1, 4095, 4096, 4097, 65_535, 65_536, 65_537, 131_072, 200_001, 1 << 20];

/// Puts and gets of every size access the right bytes and none beside them. The owner finds the
/// bytes after it has unregistered the memory.
pub fn puts_and_gets_of_every_size(job: &Job) -> Result<()> {
    for (round, &size) in SIZES.iter().enumerate() {
        let mine = job.register(vec![pattern::GUARD; size + 100])?;
        let theirs = exchange_all(job, mine.pointer())?[next(job).index()];
        let round = round as u64 + job.rank().0 as u64 * 100;
        job.put(theirs.at(50), &pattern::bytes(round, size))?;
        let mut back = vec![0; size];
        job.get(theirs.at(50), &mut back)?;
        pattern::check(&back, round, &format!("{size} bytes read back"));
        job.barrier()?;
        let found = mine.unregister();
        let from = previous(job).0 as u64 * 100 + round % 100;
        pattern::check(&found[50..50 + size], from, &format!("{size} bytes put"));
        assert!(found[..50].iter().chain(&found[50 + size..]).all(|&byte| byte == pattern::GUARD));
        job.barrier()?;
    }
    Ok(())
}

/// All ranks make requests to one owner at once, each more than the owner can hold. All are served.
pub fn many_requests_at_one_owner(job: &Job) -> Result<()> {
    const LEN: usize = 3000;
    const EACH: usize = 90;
    let owner = Rank(0);
    for round in 0..effort(job, 10, 2) as u64 {
        let mine = job.register(vec![0_u8; LEN * EACH * job.size()])?;
        let target = exchange_all(job, mine.pointer())?[owner.index()];
        let place = |index: usize| target.at((job.rank().index() * EACH + index) * LEN);
        let seed = |rank: u64, index: usize| round * 3 + rank * 1000 + index as u64;
        let me = job.rank().0 as u64;
        let puts: Result<Vec<TransferRequest<Vec<u8>>>> = (0..EACH)
            .map(|index| job.iput(place(index), pattern::bytes(seed(me, index), LEN), After::Nothing))
            .collect();
        for mut put in puts? {
            put.wait()?;
        }
        job.barrier()?;
        if job.rank() == owner {
            for (number, part) in mine.to_vec().chunks(LEN).enumerate() {
                let (rank, index) = (number / EACH, number % EACH);
                pattern::check(part, seed(rank as u64, index), &format!("put {index} of rank {rank}"));
            }
        }
        job.barrier()?;
    }
    Ok(())
}

/// When a rank sees the signal of a put, the bytes are there, also if the put is a request to the owner.
pub fn signals_follow_their_bytes(job: &Job) -> Result<()> {
    let mine = job.register(vec![0_u8; 200_000])?;
    let theirs = exchange_all(job, mine.pointer())?[next(job).index()];
    let (arrived, taken) = (job.signal()?, job.signal()?);
    for round in 1..=effort(job, 60, 5) as u64 {
        let size = [10, 65_536, 200_000][round as usize % 3];
        job.put_signal(theirs, &pattern::bytes(round, size), arrived.on(next(job)), 1)?;
        arrived.wait_at_least(round)?;
        pattern::check(&mine.to_vec()[..size], round, "bytes of the signal");
        job.raise(taken.on(previous(job)), 1)?;
        taken.wait_at_least(round)?;
    }
    Ok(())
}

/// Memory may be registered for a short time and by many ranks at once, and any rank may pass its
/// address on.
pub fn addresses_travel(job: &Job) -> Result<()> {
    let mail = job.alloc::<GlobalPtr<u64>>(1)?;
    let posted = job.signal()?;
    for round in 1..=effort(job, 200, 10) as u64 {
        let mine: Registered<u64> = job.register(vec![round, 0])?;
        job.put_signal(mail.on(next(job)), &[mine.pointer()], posted.on(next(job)), 1)?;
        posted.wait_at_least(2 * round - 1)?;
        let second_hand = mail.get(0)?;
        job.barrier()?;
        job.put_signal(mail.on(next(job)), &[second_hand], posted.on(next(job)), 1)?;
        posted.wait_at_least(2 * round)?;
        let origin = mail.get(0)?;
        let two_before = (job.rank().0 + 2 * job.size() - 2) % job.size();
        assert_eq!(origin.rank(), Rank(two_before));
        job.put(origin.at(1), &[job.get_value(origin)? + job.rank().0 as u64])?;
        job.barrier()?;
        let two_after = (job.rank().0 + 2) % job.size();
        assert_eq!(mine.unregister(), [round, round + two_after as u64]);
    }
    Ok(())
}

/// Messages of every size between registered memory, and between registered memory and other
/// memory.
pub fn messages_between_registered_memory(job: &Job) -> Result<()> {
    let world = job.world();
    let len = *SIZES.iter().max().expect("there are sizes");
    let (from, into) = (job.register(vec![0_u8; len])?, job.register(vec![pattern::GUARD; len])?);
    for (round, &size) in (1..).zip(&SIZES) {
        let seed = |rank: Rank| round * 100 + rank.0 as u64;
        job.put(from.pointer(), &pattern::bytes(seed(job.rank()), size))?;
        for slot in [Slot(0), Slot(1)] {
            into_registered(job, &into, size, slot, |to| match slot {
                Slot(0) => send_from(world, from.pointer().slice(size), to, slot),
                _ => world.send(&pattern::bytes(seed(job.rank()), size), to, slot),
            })?;
            let found = into.to_vec();
            pattern::check(&found[..size], seed(previous(job)), &format!("{size} bytes on {slot:?}"));
            assert!(
                found[size..].iter().all(|&byte| byte == pattern::GUARD),
                "bytes behind {size} bytes were changed"
            );
            job.barrier()?;
        }
    }
    Ok(())
}

/// Receives from the rank before this one while `send` sends to the rank after it.
fn into_registered(
    job: &Job,
    into: &Registered<u8>,
    size: usize,
    slot: Slot,
    send: impl Fn(Rank) -> Result<()>,
) -> Result<()> {
    let world = job.world();
    world.scope(|scope| {
        let mut receive = scope.recv_into(into.pointer().slice(size), previous(job), slot)?;
        send(next(job))?;
        receive.wait().map(drop)
    })
}
