//! handler: a word is handed to a handler of the other rank, and its answer comes back.

use crate::harness::measure::{Measure, peer, side, wrong};
use crate::harness::stopwatch::Stopwatch;
use crate::limit::Side;
use tasuki::{Handler, HandlerCx, Handlers, Job, Signal};

const NAME: &str = "invert";

/// The handlers of a job that plays this case.
pub(crate) fn handlers() -> Handlers {
    Handlers::new().add(NAME, |_: &HandlerCx<'_>, word: u64| !word)
}

/// Time of a round trip, while the called rank waits.
pub(crate) struct Ask<'j> {
    job: &'j Job,
    side: Side,
    handler: Handler,
    rounds: u64,
    end: Signal<'j>,
    past: u64,
}

impl<'j> Ask<'j> {
    /// Collective.
    pub(crate) fn new(job: &'j Job, rounds: u64) -> tasuki::Result<Ask<'j>> {
        let (handler, end) = (job.handler(NAME)?, job.signal()?);
        Ok(Ask { job, side: side(job), handler, rounds, end, past: 0 })
    }
}

impl Measure for Ask<'_> {
    fn measure(&mut self) -> tasuki::Result<f64> {
        self.past += 1;
        let to = peer(self.job);
        if self.side == Side::Follow {
            self.end.wait_at_least(self.past)?;
            return Ok(0.0);
        }
        let watch = Stopwatch::start();
        for word in 0..self.rounds {
            let answer: u64 = self.job.call_with_reply(to, self.handler, &word)?.wait()?;
            if answer != !word {
                return Err(wrong("handler"));
            }
        }
        let took = watch.ns(0);
        self.job.raise(self.end.on(to), 1)?;
        Ok(took as f64 / self.rounds as f64)
    }
}
