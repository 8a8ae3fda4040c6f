//! The helper of a rank: started when it is wanted, ended before the rank leaves.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::log::Level;
use tasuki_core::base::panic_message;
use tasuki_core::bootstrap::helper_setting::{Helper as Wanted, HelperKind};
use tasuki_core::engine::{HelperControl, HelperScope, Worker};
use tasuki_core::os::affinity;

/// The helper that a rank has, or will have.
#[derive(Debug)]
pub(crate) struct Helper {
    worker: Arc<Worker>,
    wanted: Wanted,
    running: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// It has not been started.
    Idle,
    Running(Running),
    /// It was ended, or could not be started: there will be none.
    Over,
}

struct Running {
    help: HelperScope,
    end: Arc<HelperControl>,
    join: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.end.fmt(f)
    }
}

impl Helper {
    /// Starts it, if the rank is to have one from its beginning on; the simulated card then stands by. Where the node's
    /// helper was in a rank that has left, the next one that waits has it.
    pub(crate) fn new(worker: &Arc<Worker>, wanted: Wanted) -> Arc<Helper> {
        let helper = Helper { worker: worker.clone(), wanted, running: Mutex::new(State::Idle) };
        let helper = Arc::new(helper);
        let successor = Arc::downgrade(&helper);
        worker.set_helper_successor(Box::new(move || {
            let helper = successor.upgrade();
            helper.iter().for_each(|helper| helper.succeed());
        }));
        if wanted.kind != HelperKind::Auto {
            helper.start();
        } else if helper.is_card() {
            helper.begin(HelperControl::of_one_standing_by());
        }
        helper
    }

    /// Whether it stands for the network card, at which commands of other ranks arrive.
    fn is_card(&self) -> bool {
        self.wanted.kind == HelperKind::Auto && self.worker.fabric().name() == "sim"
    }

    /// Whether this rank, or another one of its node, has a helper, or will have one with its first plan.
    pub(crate) fn may_come(&self) -> bool {
        match self.wanted.kind {
            HelperKind::Off => false,
            HelperKind::Rank | HelperKind::Node => true,
            HelperKind::Auto => self.is_card() || self.worker.size() < affinity::usable(),
        }
    }

    /// For whom it is to work, if there is to be one: at the node's beginning, or as the `next` one of a node.
    fn help(&self, next: bool) -> Option<HelperScope> {
        let is_lowest = self.worker.rank().0 == 0;
        let of_node =
            || self.worker.node_state().take_helper(self.worker.rank()).then_some(HelperScope::Node);
        match self.wanted.kind {
            HelperKind::Off => None,
            HelperKind::Rank => Some(HelperScope::Rank),
            HelperKind::Node if is_lowest || next => of_node(),
            HelperKind::Node => None,
            // There it stands for the network card: processors are no matter.
            HelperKind::Auto if self.is_card() => Some(HelperScope::Rank),
            // In the rank that needs it first.
            HelperKind::Auto if self.worker.size() < affinity::usable() => of_node(),
            HelperKind::Auto => None,
        }
    }

    /// Starts it, if there is to be one and it has not been.
    pub(crate) fn start(&self) {
        let end = match &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Running(running) => Some(running.end.clone()),
            _ => None,
        };
        match end {
            Some(end) => self.worker.activate_helper(&end),
            None => self.begin(HelperControl::default()),
        }
    }

    fn begin(&self, end: HelperControl) {
        self.begin_as(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner), end, false);
    }

    /// Starts the node's, which was in a rank that has left, unless another thread is at it.
    fn succeed(&self) {
        if let Ok(mut state) = self.running.try_lock() {
            self.begin_as(&mut state, HelperControl::default(), true);
        }
    }

    fn begin_as(&self, state: &mut State, end: HelperControl, next: bool) {
        if matches!(*state, State::Idle)
            && let Some(help) = self.help(next)
        {
            *state = self.spawn(help, Arc::new(end)).map_or(State::Over, State::Running);
        }
    }

    fn spawn(&self, help: HelperScope, end: Arc<HelperControl>) -> Option<Running> {
        let (worker, over, processor) = (self.worker.clone(), end.clone(), self.wanted.processor);
        let body = move || {
            let bound = processor.map(affinity::bind);
            if let Some(Err(error)) = &bound {
                worker.log().say(Level::Warn, format_args!("the helper runs anywhere: {error}"));
            }
            let is_bound = matches!(bound, Some(Ok(_)));
            // Its rank goes on, but what others have left to the helper nobody would do: that is a death.
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| worker.help(help, is_bound, &over))) {
                if panic.is::<tasuki_fabric_sim::Killed>() {
                    resume_unwind(panic); // the simulation has killed this rank and tells the others itself
                }
                let how = format!("its helper panicked: {}", panic_message(&*panic));
                // The panic has been printed by its hook.
                worker.node_state().declare_dead_and_printed(worker.rank(), &how, worker.platform().now_ns());
            }
        };
        match self.worker.platform().spawn(Box::new(body)) {
            Ok(join) => Some(Running { help, end, join }),
            Err(error) => {
                self.worker.log().say(Level::Warn, format_args!("there is no helper: {error}"));
                None
            }
        }
    }

    /// Ends it, for good. A forked child has no such thread, and its copy of the lock may be held for ever.
    pub(super) fn end(&self) {
        if self.worker.fork_guard().is_forked() {
            return;
        }
        let state = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *running, State::Over)
        };
        if let State::Running(running) = state {
            self.worker.end_helper(&running.end);
            (running.join)();
            if running.help == HelperScope::Node {
                self.worker.node_state().give_up_helper();
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // In a panic nothing waits: the rank is dead, and so is its helper, as soon as it looks.
        if !std::thread::panicking() {
            self.end();
        }
    }
}
