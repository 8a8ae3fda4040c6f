//! Message limits: at most so many messages under way to a rank.

use crate::exchange::effort;
use std::time::Duration;
use tasuki::engine::Cause;
use tasuki::message::{MessageLimit, MessageLimitAddress};
use tasuki::{ErrorKind, Job, Rank, Result, Slot};

const SHORT: Duration = Duration::from_millis(5);
const FIRST: Rank = Rank(0);

/// Sends the address of rank 0's limit to all.
fn shared(job: &Job, limit: &Option<MessageLimit>) -> Result<MessageLimitAddress> {
    let mut address = [limit.as_ref().map_or_else(MessageLimitAddress::default, MessageLimit::address)];
    job.world().bcast(&mut address, FIRST)?;
    assert_eq!(address[0].rank(), FIRST);
    Ok(address[0])
}

fn on_first(job: &Job, messages: usize) -> Result<Option<MessageLimit>> {
    (job.rank() == FIRST).then(|| job.message_limit(messages)).transpose()
}

/// No more messages than the limit are under way, counted in the receiver's memory; and all come.
pub fn f_a_limit_bounds_the_messages_under_way(job: &Job) -> Result<()> {
    bounded(job, &[FIRST])?;
    bounded(job, &job.spread_ranks(2))
}

fn bounded(job: &Job, homes: &[Rank]) -> Result<()> {
    const LIMIT: usize = 5; // no power of two
    let (world, count) = (job.world(), effort(job, 60, 20));
    let limit = (job.rank() == FIRST).then(|| job.message_limit_with(LIMIT, homes)).transpose()?;
    let under_way = job.alloc::<u64>(1)?;
    let counter = under_way.on(FIRST);
    let address = shared(job, &limit)?;
    if let Some(limit) = limit {
        for received in 0..count * (job.size() - 1) {
            let (most, _) = world.recv_any_vec::<u64>(Slot(0))?;
            assert!(most[0] < LIMIT as u64, "{} messages were under way before one", most[0]);
            if received % 10 == 9 {
                job.compute(Duration::from_micros(200)); // senders wait
            }
            job.fetch_add(counter, 1_u64.wrapping_neg())?;
            limit.release(1)?;
        }
        let error = limit.release(1).expect_err("all were released");
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        job.barrier() // dropped after all senders are
    } else {
        let mut permits = job.open_message_limit(address)?;
        let mut sent = 0;
        while sent < count {
            let many = if sent % 5 == 1 && sent + 2 <= count { 2 } else { 1 };
            match sent % 3 {
                0 if many == 1 && permits.try_acquire()? => {}
                _ => permits.acquire_many(many)?,
            }
            for _ in 0..many {
                let before = job.fetch_add(counter, 1)?;
                world.send_any(&[before; 9], FIRST, Slot(0))?;
            }
            sent += many;
        }
        drop(permits);
        job.barrier()
    }
}

/// Permits of all shares are there for each rank, and no more than the limit; the receiver releases them to any share.
pub fn f_permits_are_borrowed(job: &Job) -> Result<()> {
    let homes: Vec<Rank> = job.ranks().rev().collect();
    let limit =
        (job.rank() == FIRST).then(|| job.message_limit_with(2 * job.size() + 1, &homes)).transpose()?;
    let address = shared(job, &limit)?;
    let mut permits = job.within(SHORT).open_message_limit(address)?;
    for rank in job.ranks() {
        if job.rank() == rank {
            for _ in 0..2 * job.size() + 1 {
                assert!(permits.try_acquire()?, "each rank gets all");
            }
            assert!(!permits.try_acquire()?);
            assert!(permits.acquire().expect_err("none is released").is_timeout());
            let error = permits.acquire_many(4).expect_err("the largest share has 3");
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        }
        job.barrier()?;
        if let Some(limit) = &limit {
            limit.release(1)?;
            limit.release(2 * job.size())?;
            let error = limit.release(1).expect_err("all were released");
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        }
        job.barrier()?;
    }
    if job.rank() == FIRST {
        for senseless in [&[][..], &[FIRST; 2], &[Rank(job.size())]] {
            assert!(job.message_limit_with(1, senseless).is_err());
        }
        for _ in 0..200 {
            drop(job.message_limit_with(5, &homes)?); // more than there are places
        }
    }
    drop(permits);
    job.barrier()
}

/// Calls that give up get no permit, hold up nobody, and let no more messages come than the limit says.
pub fn f_senders_that_give_up_keep_no_permit(job: &Job) -> Result<()> {
    let limit = on_first(job, 2)?;
    let address = shared(job, &limit)?;
    let mut permits = job.within(SHORT).open_message_limit(address)?;
    if job.rank() == FIRST {
        permits.acquire_many(2)?;
    }
    job.barrier()?;
    assert!(!permits.try_acquire()?);
    for count in [1, 2] {
        let error = permits.acquire_many(count).expect_err("nothing is released");
        assert!(
            error.is_timeout() && error.to_string().contains("acquire(message limit of rank 0)"),
            "{error}"
        );
    }
    let error = permits.acquire_many(3).expect_err("the limit is 2");
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(!permits.try_acquire()?);
    job.barrier()?;
    if let Some(limit) = &limit {
        limit.release(2)?;
    }
    job.barrier()?; // whose waits consume the tickets that were given up, on all ranks
    if job.rank() == FIRST {
        let mut permits = job.within(Duration::from_secs(20)).open_message_limit(address)?;
        permits.acquire_many(2)?;
        assert!(!permits.try_acquire()?, "the limit is 2 still");
    }
    job.barrier()
}

/// A limit that is dropped ends the waits of senders, and is no longer opened; its place is used again.
pub fn f_limits_are_dropped(job: &Job) -> Result<()> {
    let limit = on_first(job, 1)?;
    let address = shared(job, &limit)?;
    let mut permits = job.open_message_limit(address)?;
    if job.rank() == FIRST {
        permits.acquire()?;
    }
    job.barrier()?;
    drop(limit);
    let is_closed = |error: tasuki::Error| {
        assert!(matches!(error.cause(), Cause::QueueClosed { peer: FIRST }), "{error}");
    };
    permits.acquire().map_err(is_closed).expect_err("it is dropped, or will be");
    job.barrier()?;
    permits.try_acquire().map_err(is_closed).expect_err("it was dropped");
    drop(permits);
    job.open_message_limit(address).map(drop).map_err(is_closed).expect_err("it was dropped");
    job.barrier()?;
    if job.rank() == FIRST {
        for _ in 0..200 {
            job.message_limit(5)?; // more than there are places
        }
        for senseless in [0, usize::MAX] {
            let error = job.message_limit(senseless).map(drop).expect_err("no such limit");
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        }
    }
    job.barrier()
}

/// A receiver cannot release permits that nobody has, also while senders wait for some.
pub fn f_no_more_is_released_than_senders_have(job: &Job) -> Result<()> {
    let limit = on_first(job, 2)?;
    let address = shared(job, &limit)?;
    let Some(limit) = limit else {
        let mut permits = job.open_message_limit(address)?;
        permits.acquire_many(2)?; // one after the other
        return job.barrier();
    };
    for _ in 1..job.size() {
        let error = loop {
            match limit.release(3) {
                Err(error) if error.to_string().contains("permits for 2") => break error,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Misuse, "{error}"),
                Ok(()) => panic!("more was released than the limit is"),
            }
            job.compute(Duration::from_micros(20));
        };
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        limit.release(2)?;
    }
    job.barrier()
}
