//! How something is made of a schedule: each member lays out its part and tells all others where, prepares what it is
//! to run, and nobody has it unless all have.

use super::farewell::Farewell;
use super::layout::{Card, Data, Layout, Placed};
use super::lower::{self, Lowering, Milestone};
use super::starts::Starts;
use super::walking::{Content, Walker, Walking};
use super::{Combining, Form, Held, sealed, walked};
use crate::communicator::Communicator;
use crate::roll::KEPT;
use crate::stages::Stages;
use bytemuck::{Pod, Zeroable};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use tasuki_core::base::{Cause, Rank, Result};
use tasuki_core::engine::walk::{SHOWN_BYTES, Walk};
use tasuki_core::engine::{Caching, Machine, View};
use tasuki_core::queue::reduction::Reduction;
use tasuki_message::SHORT_MAX;
use tasuki_schedule::shape::DATA;
use tasuki_schedule::{Part, START, Schedule};

/// What is made of a schedule.
pub(crate) enum Made {
    /// Programs that go on by what arrives.
    Programs(Combining),
    /// Steps of a plan, through which that passes, that this rank runs in its calls.
    Walk(Content),
    /// Steps of calls that lend what they move. There may be other ways for the same calls, as for other roots: by
    /// schedules with the same buffers, signals, and effects on them in a start. Whether members show each other what
    /// is lent to them: two of them may.
    Calls(Vec<Schedule>, bool),
}

/// What each member tells all others when a plan is made: a short message.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Word {
    card: Card,
    /// 0: this member found no room for its part.
    found_room: u64,
    /// What the schedule is.
    fingerprint: u64,
    /// What it has done with.
    done: u64,
    /// The first of the signals by which members leave.
    farewell: u32,
    /// The first of those that tell which calls it is in.
    roll: u32,
}

const _: () = assert!(size_of::<Word>() <= SHORT_MAX);

/// What all members have.
pub(crate) struct Arranged {
    pub(super) held: Arc<Held>,
    /// By which it is given up.
    pub(crate) number: u64,
    /// The steps of calls.
    pub(crate) walk: Option<Walk>,
    /// Those of a plan.
    pub(super) walker: Option<Walker>,
}

impl Communicator {
    /// Makes something of a schedule, together with all members, within a collective call. The inner error: nobody has
    /// it.
    pub(crate) fn arrange(
        &self,
        schedule: &Schedule,
        part: &Part,
        made: Made,
        call: &dyn Fn() -> String,
    ) -> Result<Result<Arranged, Cause>> {
        let fault = |cause| self.machine().fault(cause, call);
        let data = match made {
            Made::Programs(_) => Data::OfPlan,
            Made::Walk(_) | Made::Calls(_, false) => Data::Lent,
            Made::Calls(_, true) => Data::Shown,
        };
        let begun = Begun::new(self, part, data);
        let fingerprint = fingerprint(schedule, &made);
        let card = begun.as_ref().map_or(Card::zeroed(), |begun| begun.own.card);
        let done = self.lock_plans().word();
        let farewell = self.name_farewell().map_err(fault)?;
        let roll = self.name_roll().map_err(fault)?;
        let word = Word { card, found_room: begun.is_ok().into(), fingerprint, done, farewell, roll };
        let words = self.allgather_steps(&[word]).map_err(|error| self.step_failed(error, call))?;
        self.free_what_is_over(words.iter().map(|word| word.done));
        self.promise_farewell(&words)?;
        if self.watched.get().is_none() {
            let rank_of = |member: usize| self.messages().rank_of(Rank(member as u32));
            let firsts = words.iter().enumerate().filter_map(|(at, word)| Some((rank_of(at)?, word.roll)));
            self.open_roll(&firsts.collect::<Vec<_>>()).map_err(fault)?;
        }
        let held = begun.and_then(|begun| match self.agree_on(&words, fingerprint) {
            Ok(()) => Ok(begun.finish(self, (schedule, part), &words, made)),
            Err(cause) => {
                begun.own.give_back(&begun.machine, begun.signals, &begun.counted);
                Err(cause)
            }
        });
        // Nobody is to wait for one who could not; and until now others look for what that one has.
        let is_made = matches!(held, Ok((_, Ok(_))));
        let all = self.allgather_steps(&[u64::from(is_made)]);
        let all = all.map_err(|error| self.step_failed(error, call))?;
        let (held, steps) = match held {
            Ok((held, Ok(steps))) if !all.contains(&0) => (held, steps),
            Ok((held, steps)) => {
                held.free();
                let text = "another member found no room for its part, or came with another schedule";
                return Ok(Err(steps.err().unwrap_or(Cause::Unsupported(text.into()))));
            }
            Err(cause) => return Ok(Err(cause)),
        };
        let held = Arc::new(held);
        let number = self.lock_plans().enter(held.clone());
        let Steps { walk, walker } = steps;
        Ok(Ok(Arranged { held, number, walk, walker }))
    }

    /// The signals by which members leave, made with the first plan.
    fn name_farewell(&self) -> Result<u32, Cause> {
        if let Some(&first) = self.farewell.get() {
            return Ok(first);
        }
        let made = self.machine().registry().untouched_signals(Stages::count(self.size()));
        let first = made.map_err(|error| error.cause().clone())?;
        Ok(*self.farewell.get_or_init(|| first))
    }

    /// The signals that tell which calls this member is in, made with the first plan unless they are there.
    fn name_roll(&self) -> Result<u32, Cause> {
        if let Some(&first) = self.roll.get() {
            return Ok(first);
        }
        let made = self.machine().registry().untouched_signals(KEPT);
        let first = made.map_err(|error| error.cause().clone())?;
        Ok(*self.roll.get_or_init(|| first))
    }

    /// From the first plan on members leave together.
    fn promise_farewell(&self, words: &[Word]) -> Result<()> {
        if self.leaving.get().is_none() {
            let (machine, plans) = (self.machine(), self.plans().clone());
            let stages = self.stages_of_leave(words);
            let stages = stages.map_err(|cause| machine.fault(cause, || "plan()".into()))?;
            self.messages().owe(Arc::new(Farewell::new(plans, stages, machine)))?;
            self.leaving.get_or_init(|| ());
        }
        Ok(())
    }

    fn stages_of_leave(&self, words: &[Word]) -> Result<Stages, Cause> {
        let neighbours = |stage| self.neighbours(stage, |member| words[member.index()].farewell);
        let first = words[self.rank().index()].farewell;
        Stages::new(self.machine(), first, Stages::count(self.size()), neighbours)
    }

    /// Whether all members came with the same schedule, and with room for it.
    fn agree_on(&self, words: &[Word], fingerprint: u64) -> Result<(), Cause> {
        if let Some(other) = words.iter().position(|word| word.fingerprint != fingerprint) {
            let text = format!(
                "member {other} came with another schedule, size, root, or way of combining: all members make the \
                 same plan together"
            );
            return Err(Cause::Argument(text));
        }
        match words.iter().position(|word| word.found_room == 0) {
            Some(other) => {
                Err(Cause::Unsupported(format!("member {other} found no room for its part; nobody has it")))
            }
            None => Ok(()),
        }
    }
}

/// Something that all members must have in common, as a number.
fn fingerprint(schedule: &Schedule, made: &Made) -> u64 {
    let mut hasher = DefaultHasher::new();
    (schedule.name(), schedule.ranks()).hash(&mut hasher);
    match made {
        Made::Walk(content) => (content.pieces(), content.how().name()).hash(&mut hasher),
        Made::Programs(how) => how.name().hash(&mut hasher),
        Made::Calls(..) => {} // each call says how
    }
    let compared = if schedule.is_seen_by_one() { vec![] } else { vec![0, schedule.ranks() - 1] };
    for rank in compared {
        format!("{:?}", schedule.part(rank)).hash(&mut hasher);
    }
    hasher.finish()
}

/// The memory and signals of a part.
struct Begun {
    machine: Arc<Machine>,
    own: Placed,
    data: Data,
    /// How many signals it has, and how far those of the part have come.
    signals: u32,
    stood: Vec<u64>,
    counted: Arc<AtomicU64>,
}

impl Begun {
    fn new(members: &Communicator, part: &Part, data: Data) -> Result<Begun, Cause> {
        let machine = members.messages().machine().clone();
        let layout = Layout::of(part, data);
        let count = part.counters().len() as u32;
        let own_cause = |error: tasuki_core::base::Error| error.cause().clone();
        let is_program = data == Data::OfPlan;
        let all = count + u32::from(is_program);
        let signals = machine.registry().private_signals(all).map_err(own_cause)?;
        let block = match layout.bytes {
            0 => 0,
            bytes => match machine.registry().allocate_local(bytes) {
                Ok(block) => block,
                Err(error) => {
                    machine.registry().give_back_signals(signals, all);
                    return Err(own_cause(error));
                }
            },
        };
        let stood = (signals..signals + count).map(|signal| machine.count_of_own(signal)).collect();
        let card = Card { block, signals, starts: if is_program { signals + count } else { 0 } };
        let (own, counted) =
            (Placed::new(machine.rank(), card, part, data), members.plan_bytes_counted().clone());
        counted.fetch_add(own.bytes(all), Ordering::Relaxed);
        match data {
            Data::Lent => sealed::open(&machine, &own, part),
            Data::Shown => {
                let nothing = [0; SHOWN_BYTES as usize];
                machine.copy_out(View::of(&nothing), 0, own.byte(DATA, 0, 0), SHOWN_BYTES, Caching::Cached);
            }
            Data::OfPlan => {}
        }
        Ok(Begun { own, machine, data, signals: all, stood, counted })
    }

    /// What is made of it, now that it is known where the others have their parts; if it can be.
    fn finish(
        self,
        members: &Communicator,
        (schedule, part): (&Schedule, &Part),
        words: &[Word],
        made: Made,
    ) -> (Held, Result<Steps, Cause>) {
        let (how, operator) = match &made {
            Made::Walk(_) | Made::Calls(..) | Made::Programs(Combining::Nothing) => (None, None),
            Made::Programs(Combining::Known(how)) => (Some(*how), None),
            Made::Programs(Combining::Own(operator, bytes)) => {
                let number = self.machine.add_operator(operator.clone());
                (Some(Reduction::own(number, *bytes)), Some(number))
            }
        };
        let mut held = Held {
            machine: self.machine,
            own: self.own,
            signals: self.signals,
            form: Form::Calls,
            started: Arc::default(),
            passed_after: AtomicU64::new(0),
            is_left: AtomicBool::new(false),
            asked: AtomicU32::new(0),
            starts: None,
            operator,
            counted: self.counted,
        };
        let others = held.others(members, schedule, part, words, self.data);
        let steps = others.and_then(|others| {
            let lowering = Lowering { own: &held.own, stood: &self.stood, how, others: &others };
            match made {
                Made::Walk(content) => {
                    let one = slice::from_ref(schedule);
                    let walk = walked::lower(&lowering, one, &held.machine, (part.rank(), self.data))?;
                    held.walk(walk, content)
                }
                Made::Calls(others, _) => {
                    let ways = [slice::from_ref(schedule), &others].concat();
                    let walk = walked::lower(&lowering, &ways, &held.machine, (part.rank(), self.data))?;
                    Ok(Steps { walk: Some(walk), walker: None })
                }
                Made::Programs(_) => {
                    let (programs, milestones) = (lowering.programs(part)?, lowering.milestones(part));
                    held.prepare(programs, milestones)?;
                    held.listen(members, words).map(|()| Steps::default())
                }
            }
        });
        (held, steps)
    }
}

/// Steps that this rank runs itself, if any: those of calls, or those of a plan.
#[derive(Default)]
struct Steps {
    walk: Option<Walk>,
    walker: Option<Walker>,
}

impl Held {
    /// Where the parts lie that the own one names.
    fn others(
        &self,
        members: &Communicator,
        schedule: &Schedule,
        part: &Part,
        words: &[Word],
        data: Data,
    ) -> Result<BTreeMap<u32, Placed>, Cause> {
        let place = |member: u32| {
            let known = members.messages().rank_of(Rank(member));
            let rank = known.ok_or(Cause::NoSuchRank { rank: Rank(member), size: words.len() })?;
            let part = schedule.part(member as usize);
            Ok((member, Placed::new(rank, words[member as usize].card, &part, data)))
        };
        lower::named(part).into_iter().map(place).collect()
    }

    fn walk(&mut self, walk: Walk, content: Content) -> Result<Steps, Cause> {
        let memory = content.memory();
        let (walking, walker) = Walking::new(self.machine.clone(), walk, content)?;
        self.own.beside = memory;
        self.counted.fetch_add(memory, Ordering::Relaxed);
        self.form = Form::Walk(Arc::new(walking));
        Ok(Steps { walk: None, walker: Some(walker) })
    }

    /// From now on it finds out who leaves without a start.
    fn listen(&mut self, members: &Communicator, words: &[Word]) -> Result<(), Cause> {
        let card_of = |member: Rank| words[member.index()].card;
        let starts = Arc::new(Starts::new(members, self.started.clone(), card_of)?);
        let watch = self.machine.add_watch(starts.clone());
        self.starts = Some((starts, watch));
        Ok(())
    }

    fn prepare(&mut self, programs: Vec<lower::Program>, milestones: Vec<Milestone>) -> Result<(), Cause> {
        let start = self.own.number(START);
        let mut made = Vec::new();
        let mut made_all = Ok(());
        for program in programs {
            match self.machine.make_program(&program.commands, start, program.per_start) {
                Ok(own) => made.push(own),
                Err(cause) => {
                    made_all = Err(cause);
                    break;
                }
            }
        }
        let cell =
            |milestone: Milestone| Ok((self.machine.fabric().own_signal(milestone.signal)?, milestone));
        let cells = milestones.into_iter().map(cell).collect::<Result<_, Cause>>();
        let (cells, found) = cells.map_or_else(|cause| (Box::default(), Err(cause)), |cells| (cells, Ok(())));
        self.form = Form::Programs(made.into(), cells); // which are given back if not all are there
        made_all.and(found)
    }
}
