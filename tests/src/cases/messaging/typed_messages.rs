//! Types of messages: a receive of another type than that of its message is an error on both sides, and bytes match any
//! type.

use crate::exchange::{next, previous};
use crate::expected_error::disagreed;
use std::time::Duration;
use tasuki::bytemuck;
use tasuki::message::set_send_buffer;
use tasuki::{Error, Job, Pod, Request, Result, Slot, Zeroable};

/// A message in the slot's line, one of one chunk, one of several chunks, and one longer than a ring.
const LENGTHS: [usize; 4] = [1, 7, 600, 90_000];

/// How messages are sent and received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Blocking,
    Request,
    Scope,
    /// In job memory, which the sender writes to.
    JobMemory,
}

const FORMS: [Form; 4] = [Form::Blocking, Form::Request, Form::Scope, Form::JobMemory];

/// Sends values to the next rank and receives values from the one before, in either order. Returns both outcomes, and
/// what was received.
fn exchange<S: Pod + Send + Sync, R: Pod + Send + Sync>(
    job: &Job,
    form: Form,
    values: &[S],
    named: Slot,
    send_first: bool,
) -> Result<(Result<()>, Result<usize>, Vec<R>)> {
    let (world, to, from, slot) = (job.world(), next(job), previous(job), Slot(7));
    let room = size_of_val(values).div_ceil(size_of::<R>());
    let mut got = vec![R::zeroed(); room];
    match form {
        Form::Blocking if send_first => {
            let mut sending = world.isend(values.to_vec(), to, slot)?;
            job.barrier()?;
            let received = world.recv(&mut got, from, named).map(|received| received.count);
            Ok((sending.wait().map(drop), received, got))
        }
        Form::Blocking | Form::Request => {
            let mut sending = send_first.then(|| world.isend(values.to_vec(), to, slot)).transpose()?;
            let mut receiving = world.irecv(got, from, named)?;
            job.barrier()?;
            let sent = match &mut sending {
                Some(sending) => sending.wait().map(drop),
                None if form == Form::Blocking => world.send(values, to, slot),
                None => world.isend(values.to_vec(), to, slot)?.wait().map(drop),
            };
            match receiving.wait() {
                Ok((got, received)) => Ok((sent, Ok(received.count), got)),
                Err(error) => Ok((sent, Err(error), receiving.into_values().unwrap_or_default())),
            }
        }
        Form::Scope => {
            let (mut sent, mut received) = (Ok(()), Ok(0));
            let ended = world.scope(|s| {
                if send_first {
                    let mut send = s.send(values, to, slot)?;
                    job.barrier()?;
                    received = s.recv(&mut got, from, named)?.wait().map(|received| received.count);
                    sent = send.wait();
                } else {
                    let mut receive = s.recv(&mut got, from, named)?;
                    job.barrier()?;
                    sent = s.send(values, to, slot)?.wait();
                    received = receive.wait().map(|received| received.count);
                }
                Ok(())
            });
            ended.map(|()| (sent, received, got))
        }
        Form::JobMemory => {
            let (own, into) = (job.alloc_local::<S>(values.len())?, job.alloc_local::<R>(room)?);
            own.write(0, values)?;
            let (mut sent, mut received) = (Ok(()), Ok(0));
            world.scope(|s| {
                let mut receive = if send_first {
                    None
                } else {
                    Some(s.recv_into(into.pointer().slice(room), from, named)?)
                };
                job.barrier()?;
                let mut send = s.send_from(own.pointer().slice(values.len()), to, slot)?;
                if receive.is_none() {
                    job.compute(Duration::from_micros(20));
                    receive = Some(s.recv_into(into.pointer().slice(room), from, named)?);
                }
                sent = send.wait();
                received = receive.expect("it was begun").wait().map(|received| received.count);
                Ok(())
            })?;
            Ok((sent, received, into.to_vec()?))
        }
    }
}

/// A message of one type meets a receive of another: both ranks get errors that name both types. The slot goes on.
pub fn types_that_differ_are_errors_on_both_sides(job: &Job) -> Result<()> {
    set_send_buffer(job, 0, None)?; // sends wait for their receives
    for len in LENGTHS {
        for form in FORMS {
            for (named, send_first) in
                [(Slot(7), false), (Slot(7), true), (Slot::ANY, false), (Slot::ANY, true)]
            {
                let texts = ["of type i32, but the receive wants f64", "bytes (u8), which match any type"];
                let (sent, received, got) =
                    exchange::<i32, f64>(job, form, &vec![7; 2 * len], named, send_first)?;
                disagreed(job, sent, &texts);
                disagreed(job, received, &texts);
                assert!(got.iter().all(|&value| value == 0.0), "nothing is written");
                job.barrier()?;
                let values: Vec<f64> = (0..len).map(|value| value as f64).collect();
                let (sent, received, got) = exchange::<f64, f64>(job, form, &values, named, send_first)?;
                sent?;
                assert_eq!((received?, got), (len, values));
                job.barrier()?;
            }
        }
    }
    Ok(())
}

/// Bytes match values of any type, in both directions, and numbers of the machine's word those of 64 bits.
pub fn bytes_match_any_type(job: &Job) -> Result<()> {
    fn all<S: Pod + Send + Sync, R: Pod + Send + Sync + PartialEq>(job: &Job, value: S) -> Result<()> {
        for len in LENGTHS {
            for form in FORMS {
                for (named, send_first) in
                    [(Slot(7), false), (Slot(7), true), (Slot::ANY, false), (Slot::ANY, true)]
                {
                    let values = vec![value; len * 8 / size_of::<S>()];
                    let (sent, received, got) = exchange::<S, R>(job, form, &values, named, send_first)?;
                    sent?;
                    assert_eq!(received?, size_of_val(&values[..]) / size_of::<R>());
                    let bytes: &[u8] = bytemuck::cast_slice(&got);
                    assert!(bytes == bytemuck::cast_slice::<S, u8>(&values), "{form:?}, {len}");
                    job.barrier()?;
                }
            }
        }
        Ok(())
    }
    all::<u8, f64>(job, 3)?;
    all::<f64, u8>(job, 1.5)?;
    all::<Point<0>, u8>(job, Point([1, 2]))?;
    all::<usize, u64>(job, 5)?;
    all::<i64, isize>(job, -5)
}

/// Types of one size.
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
#[bytemuck(crate = "tasuki::bytemuck")]
#[repr(transparent)]
struct Point<const N: usize>([u32; 2]);

/// A message of a type of the program meets a receive of another one. The receiver always gets an error, and the sender
/// gets one if it can tell the types apart. The slot goes on.
pub fn types_of_the_program_differ(job: &Job) -> Result<()> {
    fn differ<const S: usize, const R: usize>(job: &Job) -> Result<bool> {
        let mut all_errors = true;
        for len in [1, 5, 7, 600, 90_000] {
            for form in FORMS {
                let values = vec![Point::<S>([1, len as u32]); len];
                let (sent, received, got) =
                    exchange::<Point<S>, Point<R>>(job, form, &values, Slot(7), false)?;
                let [own, other] = ["receive wants ", "Point<"];
                disagreed(
                    job,
                    received,
                    &["values of another type of the program", own, other, &format!("{R}>")],
                );
                assert!(got.iter().all(|&point| point == Point([0, 0])), "nothing is written");
                all_errors &= sent.is_err();
                if sent.is_err() {
                    disagreed(job, sent, &["wants another type of the program", "Point<", &format!("{S}>")]);
                }
                job.barrier()?;
                let (sent, received, got) =
                    exchange::<Point<R>, Point<R>>(job, form, &[Point([8, 9])], Slot(7), true)?;
                sent?;
                assert_eq!((received?, got), (1, vec![Point([8, 9])]));
                job.barrier()?;
            }
        }
        Ok(all_errors)
    }
    // The sender confuses one pair in 30.
    let both = [
        differ::<0, 1>(job)?,
        differ::<0, 2>(job)?,
        differ::<0, 3>(job)?,
        differ::<1, 2>(job)?,
        differ::<2, 3>(job)?,
        differ::<3, 4>(job)?,
        differ::<4, 5>(job)?,
        differ::<5, 6>(job)?,
        differ::<6, 7>(job)?,
        differ::<7, 8>(job)?,
    ];
    let confused = both.iter().filter(|&&both| !both).count();
    assert!(2 * confused < both.len(), "the sender has confused {confused} of {} pairs", both.len());
    Ok(())
}

/// A message that met a dropped receive, or was buffered, keeps its type.
pub fn waiting_messages_keep_their_type(job: &Job) -> Result<()> {
    let (world, to, from) = (job.world(), next(job), previous(job));
    for len in [4, 60, 70_000] {
        for named in [Slot(3), Slot::ANY] {
            let mut sending = world.isend(vec![2.5_f64; len], to, Slot(3))?;
            let mut dropped = world.irecv(vec![0.0_f64; len], from, named)?;
            while !dropped.test() {
                job.compute(Duration::from_micros(1));
            }
            drop(dropped);
            sending.wait()?;
            disagreed(
                job,
                world.recv(&mut vec![0_u64; len], from, named),
                &["of type f64, but the receive wants u64"],
            );
            let mut got = vec![0.0_f64; len];
            world.recv(&mut got, from, named)?;
            assert_eq!(got, vec![2.5; len]);
            job.barrier()?;
        }
    }
    Ok(())
}

/// The types of a receive that was withdrawn do not matter: the message is for the next receive.
pub fn withdrawn_receives_compare_no_types(job: &Job) -> Result<()> {
    let (world, to, from) = (job.world(), next(job), previous(job));
    for len in [1, 12, 13, 5000] {
        for named in [Slot(4), Slot::ANY] {
            let into = job.alloc_local::<f64>(len)?;
            let cancelled: Result<()> = world.scope(|s| {
                s.recv_into(into.pointer().slice(len), from, named)?;
                Err(Error::argument("cancelled"))
            });
            assert!(cancelled.is_err());
            job.barrier()?;
            let mut sending = world.isend(vec![9_i32; len], to, Slot(4))?;
            job.compute(Duration::from_micros(20));
            let mut got = vec![0_i32; len];
            world.recv(&mut got, from, Slot(4))?;
            assert_eq!(got, vec![9; len]);
            sending.wait()?;
            job.barrier()?;
        }
    }
    Ok(())
}

/// A message that met a dropped receive for bytes, or bytes that met one for numbers, keeps the type that it was sent
/// with.
pub fn messages_kept_by_other_types_keep_their_own(job: &Job) -> Result<()> {
    let (world, to, from) = (job.world(), next(job), previous(job));
    for len in [4, 60, 70_000] {
        for named in [Slot(3), Slot::ANY] {
            for by_job_memory in [false, true] {
                let own = job.alloc_local::<f64>(len)?;
                own.fill(2.5)?;
                let into = job.alloc_local::<u8>(8 * len)?;
                let mut sending = world.isend(vec![2.5_f64; len], to, Slot(3))?;
                if by_job_memory {
                    let cancelled: Result<()> = world.scope(|s| {
                        let mut receive = s.recv_into(into.pointer().slice(8 * len), from, named)?;
                        while !receive.test() {
                            job.compute(Duration::from_micros(1));
                        }
                        Err(Error::argument("cancelled"))
                    });
                    assert!(cancelled.is_err());
                } else {
                    let mut dropped = world.irecv(vec![0_u8; 8 * len], from, named)?;
                    while !dropped.test() {
                        job.compute(Duration::from_micros(1));
                    }
                }
                sending.wait()?;
                let mismatch = world.recv(&mut vec![0_u64; len], from, Slot(3));
                disagreed(job, mismatch, &["of type f64, but the receive wants u64"]);
                let mut got = vec![0.0_f64; len];
                world.recv(&mut got, from, Slot(3))?;
                assert_eq!(got, vec![2.5; len]);
                job.barrier()?;
            }
            let mut sending = world.isend(vec![1_u8; 8 * len], to, Slot(3))?;
            let mut dropped = world.irecv(vec![0.0_f64; len], from, named)?;
            while !dropped.test() {
                job.compute(Duration::from_micros(1));
            }
            drop(dropped);
            sending.wait()?;
            let mut got = vec![0_u64; len];
            world.recv(&mut got, from, Slot(3))?;
            assert_eq!(got, vec![0x0101_0101_0101_0101; len]);
            job.barrier()?;
        }
    }
    Ok(())
}
