//! Whose turn it is. One thread of the run at a time, in the order of virtual time; it goes on without a switch as
//! long as nothing comes before it, and lets the events between happen itself.

use crate::actor::State;
use crate::call::Call;
use crate::order::Next;
use crate::trace::Mark;
use crate::world::World;
use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard};
use tasuki_core::base::{Cause, Rank};

/// A run, as all its threads share it.
#[derive(Debug)]
pub(crate) struct Run {
    world: Mutex<World>,
    /// Told when the last thread has ended.
    pub(crate) ended: Condvar,
}

pub(crate) type Guard<'r> = MutexGuard<'r, World>;

/// What the thread of a killed rank unwinds with. It never reaches a panic hook. Who catches panics of a rank's
/// program may let this one pass by `std::panic::resume_unwind`; its next call unwinds again in any case.
#[derive(Clone, Copy, Debug)]
pub struct Killed;

thread_local! {
    /// Which run and which of its actors the thread is.
    static SELF: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

impl Run {
    pub(crate) fn new(world: World) -> Run {
        Run { world: Mutex::new(world), ended: Condvar::new() }
    }

    pub(crate) fn lock(&self) -> Guard<'_> {
        self.world.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn name(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// The calling thread becomes an actor and waits for its first turn. False: it shall not even begin.
    pub(crate) fn begin(&self, actor: usize) -> bool {
        SELF.set((self.name(), actor));
        let baton = self.lock().actors[actor].baton.clone();
        baton.take();
        !self.lock().actors[actor].killed
    }

    /// Which actor the calling thread is.
    fn me(&self) -> Option<usize> {
        let (run, actor) = SELF.get();
        (run == self.name()).then_some(actor)
    }

    /// That the calling thread may not make calls, if so.
    pub(crate) fn check_thread(&self) -> Result<usize, Cause> {
        let text = "this thread was not started by the simulated rank: start threads with job.threads";
        self.me().ok_or_else(|| Cause::Argument(text.into()))
    }

    /// Unwinds if the rank was killed.
    fn unless_killed<'r>(&'r self, world: Guard<'r>, me: usize) -> Guard<'r> {
        if world.is_doomed(me) {
            drop(world);
            std::panic::resume_unwind(Box::new(Killed));
        }
        world
    }

    /// A call of the calling thread, made for `rank`: its time passes, others have their turns. Panics in a thread
    /// that is not of this run, which no other answer would stop.
    pub(crate) fn enter(&self, rank: Rank, call: Call) -> Guard<'_> {
        let me = match self.check_thread() {
            Ok(me) => me,
            Err(cause) => panic!("{cause}"),
        };
        let mut world = self.lock();
        world.counts.steps += 1;
        let (now, numbers) = (world.now, [call.number(), u64::from(rank.0), me as u64]);
        world.trace.note(now, Mark::Call, numbers);
        world.notice(rank);
        if call.acts() {
            world.watch.acted();
            world.stir(me);
        }
        let cost = call.cost_ns();
        let cost = if let Call::Compute(_) = call { cost } else { world.about(cost) };
        let at = now.saturating_add(cost);
        world = self.pass_time(world, me, at);
        if call.serves() {
            world.serve(rank);
        }
        world
    }

    /// Lets time pass until `at_ns` for the calling thread.
    pub(crate) fn pass_time<'r>(&'r self, mut world: Guard<'r>, me: usize, at_ns: u64) -> Guard<'r> {
        let rank = world.actors[me].rank;
        let turn = world.moment(at_ns, rank);
        while !world.is_doomed(me) {
            match world.before(me, turn) {
                Next::Nothing => {
                    world.now = at_ns;
                    world.actors[me].clock = at_ns;
                    break;
                }
                Next::Event => world.let_happen(),
                Next::Turn(next) => {
                    world.ready(me, turn);
                    world = self.hand_over(world, me, next);
                    break;
                }
            }
        }
        world.check_limits();
        self.unless_killed(world, me)
    }

    /// The calling thread pauses until something wakes it, or until `until_ns`.
    pub(crate) fn block<'r>(&'r self, mut world: Guard<'r>, me: usize, until_ns: u64) -> Guard<'r> {
        if world.actors[me].killed && world.actors[me].joins.is_none() {
            return self.unless_killed(world, me); // a thread that unwinds does not wait
        }
        let numbers = [u64::from(world.actors[me].rank.0), me as u64, 0];
        let now = world.now;
        world.trace.note(now, Mark::Wait, numbers);
        if until_ns < u64::MAX {
            world.resume_at(me, until_ns);
        }
        world.actors[me].state = State::Paused;
        let next = world.let_happen_until_turn().unwrap_or(me);
        if next == me {
            world.resume(me);
        } else {
            world = self.hand_over(world, me, next);
        }
        world.check_limits();
        self.unless_killed(world, me)
    }

    /// Another thread's turn, until it is ours again.
    fn hand_over<'r>(&'r self, mut world: Guard<'r>, me: usize, next: usize) -> Guard<'r> {
        world.counts.switches += 1;
        world.running = next;
        world.resume(next);
        let (mine, theirs) = (world.actors[me].baton.clone(), world.actors[next].baton.clone());
        drop(world);
        theirs.pass();
        mine.take();
        self.lock()
    }

    /// The first turn of all.
    pub(crate) fn start(&self) {
        self.pass_on(self.lock());
    }

    /// Gives the turn to whoever is next, from a thread that does not wait for another.
    fn pass_on(&self, mut world: Guard<'_>) {
        let Some(next) = world.let_happen_until_turn() else {
            drop(world);
            return self.ended.notify_all();
        };
        world.running = next;
        world.resume(next);
        let theirs = world.actors[next].baton.clone();
        drop(world);
        theirs.pass();
    }

    /// The calling thread ends as an actor and gives its turn away.
    pub(crate) fn end(&self, actor: usize, panicked: Option<&str>) {
        SELF.set((0, 0));
        let mut world = self.lock();
        world.retire(actor, panicked);
        self.pass_on(world);
    }

    /// Waits until a thread of the run has ended; not at all in a thread that is none of the run itself.
    pub(crate) fn join(&self, rank: Rank, actor: usize) {
        let Some(me) = self.me() else { return };
        self.lock().actors[me].joins = Some(actor);
        let mut world = self.enter(rank, Call::Thread);
        while world.actors[actor].state != State::Ended {
            world = self.block(world, me, u64::MAX);
        }
        world.actors[me].joins = None;
    }
}
