//! Several figures, taken in turn (A B A B), with the hand-over before and after each repetition.

use crate::harness::control_channel::Link;
use crate::harness::measure::{Measure, wrong};
use crate::harness::repetition::{Level, Patience, Repetition, Series};
use crate::limit::HandOver;
use crate::result::figure::{Answer, Key, Question};
use std::time::Instant;
use tasuki::{Job, PayloadReader, PayloadWriter, Rank};

/// A figure and who takes it.
pub(crate) type Entry<'m> = (Key, Player<'m>);

/// Who takes a figure.
pub(crate) enum Player<'m> {
    /// The ranks of this job, together.
    Ours(Box<dyn Measure + 'm>),
    /// A program that the bench has started, by the number that the bench gave it. Known to the lead only.
    Other(usize),
}

/// What the lead says comes next; any other number is that of an entry.
const END: u64 = u64::MAX;
const HAND_OVER: u64 = u64::MAX - 1;

/// How ranks take turns. The lead decides, the others follow its orders. Each hand-over is between the first two, the
/// others sleep meanwhile.
pub(crate) struct Turns<'j> {
    job: &'j Job,
    /// Of the first two ranks.
    hand_over: Option<HandOver>,
    /// To each other rank; of the lead only.
    orders: Vec<PayloadWriter<'j>>,
    ordered: PayloadReader<'j>,
    patience: Patience,
}

/// What came of it, on the lead.
#[derive(Default)]
pub(crate) struct TurnFigures {
    /// The figures of the entries, in their order.
    pub(crate) series: Vec<Series>,
    /// The hand-overs around them.
    pub(crate) hand_overs: Series,
}

impl TurnFigures {
    /// All figures count at one level of the hand-over only: that at which most were taken.
    fn agree(&mut self) {
        let level = Level::prevailing(self.hand_overs.all());
        self.hand_overs.only_at(level);
        self.series.iter_mut().for_each(|series| series.only_at(level));
    }
}

impl<'j> Turns<'j> {
    /// Collective.
    pub(crate) fn new(
        job: &'j Job,
        hand_over: Option<HandOver>,
        patience: Patience,
    ) -> tasuki::Result<Turns<'j>> {
        let (line, lead) = (job.payload_signal()?, Rank(0));
        let others = job.ranks().skip(1).filter(|_| job.rank() == lead);
        let orders = others.map(|rank| line.writer(rank)).collect::<tasuki::Result<_>>()?;
        Ok(Turns { job, hand_over, orders, ordered: line.reader(Some(lead)), patience })
    }

    /// How many repetitions are to count from now on.
    pub(crate) fn want(&mut self, repetitions: usize) {
        self.patience.wanted = repetitions;
    }

    /// Takes all entries again and again until patience ends; `round` is called before each round.
    pub(crate) fn take(
        &mut self,
        entries: &mut [Entry<'_>],
        link: &Link<'_>,
        round: &mut dyn FnMut(&[Series]),
    ) -> tasuki::Result<TurnFigures> {
        if self.orders.is_empty() {
            return self.follow(entries).map(|()| TurnFigures::default());
        }
        let mut taken =
            TurnFigures { series: vec![Series::default(); entries.len()], ..TurnFigures::default() };
        let (mut has_failed, start) = (vec![false; entries.len()], Instant::now());
        loop {
            let counting = taken.series.iter().zip(&has_failed).filter(|(_, failed)| !**failed);
            if !self.patience.lasts(counting.map(|(series, _)| series), start.elapsed()) {
                break;
            }
            round(&taken.series);
            let mut before = self.time_hand_over()?;
            for (index, (_, player)) in entries.iter_mut().enumerate() {
                if has_failed[index] {
                    continue;
                }
                let Some(figure) = self.measure(index, player, link)? else {
                    has_failed[index] = true;
                    continue;
                };
                let after = self.time_hand_over()?;
                taken.series[index].push(Repetition { figure, before, after });
                taken.hand_overs.push(Repetition { figure: (before + after) / 2.0, before, after });
                before = after;
            }
            taken.agree();
        }
        self.order(END)?;
        self.job.barrier()?; // the next order must not overtake this one
        Ok(taken)
    }

    /// A repetition; `None` of a program that has failed.
    fn measure(
        &mut self,
        index: usize,
        player: &mut Player<'_>,
        link: &Link<'_>,
    ) -> tasuki::Result<Option<f64>> {
        match player {
            Player::Ours(measure) => {
                self.order(index as u64)?;
                measure.measure().map(Some)
            }
            Player::Other(number) => match (link.ask)(Question::Measure(*number))? {
                Answer::Figure(figure) => Ok(figure),
                Answer::Ready(_) => Err(wrong("an answer of the bench")),
            },
        }
    }

    fn order(&mut self, what: u64) -> tasuki::Result<()> {
        self.orders.iter_mut().try_for_each(|line| line.put(&what))
    }

    fn time_hand_over(&mut self) -> tasuki::Result<f64> {
        self.orders[0].put(&HAND_OVER)?;
        Ok(self.hand_over.as_mut().map_or(0.0, HandOver::measure))
    }

    fn follow(&mut self, entries: &mut [Entry<'_>]) -> tasuki::Result<()> {
        loop {
            match self.ordered.receive()? {
                END => return self.job.barrier(),
                HAND_OVER => drop(self.hand_over.as_mut().map(HandOver::measure)),
                index => match entries.get_mut(index as usize) {
                    Some((_, Player::Ours(measure))) => drop(measure.measure()?),
                    _ => return Err(wrong("an order")),
                },
            }
        }
    }
}
