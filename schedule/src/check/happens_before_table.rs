//! A table of what each event implies about other events, in any start.
//!
//! A fact about an event stays true: what has happened in start k has happened in all starts before it. So the
//! knowledge of event e of start k about a fact f is one number, the *lag*: f has happened in start k - lag, and in all
//! starts before that one, if there were that many.

/// For each event, the lags of all facts.
#[derive(Debug)]
pub(super) struct HappensBeforeTable {
    /// 0 if nothing is known; otherwise [`u8::MAX`] minus the lag. So larger numbers mean more knowledge.
    known: Vec<u8>,
    row: usize,
}

/// The largest lag that is stored; larger ones count as unknown.
pub(super) const LAG_MAX: u32 = u8::MAX as u32 - 1;

impl HappensBeforeTable {
    /// Creates a table without knowledge.
    pub(super) fn new(events: usize, facts: usize) -> HappensBeforeTable {
        HappensBeforeTable { known: vec![0; events * facts], row: facts }
    }

    /// Number of starts before that of the event in which the fact is known to have happened.
    #[inline]
    pub(super) fn lag(&self, event: usize, fact: usize) -> Option<u32> {
        let known = self.known[event * self.row + fact];
        (known > 0).then(|| u32::from(u8::MAX - known))
    }

    /// Adds a fact to an event. Returns true if the event did not know as much.
    #[inline]
    pub(super) fn add(&mut self, event: usize, fact: usize, lag: u32) -> bool {
        let more = u8::MAX.saturating_sub(u8::try_from(lag).unwrap_or(u8::MAX));
        let known = &mut self.known[event * self.row + fact];
        let is_new = more > *known;
        *known = more.max(*known);
        is_new
    }

    /// Adds to an event all knowledge of another event, `lag` starts before. Returns true if any of it is new.
    pub(super) fn add_all(&mut self, event: usize, from: usize, lag: u32) -> bool {
        if event == from || lag > LAG_MAX {
            return false; // knowledge of its own earlier start adds nothing
        }
        let (row, lag) = (self.row, lag as u8);
        let (low, high) = self.known.split_at_mut(event.max(from) * row);
        let (to, from) = if event < from {
            (&mut low[event * row..][..row], &high[..row])
        } else {
            (&mut high[..row], &low[from * row..][..row])
        };
        let mut news = 0;
        for (known, more) in to.iter_mut().zip(from) {
            let now = more.saturating_sub(lag).max(*known);
            news |= now ^ *known;
            *known = now;
        }
        news != 0
    }
}
