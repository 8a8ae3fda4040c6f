//! oversubscribed: two ranks exchange messages while others wait on the same processors. A job of its own, since the
//! two are to be compared with a job of two; it is spoken to as the programs of other libraries are.

use crate::cases::message_latency::{Message, SendMode};
use crate::harness::measure::Measure;
use tasuki::{Job, Rank, Slot};

/// Ranks: two, and those that wait.
pub(crate) const RANKS: usize = 8;
/// On which ranks are told what is next.
const ORDERS: Slot = Slot(4);

/// All ranks run this; the first hears what is wanted, line by line, and says what came of it.
pub(crate) fn app(
    job: &Job,
    mode: SendMode,
    rounds: u64,
    hear: &dyn Fn() -> tasuki::Result<String>,
    say: &dyn Fn(&str),
) -> tasuki::Result<()> {
    let (world, lead) = (job.world(), Rank(0));
    let mut message = (job.rank() <= Rank(1)).then(|| Message::new(job, mode, rounds));
    world.barrier()?;
    if job.rank() == lead {
        say(r#"{"ready":"oversubscribed"}"#);
    }
    loop {
        let mut order = [0_u64];
        if job.rank() == lead {
            order[0] = u64::from(hear()?.starts_with("go"));
            // The one that takes part is told last: the others wait for what comes next, then.
            job.ranks().skip(1).rev().try_for_each(|rank| world.send(&order, rank, ORDERS))?;
        } else {
            world.recv(&mut order, lead, ORDERS)?;
        }
        if order[0] == 0 {
            return world.barrier();
        }
        let figure = message.as_mut().map(Message::measure).transpose()?;
        if let Some(figure) = figure.filter(|_| job.rank() == lead) {
            say(&format!(r#"{{"ranks":{},"bytes":8,"value":{figure}}}"#, job.size()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn two_exchange_messages_while_others_wait() {
        let (orders, said) = (Mutex::new(vec!["end\n", "go 8\n", "go 8\n"]), Mutex::new(Vec::new()));
        let hear = || Ok(orders.lock().unwrap().pop().unwrap_or_default().to_string());
        let say = |line: &str| said.lock().unwrap().push(line.to_string());
        tasuki::local(4, |job| app(job, SendMode::Begun, 20, &hear, &say)).unwrap();
        let said = said.into_inner().unwrap();
        assert_eq!(said.len(), 3);
        assert!(said[2].starts_with(r#"{"ranks":4,"bytes":8,"value":"#), "{}", said[2]);
    }
}
