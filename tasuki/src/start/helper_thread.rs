//! The helper thread of a rank: started when it is needed, ended before the rank leaves.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use tasuki_core::base::log::Level;
use tasuki_core::base::panic_message;
use tasuki_core::bootstrap::helper_setting::{Helper as Wanted, HelperKind};
use tasuki_core::engine::{HelperControl, HelperScope, Worker};
use tasuki_core::os::affinity;

/// The helper thread of a rank, which may not have been started yet.
#[derive(Debug)]
pub(crate) struct Helper {
    worker: Arc<Worker>,
    wanted: Wanted,
    running: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// The helper has not been started.
    Idle,
    Running(Running),
    /// The helper has ended or could not be started. No other one will be started.
    Over,
}

struct Running {
    scope: HelperScope,
    control: Arc<HelperControl>,
    join: Box<dyn FnOnce() + Send>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.control.fmt(f)
    }
}

impl Helper {
    /// Starts the helper if the rank needs one from the beginning. The helper that simulates the
    /// network card starts on standby. If the rank with the node's helper leaves, the next rank
    /// that waits starts another one.
    pub(crate) fn new(worker: &Arc<Worker>, wanted: Wanted) -> Arc<Helper> {
        let helper = Helper { worker: worker.clone(), wanted, running: Mutex::new(State::Idle) };
        let helper = Arc::new(helper);
        let successor = Arc::downgrade(&helper);
        worker.node_helper().set_successor(Box::new(move || {
            let helper = successor.upgrade();
            helper.iter().for_each(|helper| helper.take_over());
        }));
        if wanted.kind != HelperKind::Auto {
            helper.start();
        } else if helper.is_network_card() {
            helper.begin(HelperControl::of_a_spare());
        }
        helper
    }

    /// Returns true if the helper simulates the network card, at which commands of other ranks arrive.
    fn is_network_card(&self) -> bool {
        self.wanted.kind == HelperKind::Auto && self.worker.fabric().name() == "sim"
    }

    /// Returns true if this rank, or another rank of its node, has a helper or will have one when its first plan is
    /// made.
    pub(crate) fn may_start(&self) -> bool {
        match self.wanted.kind {
            HelperKind::Off => false,
            HelperKind::Rank | HelperKind::Node => true,
            HelperKind::Auto => self.is_network_card() || self.worker.size() < affinity::usable(),
        }
    }

    /// The queues that the helper runs, if this rank is to have a helper. `next`: the rank that had the node's helper
    /// has left.
    fn scope(&self, next: bool) -> Option<HelperScope> {
        let is_lowest = self.worker.rank().0 == 0;
        let of_node =
            || self.worker.node_state().take_helper(self.worker.rank()).then_some(HelperScope::Node);
        match self.wanted.kind {
            HelperKind::Off => None,
            HelperKind::Rank => Some(HelperScope::Rank),
            HelperKind::Node if is_lowest || next => of_node(),
            HelperKind::Node => None,
            // This helper simulates the network card, so the number of processors does not matter.
            HelperKind::Auto if self.is_network_card() => Some(HelperScope::Rank),
            // In the rank that needs a helper first.
            HelperKind::Auto if self.worker.size() < affinity::usable() => of_node(),
            HelperKind::Auto => None,
        }
    }

    /// Starts the helper if the rank is to have one and it is not running.
    pub(crate) fn start(&self) {
        let control = match &*self.running.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Running(running) => Some(running.control.clone()),
            _ => None,
        };
        match control {
            Some(control) => self.worker.activate_helper(&control),
            None => self.begin(HelperControl::default()),
        }
    }

    fn begin(&self, control: HelperControl) {
        self.begin_if_idle(&mut self.running.lock().unwrap_or_else(PoisonError::into_inner), control, false);
    }

    /// Starts the node's helper after the rank that had it has left, unless another thread is about to do so.
    fn take_over(&self) {
        if let Ok(mut state) = self.running.try_lock() {
            self.begin_if_idle(&mut state, HelperControl::default(), true);
        }
    }

    fn begin_if_idle(&self, state: &mut State, control: HelperControl, next: bool) {
        if matches!(*state, State::Idle)
            && let Some(scope) = self.scope(next)
        {
            *state = self.spawn(scope, Arc::new(control)).map_or(State::Over, State::Running);
        }
    }

    fn spawn(&self, scope: HelperScope, control: Arc<HelperControl>) -> Option<Running> {
        let (worker, thread_control, processor) =
            (self.worker.clone(), control.clone(), self.wanted.processor);
        let body = move || {
            let bound = processor.map(affinity::bind);
            if let Some(Err(error)) = &bound {
                worker
                    .log()
                    .say(Level::Warn, format_args!("the helper is not bound to a processor: {error}"));
            }
            let is_bound = matches!(bound, Some(Ok(_)));
            // The rank itself could go on, but nobody would do the work that other ranks have left to the helper. So
            // the rank is declared dead.
            if let Err(panic) =
                catch_unwind(AssertUnwindSafe(|| worker.help(scope, is_bound, &thread_control)))
            {
                if panic.is::<tasuki_fabric_sim::Killed>() {
                    resume_unwind(panic); // the simulation has killed this rank and reports it itself
                }
                let how = format!("its helper panicked: {}", panic_message(&*panic));
                // The panic hook has printed the panic.
                worker.node_state().declare_dead_and_printed(worker.rank(), &how, worker.platform().now_ns());
            }
        };
        match self.worker.platform().spawn(Box::new(body)) {
            Ok(join) => Some(Running { scope, control, join }),
            Err(error) => {
                self.worker.log().say(Level::Warn, format_args!("the helper could not be started: {error}"));
                None
            }
        }
    }

    /// Ends the helper for good. A forked child has no helper thread, and its copy of the lock may be held for ever.
    pub(super) fn end(&self) {
        if self.worker.fork_guard().is_forked() {
            return;
        }
        let state = {
            let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *running, State::Over)
        };
        if let State::Running(running) = state {
            self.worker.end_helper(&running.control);
            (running.join)();
            if running.scope == HelperScope::Node {
                self.worker.node_state().give_up_helper();
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // In a panic nothing waits: the rank is dead, and the helper ends as soon as it notices that.
        if !std::thread::panicking() {
            self.end();
        }
    }
}
