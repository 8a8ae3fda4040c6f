//! Messages between two ranks. message and posted measure one direction of an exchange of eight bytes; in posted the
//! receive is posted before the send checks for it, and anysource goes through receive queues. oversubscribed measures
//! the same exchange while other ranks wait, rate and post_gap measure windows of messages, channel measures elements
//! of a channel, and outstanding has many messages in flight at once.

use super::collective_data::slowest;
use super::pointer_chase::random;
use super::{Figure, Figures, Repeat, Setup, Stopwatch, advance, expect, figure, one_way};
use std::ops::Range;
use std::rc::Rc;
use std::slice::{from_mut, from_ref};
use tasuki::collective::Split;
use tasuki::message::{ChannelReceiver, ChannelSender, RecvRequest, SendRequest, channel_from, channel_to};
use tasuki::{Communicator, Rank, Request, Slot, block_on};

/// Slots: what is sent on each.
const WORD: Slot = Slot(0);
const MEET: Slot = Slot(1);
const ANSWER: Slot = Slot(2);
/// The first slot of a window.
const FIRST: usize = 64;
/// Slots of receives for which nobody sends while other messages are measured.
const OTHERS: Range<usize> = 200..800;
/// Number of messages in a window.
pub(crate) const WINDOW: usize = 64;

/// One of the two ranks that exchange messages.
#[derive(Clone, Copy)]
struct Ends<'j> {
    world: &'j Communicator,
    peer: Rank,
    is_lead: bool,
}

impl<'j> Ends<'j> {
    fn new(s: &Setup<'j>) -> Ends<'j> {
        Ends { world: s.world(), peer: s.peer(), is_lead: s.is_lead() }
    }

    /// Returns on the lead when the follower is ready.
    fn meet(&self) -> tasuki::Result<()> {
        match self.is_lead {
            true => self.world.recv(&mut [0_u64], self.peer, MEET).map(drop),
            false => self.world.send(&[1_u64], self.peer, MEET),
        }
    }

    fn send(&self, value: u64) -> tasuki::Result<()> {
        self.world.send(&[value], self.peer, WORD)
    }
}

/// A program may begin its receives and wait for them later, or make blocking calls. The better of the two counts, for
/// every library.
pub(crate) fn message<'j>(s: &Setup<'j>) -> Figures<'j> {
    Ok(pings(s, s.effort.times(100_000)))
}

/// A function that exchanges these values in ping-pongs.
type Exchange = fn(&Ends<'_>, Range<u64>) -> tasuki::Result<()>;

fn pings<'j>(s: &Setup<'j>, rounds: u64) -> Vec<Figure<'j>> {
    let ways: [(&str, Exchange); 2] = [("begun", begun), ("call", call)];
    let ends = Ends::new(s);
    ways.map(|(way, exchange)| {
        let mut sent = 0;
        let repeat = move || one_way(rounds, |rounds| exchange(&ends, advance(&mut sent, rounds)));
        Figure { way, ..figure("", repeat) }
    })
    .into()
}

/// Receives are begun, and waited for later. The follower posts its next receive before it sends the answer that lets
/// the lead send the next message.
#[inline(never)]
fn begun(ends: &Ends<'_>, values: Range<u64>) -> tasuki::Result<()> {
    let (first, end) = (values.start, values.end);
    if ends.is_lead {
        ends.meet()?;
    }
    for value in values {
        let mut got = [0];
        ends.world.scope(|scope| {
            scope.recv(&mut got, ends.peer, WORD)?;
            match ends.is_lead {
                true => ends.send(value),
                false if value == first => ends.meet(),
                false => ends.send(!(value - 1)),
            }
        })?;
        expect(got[0], if ends.is_lead { !value } else { value }, "message")?;
    }
    if ends.is_lead || end == first { Ok(()) } else { ends.send(!(end - 1)) }
}

/// Receives are made by the blocking call: the follower is waiting in the call before the lead sends.
#[inline(never)]
fn call(ends: &Ends<'_>, values: Range<u64>) -> tasuki::Result<()> {
    ends.meet()?;
    for value in values {
        let mut got = [0];
        if ends.is_lead {
            ends.send(value)?;
        }
        ends.world.recv(&mut got, ends.peer, WORD)?;
        expect(got[0], if ends.is_lead { !value } else { value }, "message")?;
        if !ends.is_lead {
            ends.send(!value)?;
        }
    }
    Ok(())
}

/// Ping-pongs through receive queues. Both ranks have one.
pub(crate) fn anysource<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (ends, rounds, mut sent) = (Ends::new(s), s.effort.times(100_000), 0);
    let mut inbox = s.job.receive_queue(64, 64)?;
    let mut address = [inbox.address()];
    let own = address;
    s.world().sendrecv(&own, ends.peer, &mut address, ends.peer, WORD)?;
    let mut to = s.job.open_receive_queue(address[0])?;
    let mut exchange = move |values: Range<u64>| {
        ends.meet()?;
        for value in values {
            let mut got = [0];
            if ends.is_lead {
                to.send(&[value], WORD)?;
            }
            inbox.recv(&mut got, WORD)?;
            expect(got[0], if ends.is_lead { !value } else { value }, "anysource")?;
            if !ends.is_lead {
                to.send(&[!value], WORD)?;
            }
        }
        Ok(())
    };
    Ok([figure("", move || one_way(rounds, |rounds| exchange(advance(&mut sent, rounds))))].into())
}

/// Ping-pongs of blocks that an executor awaits, and by blocking calls. Ranks besides the two do nothing.
pub(crate) fn awaited<'j>(s: &Setup<'j>) -> Figures<'j> {
    let calls = format!("{}_call", s.operation);
    if s.job.rank() > Rank(1) {
        return Ok([s.operation.to_string(), calls].map(|variant| figure(variant, || Ok(0.0))).into());
    }
    let executor = Executor::new(s.operation)?;
    let (ends, words, rounds) = (Ends::new(s), s.words(), s.effort.times(20_000));
    let vectors = move || [(); 2].map(|()| vec![0; words]);
    let (mut sent, mut awaited) = (0, vectors());
    let by_executor = figure(s.operation.to_string(), move || {
        one_way(rounds, |rounds| {
            ends.meet()?;
            let (world, is_lead) = (ends.world.clone(), ends.is_lead);
            let values = advance(&mut sent, rounds);
            let exchange = by_awaits(world, (ends.peer, is_lead), values, std::mem::take(&mut awaited));
            executor.run(exchange).map(|vectors| awaited = vectors)
        })
    });
    let (mut sent, mut vectors) = (0, vectors());
    let by_calls = figure(calls, move || {
        one_way(rounds, |rounds| by_calls(&ends, advance(&mut sent, rounds), &mut vectors))
    });
    Ok([by_executor, by_calls].into())
}

/// What runs the futures.
enum Executor {
    BlockOn,
    CurrentThread(tokio::runtime::Runtime),
    /// The future runs on a worker thread of the runtime, as a task of a server does.
    MultiThread(tokio::runtime::Runtime),
}

impl Executor {
    fn new(name: &str) -> tasuki::Result<Executor> {
        use tokio::runtime::Builder;
        Ok(match name {
            "tokio_current" => Executor::CurrentThread(Builder::new_current_thread().build()?),
            "tokio_multi" => Executor::MultiThread(Builder::new_multi_thread().worker_threads(1).build()?),
            _ => Executor::BlockOn,
        })
    }

    fn run<V: Send + 'static>(
        &self,
        future: impl Future<Output = tasuki::Result<V>> + Send + 'static,
    ) -> tasuki::Result<V> {
        match self {
            Executor::BlockOn => block_on(future),
            Executor::CurrentThread(runtime) => runtime.block_on(future),
            Executor::MultiThread(runtime) => {
                runtime.block_on(runtime.spawn(future)).map_err(std::io::Error::other)?
            }
        }
    }
}

async fn by_awaits(
    world: Communicator,
    (peer, is_lead): (Rank, bool),
    values: Range<u64>,
    [mut own, mut got]: [Vec<u64>; 2],
) -> tasuki::Result<[Vec<u64>; 2]> {
    for value in values {
        if is_lead {
            own[0] = value;
            own = world.isend(own, peer, WORD)?.await?;
        }
        (got, _) = world.irecv(got, peer, WORD)?.await?;
        expect(got[0], if is_lead { !value } else { value }, "await")?;
        if !is_lead {
            own[0] = !value;
            own = world.isend(own, peer, WORD)?.await?;
        }
    }
    Ok([own, got])
}

#[inline(never)]
fn by_calls(ends: &Ends<'_>, values: Range<u64>, [own, got]: &mut [Vec<u64>; 2]) -> tasuki::Result<()> {
    ends.meet()?;
    for value in values {
        own[0] = if ends.is_lead { value } else { !value };
        if ends.is_lead {
            ends.world.send(own, ends.peer, WORD)?;
        }
        ends.world.recv(got, ends.peer, WORD)?;
        expect(got[0], if ends.is_lead { !value } else { value }, "await")?;
        if !ends.is_lead {
            ends.world.send(own, ends.peer, WORD)?;
        }
    }
    Ok(())
}

/// Two ranks of a larger job exchange messages; the other ranks wait for the next order.
pub(crate) fn oversubscribed<'j>(s: &Setup<'j>) -> Figures<'j> {
    match s.job.rank() <= Rank(1) {
        true => message(s),
        false => Ok(["begun", "call"].map(|way| Figure { way, ..figure("", || Ok(0.0)) }).into()),
    }
}

/// The exchange of `message`, and the time from one posting to the next, while 600 more receives are outstanding.
pub(crate) fn posted<'j>(s: &Setup<'j>) -> Figures<'j> {
    let ends = Ends::new(s);
    let mut figures = pings(s, s.effort.times(20_000));
    figures.push(post_gap(s));
    let with_others = |figure: Figure<'j>| {
        let mut measure = figure.repeat;
        let repeat = move || {
            let post = |slot| ends.world.irecv(vec![0_u64], ends.peer, Slot(slot));
            let others: Vec<RecvRequest<u64>> = OTHERS.map(post).collect::<tasuki::Result<_>>()?;
            ends.meet()?;
            let measured = measure()?;
            OTHERS.into_iter().try_for_each(|slot| ends.world.send(&[slot as u64], ends.peer, Slot(slot)))?;
            for (mut other, slot) in others.into_iter().zip(OTHERS) {
                expect(other.wait()?.0[0], slot as u64, "posted")?;
            }
            Ok(measured)
        };
        Figure { repeat: Box::new(repeat) as Repeat<'j>, ..figure }
    };
    Ok(figures.into_iter().map(with_others).collect())
}

/// Returns the slots of a window, in order.
pub(crate) fn window_slots() -> impl Iterator<Item = Slot> {
    (FIRST..FIRST + WINDOW).map(Slot)
}

fn window_of(first: u64) -> [u64; WINDOW] {
    std::array::from_fn(|index| first + index as u64)
}

/// Messages per second from lead to follower. A window is 64 receives, 64 sends and one answer; the answer does not
/// count as a message. A send is begun and waited for, or made by the call that returns when the value may be
/// overwritten.
pub(crate) fn rate<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (ends, windows) = (Ends::new(s), s.effort.times(2_000));
    let way = |(way, is_begun)| {
        let mut sent = 0;
        let mut exchange = move |windows: u64| {
            let first = advance(&mut sent, windows * WINDOW as u64).start;
            if !ends.is_lead {
                return fill_windows(&ends, first, windows).map(|()| 0);
            }
            ends.meet()?;
            let watch = Stopwatch::start();
            send_windows(&ends, is_begun, first, windows).map(|()| watch.ns(0))
        };
        let repeat = move || {
            exchange(windows / 10 + 1)?;
            Ok((windows * WINDOW as u64) as f64 / (exchange(windows)? as f64 / 1e9))
        };
        Figure { way, ..figure("", repeat) }
    };
    Ok([("begun", true), ("call", false)].map(way).into())
}

/// An element of a channel: a cache line.
type Element = [u64; 8];
/// The number of elements of the ring.
const RING: usize = 1024;
/// The number of elements that follow each other without an answer.
const STREAM: u64 = 1_000_000;

/// Elements per second from lead to follower, which are filled and read in place. An answer ends the stream. Elements
/// are committed and released one by one, or as many as there is room for, and as are there.
pub(crate) fn channel<'j>(s: &Setup<'j>) -> Figures<'j> {
    let (ends, count) = (Ends::new(s), s.effort.times(STREAM));
    let way = |(way, most, slot)| {
        let mut end = StreamEnd::new(&ends, Slot(slot))?;
        let mut sent = 0;
        let mut exchange = move |count: u64| {
            let values = advance(&mut sent, count);
            let first = values.start;
            ends.meet()?;
            let watch = Stopwatch::start();
            match &mut end {
                StreamEnd::Lead(to) => send_elements(to, values, most)?,
                StreamEnd::Follower(from) => {
                    receive_elements(from, values, most)?;
                    return ends.world.send(&[!first], ends.peer, ANSWER).map(|()| 0);
                }
            }
            let mut answer = [0];
            ends.world.recv(&mut answer, ends.peer, ANSWER)?;
            expect(answer[0], !first, "channel").map(|()| watch.ns(0))
        };
        let repeat = move || {
            exchange(count / 10 + 1)?;
            Ok(count as f64 / (exchange(count)? as f64 / 1e9))
        };
        Ok(Figure { way, ..figure("", repeat) })
    };
    [("single", 1, 3), ("batch", RING, 4)].into_iter().map(way).collect()
}

enum StreamEnd {
    Lead(ChannelSender<Element>),
    Follower(ChannelReceiver<Element>),
}

impl StreamEnd {
    fn new(ends: &Ends<'_>, slot: Slot) -> tasuki::Result<StreamEnd> {
        Ok(match ends.is_lead {
            true => StreamEnd::Lead(channel_to(ends.world, ends.peer, slot)?),
            false => StreamEnd::Follower(channel_from(ends.world, ends.peer, slot, RING)?),
        })
    }
}

#[inline(never)]
fn send_elements(to: &mut ChannelSender<Element>, mut values: Range<u64>, most: usize) -> tasuki::Result<()> {
    while !values.is_empty() {
        let left = values.end - values.start;
        let places = to.reserve(most.min(left as usize))?;
        let count = places.len();
        places
            .iter_mut()
            .zip(advance(&mut values.start, count as u64))
            .for_each(|(place, value)| *place = [value; 8]);
        to.commit(count)?;
    }
    Ok(())
}

#[inline(never)]
fn receive_elements(
    from: &mut ChannelReceiver<Element>,
    mut values: Range<u64>,
    most: usize,
) -> tasuki::Result<()> {
    while !values.is_empty() {
        let elements = from.peek()?;
        let count = elements.len().min(most);
        for (element, value) in elements.iter().zip(advance(&mut values.start, count as u64)) {
            expect(*element, [value; 8], "channel")?;
        }
        from.release(count)?;
    }
    Ok(())
}

#[inline(never)]
fn send_windows(ends: &Ends<'_>, is_begun: bool, first: u64, windows: u64) -> tasuki::Result<()> {
    for window in 0..windows {
        let first = first + window * WINDOW as u64;
        let (words, mut answer) = (window_of(first), [0]);
        ends.world.scope(|scope| {
            scope.recv(&mut answer, ends.peer, ANSWER)?;
            for (word, slot) in words.iter().zip(window_slots()) {
                match is_begun {
                    true => _ = scope.send(from_ref(word), ends.peer, slot)?,
                    false => ends.world.send(from_ref(word), ends.peer, slot)?,
                }
            }
            Ok(())
        })?;
        expect(answer[0], !first, "rate")?;
    }
    Ok(())
}

/// The receiver posts the receives of the next window before it sends the answer that lets the sender fill that window.
#[inline(never)]
fn fill_windows(ends: &Ends<'_>, first: u64, windows: u64) -> tasuki::Result<()> {
    let answer = |window: u64| ends.world.send(&[!(first + window * WINDOW as u64)], ends.peer, ANSWER);
    for window in 0..windows {
        let mut words = [0; WINDOW];
        ends.world.scope(|scope| {
            for (word, slot) in words.iter_mut().zip(window_slots()) {
                scope.recv(from_mut(word), ends.peer, slot)?;
            }
            if window == 0 { ends.meet() } else { answer(window - 1) }
        })?;
        expect(words, window_of(first + window * WINDOW as u64), "rate")?;
    }
    answer(windows - 1)
}

/// The time from one posting to the next; 64 receives are posted in a row.
fn post_gap<'j>(s: &Setup<'j>) -> Figure<'j> {
    let (ends, windows, clock_ns) = (Ends::new(s), s.effort.times(200), Stopwatch::cost_ns());
    let mut sent = 0;
    let mut exchange = move |windows: u64| -> tasuki::Result<u64> {
        let firsts = (0..windows).map(|_| advance(&mut sent, WINDOW as u64).start);
        firsts.map(|first| gap(&ends, first, clock_ns)).sum()
    };
    figure("post_gap", move || {
        exchange(windows / 10 + 1)?;
        Ok(exchange(windows)? as f64 / (windows * WINDOW as u64) as f64)
    })
}

#[inline(never)]
fn gap(ends: &Ends<'_>, first: u64, clock_ns: u64) -> tasuki::Result<u64> {
    let Ends { world, peer, is_lead } = *ends;
    if !is_lead {
        let (mut got, words) = ([0], window_of(first));
        world.recv(&mut got, peer, ANSWER)?;
        expect(got[0], first, "post_gap")?;
        let mut sends = words.iter().zip(window_slots());
        return world
            .scope(|scope| {
                sends.try_for_each(|(word, slot)| scope.send(from_ref(word), peer, slot).map(drop))
            })
            .map(|()| 0);
    }
    let mut words = [0; WINDOW];
    let took = world.scope(|scope| {
        let watch = Stopwatch::start();
        for (word, slot) in words.iter_mut().zip(window_slots()) {
            scope.recv(from_mut(word), peer, slot)?;
        }
        let took = watch.ns(clock_ns);
        world.send(&[first], peer, ANSWER).map(|()| took)
    })?;
    expect(words, window_of(first), "post_gap").map(|()| took)
}

/// Number of messages in flight in each direction.
const IN_FLIGHT: [usize; 3] = [64, 1_024, 16_384];
/// If a round takes longer than this it is the only round of its repetition; a shorter first round is a warm-up.
const SLOW_NS: f64 = 2e8;
/// A repetition receives at least this many messages.
const OUTSTANDING_MIN: u64 = 16_384;

/// Nonblocking receives and sends of 400 bytes in both directions, completed in order, in reverse order, or in random
/// order. The figure is the time to begin and complete all of them, divided by the number of messages that a rank
/// receives.
pub(crate) fn outstanding<'j>(s: &Setup<'j>) -> Figures<'j> {
    let mut figures = Vec::new();
    for in_flight in IN_FLIGHT {
        let count = in_flight.min(s.effort.times(OUTSTANDING_MIN) as usize);
        let rounds = s.effort.times(OUTSTANDING_MIN).div_ceil(count as u64);
        let world = s.world().split(Split::colour(0).slots(count))?;
        let world = Rc::new(world);
        for order in ["in_order", "reverse", "random"] {
            let (world, places, peer) = (world.clone(), order_of(order, count), s.peer());
            let mut buffers = vec![vec![0_u64; s.words()]; 2 * count];
            let mut number = 0;
            figures.push(figure(format!("{in_flight}_{order}"), move || {
                let watch = Stopwatch::start();
                exchange_many(&world, peer, &places, &mut buffers, &mut number)?;
                let first = slowest(&world, watch.ns(0) as f64)?;
                if first > SLOW_NS {
                    return Ok(first / count as f64); // more rounds would take minutes
                }
                let watch = Stopwatch::start();
                for _ in 0..rounds {
                    exchange_many(&world, peer, &places, &mut buffers, &mut number)?;
                }
                Ok(watch.ns(0) as f64 / (rounds * count as u64) as f64)
            }));
        }
    }
    Ok(figures)
}

/// Returns the order in which this many messages are completed. Both ranks have the same order.
fn order_of(order: &str, count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    match order {
        "reverse" => places.reverse(),
        "random" => {
            let mut state = count as u64;
            (1..count)
                .rev()
                .for_each(|last| places.swap(last, (random(&mut state) % (last as u64 + 1)) as usize));
        }
        _ => {}
    }
    places
}

/// Begins a receive and a send on each slot, then completes them. Returns the buffers for the next round.
#[inline(never)]
fn exchange_many(
    world: &Communicator,
    peer: Rank,
    places: &[usize],
    buffers: &mut Vec<Vec<u64>>,
    number: &mut u64,
) -> tasuki::Result<()> {
    *number += 1;
    let next = |buffers: &mut Vec<Vec<u64>>| buffers.pop().unwrap_or_default();
    let slots = 0..places.len();
    let receive = |slot| world.irecv(next(buffers), peer, Slot(slot));
    let mut receives: Vec<RecvRequest<u64>> = slots.clone().map(receive).collect::<tasuki::Result<_>>()?;
    let send = |slot| {
        let mut values = next(buffers);
        let last = values.len() - 1;
        (values[0], values[last]) = (*number, slot as u64);
        world.isend(values, peer, Slot(slot))
    };
    let mut sends: Vec<SendRequest<u64>> = slots.map(send).collect::<tasuki::Result<_>>()?;
    for &place in places {
        let values = receives[place].wait()?.0;
        expect((values[0], values[values.len() - 1]), (*number, place as u64), "outstanding")?;
        buffers.push(values);
        buffers.push(sends[place].wait()?);
    }
    Ok(())
}
