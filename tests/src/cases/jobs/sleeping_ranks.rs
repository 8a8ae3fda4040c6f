//! D20, L7: a sleeping rank is woken whichever state of sleep it is in, so idle ranks make
//! progress.

use crate::exchange::{effort, is_simulated};
use crate::random::Random;
use std::time::Duration;
use tasuki::onesided::PayloadSignal;
use tasuki::{Job, Rank, Request, Result, Signal};

/// A sleeping rank checks its conditions twice a second without being woken. So a wake-up that arrives later than this
/// limit was lost. A few may be late because the machine stood still.
const LOST: Duration = Duration::from_millis(400);
const LOST_MAX: usize = 10;

/// The delay of a step in microseconds. Delays are long enough for the other ranks to spin, to
/// yield, or to sleep.
fn delay(random: &mut Random) -> u64 {
    match random.below(200) {
        0 => 1500 + random.below(1500),
        1..=5 => random.below(300),
        6..=40 => random.below(30),
        _ => 0,
    }
}

/// Sends wake-ups with their time, and counts those that arrive too late.
struct Clocked<'job> {
    job: &'job Job,
    signal: Signal<'job>,
    sent: tasuki::Array<u64>,
    lost: usize,
}

impl<'job> Clocked<'job> {
    fn new(job: &'job Job) -> Result<Clocked<'job>> {
        Ok(Clocked { job, signal: job.signal()?, sent: job.alloc(1)?, lost: 0 })
    }

    fn wake(&self, peer: Rank) -> Result<()> {
        let now = self.job.clock().as_nanos() as u64;
        self.job.put_signal(self.sent.on(peer), &[now], self.signal.on(peer), 1)
    }

    fn sleep(&mut self, count: u64) -> Result<()> {
        self.signal.wait_at_least(count)?;
        let late = self.job.clock().saturating_sub(Duration::from_nanos(self.sent.get(0)?));
        self.lost += usize::from(late > LOST);
        Ok(())
    }

    fn check(&self) {
        let lost = self.lost;
        assert!(lost <= LOST_MAX, "{lost} wake-ups were lost: the ranks woke up by themselves");
    }
}

/// 10^5 times, after a random delay, one rank wakes another rank, chosen at random, while all
/// others sleep.
pub fn d20_random_sleeps_and_wakes(job: &Job) -> Result<()> {
    let mut clocked = Clocked::new(job)?;
    let mut random = Random::seed(20);
    let (mut holder, mut woken) = (Rank(0), 0);
    job.barrier()?;
    for _ in 0..effort(job, 100_000, 500) {
        let (wait, other) = (delay(&mut random), random.below(job.size() as u64 - 1) as usize + 1);
        let next = Rank((holder.0 + other) % job.size());
        if job.rank() == holder {
            job.compute(Duration::from_micros(wait));
            clocked.wake(next)?;
        }
        if job.rank() == next {
            woken += 1;
            clocked.sleep(woken)?;
        }
        holder = next;
    }
    job.barrier()?;
    clocked.check();
    Ok(())
}

/// All ranks but one sleep for a long time; then the one rank wakes all of them at once. Each rank in turn is the one
/// that wakes the others.
pub fn d20_all_are_woken_at_once(job: &Job) -> Result<()> {
    let mut clocked = Clocked::new(job)?;
    let mut random = Random::seed(21);
    job.barrier()?;
    let mut woken = 0;
    for step in 0..effort(job, 2_000, 50) {
        let wait = delay(&mut random) + delay(&mut random);
        if step % job.size() == job.rank().index() {
            job.compute(Duration::from_micros(wait));
            for peer in job.ranks().filter(|&peer| peer != job.rank()) {
                clocked.wake(peer)?;
            }
        } else {
            woken += 1;
            clocked.sleep(woken)?;
        }
    }
    clocked.check();
    Ok(())
}

/// A rank that sleeps in a wait for a payload signal, a request to an owner or a barrier is woken like one that waits
/// for a signal. Each rank in turn makes the others wait.
pub fn d20_every_wait_is_woken(job: &Job) -> Result<()> {
    let words = job.register(vec![0_u64])?;
    let words = crate::exchange::exchange_all(job, words.pointer()).map(|addresses| (words, addresses))?;
    let line = PayloadSignal::<u64>::new(job)?;
    let (next, previous) = (crate::exchange::next(job), crate::exchange::previous(job));
    let (mut writer, mut reader) = (line.writer(next)?, line.reader(Some(previous)));
    let mut random = Random::seed(job.rank().0 as u64);
    for step in 0..effort(job, 300, 30) as u64 {
        let pause = |random: &mut Random| job.compute(Duration::from_micros(random.below(2500)));
        if step % job.size() as u64 == job.rank().0 as u64 {
            pause(&mut random);
            writer.put(&step)?;
            assert_eq!(reader.wait()?, step);
        } else {
            assert_eq!(reader.wait()?, step);
            writer.put(&step)?;
        }
        if random.below(3) == 0 {
            pause(&mut random);
        }
        job.fetch_add(words.1[next.index()], 1)?;
        job.barrier()?;
        assert_eq!(words.0.to_vec(), [step + 1]);
        job.barrier()?;
    }
    Ok(())
}

/// Several threads of one rank wait for different signals. Each is woken by its own signal, in any
/// order.
pub fn d20_threads_of_a_rank_are_woken(job: &Job) -> Result<()> {
    const THREADS: usize = 4;
    let steps = effort(job, 3_000, 20);
    let signals = (0..THREADS).map(|_| job.signal()).collect::<Result<Vec<_>>>()?;
    let sent = job.alloc::<u64>(THREADS)?;
    job.barrier()?;
    if job.rank() != Rank(0) {
        let mut random = Random::seed(22);
        for step in 0..steps * THREADS {
            job.compute(Duration::from_micros(delay(&mut random)));
            // Every thread is woken equally often, and never twice before the others.
            let thread = (step / THREADS * 3 + step) % THREADS;
            if job.rank() == Rank(1) {
                let now = job.clock().as_nanos() as u64;
                job.put_signal(sent.on(Rank(0)).at(thread), &[now], signals[thread].on(Rank(0)), 1)?;
            }
        }
        return job.barrier();
    }
    let lost = job.threads(THREADS, |thread| -> Result<usize> {
        let mut lost = 0;
        for step in 1..=steps as u64 {
            signals[thread].wait_at_least(step)?;
            let late = job.clock().saturating_sub(Duration::from_nanos(sent.get(thread)?));
            lost += usize::from(late > LOST && signals[thread].value() == step);
        }
        Ok(lost)
    })?;
    let lost: usize = lost.into_iter().sum::<Result<_>>()?;
    assert!(lost <= LOST_MAX || is_simulated(job), "{lost} wake-ups came too late");
    job.barrier()
}
