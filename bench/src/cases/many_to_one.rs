//! Many ranks that send to one, which does not name them: incast, where the receiver waits, and flood, where it sleeps
//! first. Ranks besides the first send; each sends its next message as soon as it can.

use super::collective_data::slowest;
use super::{Figure, Figures, Setup, Stopwatch, expect, figure};
use crate::harness::process_observation::{peak_memory, reset_peak_memory};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;
use tasuki::message::{ReceiveQueue, ReceiveQueueSender};
use tasuki::{Communicator, Job, Rank, Slot};

/// Number of messages from all senders together in a repetition.
const MESSAGES: u64 = 100_000;
/// A repetition has fewer messages if it would take longer than this.
const TIME_MAX_NS: f64 = 5e8;
/// A sender sends at least this number.
const MESSAGES_MIN: u64 = 50;
/// Buffers of the receive queue.
const BUFFERS: usize = 64;
/// Number of messages of 4 KiB that each rank sends in a long flood, and how long the receiver sleeps first.
pub(crate) const LONG_FLOOD: (u64, Duration) = (100_000, Duration::from_secs(2));
/// How long the receiver sleeps in other floods.
const NAP: Duration = Duration::from_millis(200);
const RECEIVER: Rank = Rank(0);
const SLOT: Slot = Slot(0);

/// Messages a second, the rate of the slowest sender divided by the mean of all, and by how many bytes the receiver's
/// memory grew, through a receive queue and by `send_any`. The better way counts; the growth is that of both.
pub(crate) fn incast<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (mut figures, grown) = (Vec::new(), growth());
    for way in ["queue", "any"] {
        let flow = Flow::new(s, way)?;
        let count = s.effort.times(MESSAGES);
        let measure = move |flow: &mut Flow<'j>| {
            flow.warm_up(count)?;
            flow.measure(flow.affordable(count)?, Duration::ZERO)
        };
        figures.extend(flow_figures(flow, way, grown, measure));
    }
    Ok(figures)
}

/// Messages a second from when the receiver wakes, the rate of the slowest sender divided by the mean of all, and by
/// how many bytes the receiver's memory grew from before the queue was made until the last message was there.
pub(crate) fn flood<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (grown, flow) = (growth(), Flow::new(s, "queue")?);
    let senders = s.job.size() as u64 - 1;
    let few = ((s.effort.times(MESSAGES) / senders).max(1), NAP);
    let (count, nap) = if s.effort.is_long { LONG_FLOOD } else { few };
    Ok(flow_figures(flow, "queue", grown, move |flow| flow.measure(count, nap)).into())
}

/// Returns a function that tells by how many bytes the memory of this process has grown at most since now.
fn growth() -> impl Fn() -> f64 + Copy {
    reset_peak_memory();
    let before = peak_memory();
    move || peak_memory().saturating_sub(before).max(1) as f64
}

/// Three figures of the same repetitions: messages a second, which makes them, and what the last one left.
fn flow_figures<'j>(
    flow: Flow<'j>,
    way: &'static str,
    grown: impl Fn() -> f64 + 'j,
    measure: impl FnMut(&mut Flow<'j>) -> tasuki::Result<()> + 'j,
) -> [Figure<'j>; 3] {
    let flow = Rc::new(RefCell::new((flow, measure)));
    let of_last = |value: Rc<dyn Fn(&Flow<'j>) -> f64 + 'j>| {
        let flow = flow.clone();
        move || {
            let (flow, measure) = &mut *flow.borrow_mut();
            if flow.messages_per_s == 0.0 {
                measure(flow)?; // there was no repetition before
            }
            Ok(value(flow))
        }
    };
    let (share, grown) = (of_last(Rc::new(|flow| flow.slowest_share)), of_last(Rc::new(move |_| grown())));
    let rate = move || {
        let (flow, measure) = &mut *flow.borrow_mut();
        measure(flow)?;
        Ok(flow.messages_per_s)
    };
    [figure("", rate), figure("slowest_share", share), figure("receiver_growth_bytes", grown)]
        .map(|figure| Figure { way, ..figure })
}

/// What messages go through.
enum Lane<'j> {
    Receiver(Box<ReceiveQueue>),
    Sender(Box<ReceiveQueueSender>),
    /// `send_any` and `recv_any`.
    Any(&'j Communicator),
}

/// One rank of many that send to the first.
struct Flow<'j> {
    job: &'j Job,
    lane: Lane<'j>,
    /// What is sent, or where it arrives. The first word says who sends, the second the number of the message.
    words: Vec<u64>,
    /// The number of the next message that each rank sends.
    next: Vec<u64>,
    messages_per_s: f64,
    slowest_share: f64,
}

impl<'j> Flow<'j> {
    fn new(s: &Setup<'j>, way: &str) -> tasuki::Result<Flow<'j>> {
        let (job, bytes) = (s.job, s.words().max(1) * size_of::<u64>());
        let lane = match way {
            "any" => Lane::Any(s.world()),
            _ => {
                let queue = s.is_lead().then(|| job.receive_queue(BUFFERS, bytes)).transpose()?;
                let mut address = [queue.as_ref().map(ReceiveQueue::address).unwrap_or_default()];
                s.world().bcast(&mut address, RECEIVER)?;
                match queue {
                    Some(queue) => Lane::Receiver(queue.into()),
                    None => Lane::Sender(job.open_receive_queue(address[0])?.into()),
                }
            }
        };
        let (words, next) = (vec![0; s.words().max(1)], vec![0; job.size()]);
        Ok(Flow { job, lane, words, next, messages_per_s: 0.0, slowest_share: 0.0 })
    }

    fn senders(&self) -> u64 {
        self.job.size() as u64 - 1
    }

    /// Returns the value of a message: a word says of whom it is and which it is.
    fn value(rank: usize, number: u64) -> u64 {
        number << 16 | rank as u64
    }

    fn send(&mut self, count: u64) -> tasuki::Result<()> {
        let rank = self.job.rank().index();
        for _ in 0..count {
            let value = Flow::value(rank, self.next[rank]);
            let last = self.words.len() - 1;
            (self.words[0], self.words[last]) = (value, value);
            match &mut self.lane {
                Lane::Sender(queue) => queue.send(&self.words, SLOT)?,
                Lane::Any(world) => world.send_any(&self.words, RECEIVER, SLOT)?,
                Lane::Receiver(_) => {}
            }
            self.next[rank] += 1;
        }
        Ok(())
    }

    /// Receives that number of messages of each sender, and checks that those of each come in order.
    fn receive(&mut self, count: u64) -> tasuki::Result<()> {
        for _ in 0..count * self.senders() {
            let rank = match &mut self.lane {
                Lane::Receiver(queue) => queue.recv(&mut self.words, SLOT)?.source.index(),
                Lane::Any(world) => world.recv_any(&mut self.words, SLOT)?.source.index(),
                Lane::Sender(_) => 0,
            };
            let (first, last) = (self.words[0], self.words[self.words.len() - 1]);
            expect((first, last), (Flow::value(rank, self.next[rank]), first), "many to one")?;
            self.next[rank] += 1;
        }
        Ok(())
    }

    /// Each sender sends that number of messages.
    fn measure(&mut self, count: u64, nap: Duration) -> tasuki::Result<()> {
        let world = self.job.world();
        world.barrier()?;
        let is_receiver = self.job.rank() == RECEIVER;
        if is_receiver {
            std::thread::sleep(nap);
        }
        let watch = Stopwatch::start();
        if is_receiver {
            self.receive(count)?
        } else {
            self.send(count)?
        }
        let ns = watch.ns(0).max(1) as f64;
        let rates = world.allgather(&(count as f64 / ns))?;
        self.messages_per_s = (count * self.senders()) as f64 / ns * 1e9;
        let mean = rates[1..].iter().sum::<f64>() / self.senders() as f64;
        self.slowest_share = rates[1..].iter().copied().fold(f64::INFINITY, f64::min) / mean;
        Ok(())
    }

    fn warm_up(&mut self, count: u64) -> tasuki::Result<()> {
        self.measure((count / 50 / self.senders()).max(MESSAGES_MIN.min(count)), Duration::ZERO)
    }

    /// Returns how many messages of each sender to measure, given the rate of the last ones. The same on all ranks.
    fn affordable(&self, count: u64) -> tasuki::Result<u64> {
        let ns = slowest(self.job.world(), 1e9 / self.messages_per_s)?;
        Ok((count.min((TIME_MAX_NS / ns) as u64) / self.senders()).max(MESSAGES_MIN.min(count)))
    }
}
