//! Requests that own their buffer: they are waited for, dropped or forgotten while the operation is
//! under way.

use crate::blocked_operation::{Gate, ISSUER, KEEPER};
use crate::cases::kinds_of_memory::{Areas, KINDS};
use crate::exchange::effort;
use crate::leak::forget;
use crate::pattern;
use tasuki::onesided::{After, TransferRequest};
use tasuki::{Job, Request, Result};

/// What a case does with a request.
type Fate = fn(TransferRequest<Vec<u8>>);

const FATES: [(&str, Fate); 2] = [("dropped", drop::<TransferRequest<Vec<u8>>>), ("forgotten", forget)];

const LEN: usize = 5000;

/// Fills freed memory with other bytes, so that a buffer that was freed too early has wrong bytes.
fn reuse_freed_memory() {
    let blocks: Vec<Vec<u8>> = (0..50).map(|index| vec![0xdd; LEN - 64 + index]).collect();
    assert!(std::hint::black_box(&blocks).iter().all(|block| block.iter().all(|&byte| byte == 0xdd)));
}

/// A put whose request is dropped or forgotten before it starts still moves its bytes.
pub fn puts_outlive_their_request(job: &Job) -> Result<()> {
    for (round, (fate, end)) in FATES.into_iter().enumerate() {
        for kind in KINDS {
            let (gate, areas) = (Gate::new(job)?, Areas::new(job, 20 * LEN)?);
            gate.held(job, |gate| {
                let closed = gate.close(job)?;
                for part in 0..20 {
                    let bytes = pattern::bytes((round * 100 + part) as u64, LEN);
                    let to = areas.on(kind, KEEPER).at(part * LEN);
                    end(job.iput(to, bytes, After::Exact(closed))?);
                }
                reuse_freed_memory();
                gate.open(job)?;
                reuse_freed_memory();
                job.complete(
                    job.copy(areas.on(kind, ISSUER), areas.on(kind, ISSUER), 1, After::All)?.handle(),
                )
            })?;
            if job.rank() == KEEPER {
                for (part, bytes) in areas.image(kind)?.chunks(LEN).enumerate() {
                    pattern::check(
                        bytes,
                        (round * 100 + part) as u64,
                        &format!("{fate} put {part}, {kind:?}"),
                    );
                }
            }
        }
    }
    job.barrier()
}

/// A get whose request is dropped or forgotten before it starts does not write into freed memory.
pub fn gets_outlive_their_request(job: &Job) -> Result<()> {
    for (fate, end) in FATES {
        for kind in KINDS {
            let (gate, areas) = (Gate::new(job)?, Areas::new(job, LEN)?);
            if job.rank() == KEEPER {
                areas.set(job, kind, &pattern::bytes(5, LEN))?;
            }
            job.barrier()?;
            gate.held(job, |gate| {
                let closed = gate.close(job)?;
                for _ in 0..50 {
                    end(job.iget(areas.on(kind, KEEPER), vec![0; LEN], After::Exact(closed))?);
                }
                let blocks: Vec<Vec<u8>> = (0..50).map(|_| vec![0xdd; LEN]).collect();
                let mut kept = job.iget(areas.on(kind, KEEPER), vec![0; LEN], After::Exact(closed))?;
                gate.open(job)?;
                pattern::check(&kept.wait()?, 5, "a request that was kept");
                job.complete(
                    job.copy(areas.on(kind, ISSUER), areas.on(kind, ISSUER), 1, After::All)?.handle(),
                )?;
                let clean = blocks.iter().all(|block| block.iter().all(|&byte| byte == 0xdd));
                assert!(clean, "{fate}: a get wrote into memory that was freed");
                Ok(())
            })?;
        }
    }
    job.barrier()
}

/// Many long requests to an owner that makes no call. All end, whether they are kept, dropped or
/// forgotten.
pub fn slow_requests_may_be_left(job: &Job) -> Result<()> {
    const LONG: usize = 150_000;
    let areas = Areas::new(job, 8 * LONG)?;
    for round in 0..effort(job, 12, 2) as u64 {
        for kind in KINDS {
            let gate = Gate::new(job)?;
            gate.held(job, |gate| {
                let bytes = |part: u64| pattern::bytes(round * 8 + part, LONG);
                let mut kept = Vec::new();
                for part in 0..8 {
                    let to = areas.on(kind, KEEPER).at(part as usize * LONG);
                    let request = job.iput(to, bytes(part), After::Nothing)?;
                    match part % 3 {
                        0 => drop(request),
                        1 => forget(request),
                        _ => kept.push((part, request)),
                    }
                }
                reuse_freed_memory();
                gate.open(job)?;
                for (part, mut request) in kept {
                    assert!(request.wait()? == bytes(part), "put {part} returned other bytes");
                }
                job.complete(
                    job.copy(areas.on(kind, ISSUER), areas.on(kind, ISSUER), 1, After::All)?.handle(),
                )
            })?;
            if job.rank() == KEEPER {
                for (part, found) in areas.image(kind)?.chunks(LONG).enumerate() {
                    pattern::check(found, round * 8 + part as u64, &format!("put {part}, {kind:?}"));
                }
            }
            job.barrier()?;
        }
    }
    Ok(())
}

/// A request returns the vector that was passed in, with its capacity, and says when it is
/// finished.
pub fn requests_give_their_vector_back(job: &Job) -> Result<()> {
    let gate = Gate::new(job)?;
    let memory = job.alloc::<u32>(10)?;
    gate.held(job, |gate| {
        let closed = gate.close(job)?;
        let mut values = Vec::with_capacity(100);
        values.extend([1_u32, 2, 3]);
        let (start, mut request) =
            (values.as_ptr(), job.iput(memory.on(KEEPER), values, After::Exact(closed))?);
        assert!(!gate.is_tight(job) || !request.test());
        let mut empty = job.iput(memory.on(KEEPER), Vec::new(), After::Exact(closed))?;
        let mut got = job.iget(memory.on(KEEPER), vec![9; 4], After::Exact(request.handle()))?;
        gate.open(job)?;
        while !request.test() {
            crate::wait_until::stay_away(job);
        }
        let back = request.wait()?;
        assert_eq!((back.as_ptr(), back.capacity(), &back[..]), (start, 100, &[1, 2, 3][..]));
        assert_eq!((got.wait()?, empty.wait()?), (vec![1, 2, 3, 0], vec![]));
        Ok(())
    })
}
