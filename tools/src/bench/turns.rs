//! Several figures of two ranks, taken in turn (A B A B), with the hand-over before and after each repetition.

use super::figure::Key;
use super::limit::{HandOver, Side};
use super::measure::{Measure, peer, side, wrong};
use super::repetition::{Level, Patience, Repetition, Series};
use std::time::Instant;
use tasuki::{Job, LineReader, LineWriter};

/// A figure and how it is taken.
pub(super) type Entry<'m> = (Key, Box<dyn Measure + 'm>);

/// What the lead says comes next; any other number is that of an entry.
const END: u64 = u64::MAX;
const HAND_OVER: u64 = u64::MAX - 1;

/// How two ranks take turns. The lead decides, the follower follows its orders.
pub(super) struct Turns<'j> {
    side: Side,
    hand_over: HandOver,
    orders: LineWriter<'j>,
    ordered: LineReader<'j>,
    patience: Patience,
}

/// What came of it, on the lead.
#[derive(Default)]
pub(super) struct Taken {
    /// The figures of the entries, in their order.
    pub(super) series: Vec<Series>,
    /// The hand-overs around them.
    pub(super) hand_overs: Series,
}

impl Taken {
    /// All figures count at one level of the hand-over only: that at which most were taken.
    fn agree(&mut self) {
        let level = Level::prevailing(self.hand_overs.all());
        self.hand_overs.only_at(level);
        self.series.iter_mut().for_each(|series| series.only_at(level));
    }
}

impl<'j> Turns<'j> {
    /// Collective.
    pub(super) fn new(job: &'j Job, hand_over: HandOver, patience: Patience) -> tasuki::Result<Turns<'j>> {
        let line = job.line()?;
        let (orders, ordered) = (line.writer(peer(job))?, line.reader(Some(peer(job))));
        Ok(Turns { side: side(job), hand_over, orders, ordered, patience })
    }

    /// Takes all entries again and again until patience ends; `round` is called before each round.
    pub(super) fn take(
        &mut self,
        entries: &mut [Entry<'_>],
        round: &mut dyn FnMut(&[Series]),
    ) -> tasuki::Result<Taken> {
        match self.side {
            Side::Lead => self.lead(entries, round),
            Side::Follow => self.follow(entries).map(|()| Taken::default()),
        }
    }

    fn lead(&mut self, entries: &mut [Entry<'_>], round: &mut dyn FnMut(&[Series])) -> tasuki::Result<Taken> {
        let mut taken = Taken { series: vec![Series::default(); entries.len()], ..Taken::default() };
        let start = Instant::now();
        while self.patience.lasts(taken.series.iter(), start.elapsed()) {
            round(&taken.series);
            let mut before = self.time_hand_over()?;
            for (index, (_, measure)) in entries.iter_mut().enumerate() {
                self.orders.put(&(index as u64))?;
                let figure = measure.measure()?;
                let after = self.time_hand_over()?;
                taken.series[index].push(Repetition { figure, before, after });
                taken.hand_overs.push(Repetition { figure: (before + after) / 2.0, before, after });
                before = after;
            }
            taken.agree();
        }
        self.orders.put(&END)?;
        Ok(taken)
    }

    fn time_hand_over(&mut self) -> tasuki::Result<f64> {
        self.orders.put(&HAND_OVER)?;
        Ok(self.hand_over.measure())
    }

    fn follow(&mut self, entries: &mut [Entry<'_>]) -> tasuki::Result<()> {
        loop {
            match self.ordered.receive()? {
                END => return Ok(()),
                HAND_OVER => drop(self.hand_over.measure()),
                index => {
                    let entry = entries.get_mut(index as usize).ok_or_else(|| wrong("an order"))?;
                    entry.1.measure()?;
                }
            }
        }
    }
}
