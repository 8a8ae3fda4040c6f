//! The program of two ranks that play cases against limits: which figures, in which groups.

use super::bandwidth::{Arena, BandwidthPut};
use super::case::Case;
use super::figure::{Event, Key};
use super::latency::{Put, PutNear};
use super::limit::{Access, Copies, CopyLimit, HandOver, RemoteLimit, Shared};
use super::measure::side;
use super::plan::Plan;
use super::remote::Remote;
use super::repetition::Series;
use super::sizes;
use super::state::State;
use super::turns::{Entry, Taken, Turns};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tasuki::{Error, Job};

/// What a rank does with what it has to tell.
pub(super) type Tell<'t> = &'t dyn Fn(Event);

/// The group of everything that moves a word, the hand-over with it.
const WORDS: &str = "words";
/// The group of the hand-over where no words are moved.
const HAND_OVER: &str = "hand-over";
/// How often progress is told at most.
const TELL_EVERY: Duration = Duration::from_millis(300);
/// Whoever is told needs a processor to hear it, and the two that there may be are ours: it gets this time.
const HEARD_AFTER: Duration = Duration::from_millis(3);

/// Both ranks run this.
pub(super) fn app(job: &Job, plan: &Plan, tell: Tell<'_>) -> tasuki::Result<()> {
    let shared = Shared::open(&plan.shared).map_err(|error| Error::from_io("the limit's memory", &error))?;
    let shared = Arc::new(shared);
    let hand_over = HandOver::new(shared.clone(), side(job), plan.effort.hand_over);
    tell(Event::HandOver(hand_over.way().to_string()));
    let turns = Turns::new(job, hand_over, plan.effort.patience)?;
    let mut pair = Pair { job, plan, tell, shared, turns, hand_overs: Series::default(), done: 0, groups: 0 };
    let words = pair.wants_words();
    let blocks = if pair.wants_blocks() { plan.sizes.len() * State::all().len() } else { 0 };
    pair.groups = blocks + usize::from(words);
    if words {
        pair.words()?;
    }
    if blocks > 0 {
        pair.blocks()?;
    }
    let group = if words { WORDS } else { HAND_OVER }.into();
    tell(Event::Figure { group, key: Key::limit("hand_over"), series: pair.hand_overs });
    Ok(())
}

struct Pair<'j> {
    job: &'j Job,
    plan: &'j Plan,
    tell: Tell<'j>,
    shared: Arc<Shared>,
    turns: Turns<'j>,
    hand_overs: Series,
    /// Groups of figures that have been taken, and how many there are.
    done: usize,
    groups: usize,
}

impl<'j> Pair<'j> {
    fn wants(&self, case: Case) -> bool {
        self.plan.cases.contains(&case)
    }

    fn wants_words(&self) -> bool {
        [Case::Limit, Case::PutNear, Case::Put, Case::Get, Case::Atomic].iter().any(|&case| self.wants(case))
    }

    fn wants_blocks(&self) -> bool {
        self.wants(Case::Limit) || self.wants(Case::BandwidthPut)
    }

    /// Everything that moves a word, in one group: each is compared with the same limits of the same moments.
    fn words(&mut self) -> tasuki::Result<()> {
        let shared = self.shared.clone();
        let entries = self.word_entries(&shared)?;
        let taken = self.take(WORDS, entries)?;
        self.hand_overs = taken.hand_overs;
        Ok(())
    }

    fn word_entries<'m>(&self, shared: &'m Shared) -> tasuki::Result<Vec<Entry<'m>>>
    where
        'j: 'm,
    {
        let (job, effort) = (self.job, self.plan.effort);
        let mut entries: Vec<Entry<'m>> = Vec::new();
        if self.wants(Case::PutNear) {
            entries.push((ours(Case::PutNear), Box::new(PutNear::new(job, effort.rounds)?)));
        }
        if self.wants(Case::Put) {
            entries.push((ours(Case::Put), Box::new(Put::new(job, effort.rounds)?)));
        }
        let remote = [(Case::Get, Access::Load, "remote_load"), (Case::Atomic, Access::Add, "remote_add")];
        for (case, access, limit) in remote {
            let (words, passes) = (effort.words, effort.passes);
            if self.wants(case) {
                entries.push((ours(case), Box::new(Remote::new(job, words, passes, access)?)));
            }
            if self.wants(case) || self.wants(Case::Limit) {
                let measure = RemoteLimit::new(shared, side(job), words, passes, access);
                entries.push((Key::limit(limit), Box::new(measure)));
            }
        }
        Ok(entries)
    }

    /// Blocks of each size in each state: a group of its own each, with the copy limits of the same state.
    fn blocks(&mut self) -> tasuki::Result<()> {
        let area = self.plan.effort.area(&self.plan.sizes);
        let shared = self.shared.clone();
        let new_arena = || self.wants(Case::BandwidthPut).then(|| Arena::new(self.job, area)).transpose();
        let new_copies = || {
            let copies = Copies::new(&shared, side(self.job), area)
                .map_err(|error| Error::from_io("memory for the copy limit", &error))?;
            self.job.barrier().map(|()| copies)
        };
        let (arena, copies);
        if self.plan.limit_first {
            (copies, arena) = (new_copies()?, new_arena()?);
        } else {
            (arena, copies) = (new_arena()?, new_copies()?);
        }
        let keeps_hand_overs = self.hand_overs.all().is_empty();
        for &bytes in &self.plan.sizes {
            for state in State::all() {
                let entries = self.block_entries(arena.as_ref(), &copies, bytes, state);
                let taken = self.take(&format!("{} {state}", sizes::show(bytes)), entries)?;
                if keeps_hand_overs {
                    self.hand_overs.append(taken.hand_overs);
                }
            }
        }
        Ok(())
    }

    fn block_entries<'m>(
        &self,
        arena: Option<&'m Arena<'j>>,
        copies: &'m Copies<'m>,
        bytes: u64,
        state: State,
    ) -> Vec<Entry<'m>> {
        let effort = self.plan.effort;
        let (slots, blocks) = (effort.slots(bytes, state.cold), effort.blocks(bytes));
        let copy =
            |pair| Box::new(CopyLimit::new(copies, (bytes as usize, slots), state.fresh, pair, blocks));
        let mut entries: Vec<Entry<'m>> = Vec::new();
        if let Some(arena) = arena {
            let measure = BandwidthPut::new(arena, (bytes, slots), state, blocks);
            let key = Key::of_two(Case::BandwidthPut, &state.to_string(), bytes);
            entries.push((key, Box::new(measure)));
        }
        entries.push((Key::copy_limit("memcpy", state, bytes), copy(false)));
        if self.wants(Case::Limit) {
            entries.push((Key::copy_limit("pair", state, bytes), copy(true)));
        }
        entries
    }

    /// Takes a group of figures and tells them.
    fn take(&mut self, what: &str, mut entries: Vec<Entry<'_>>) -> tasuki::Result<Taken> {
        let (tell, done, groups) = (self.tell, self.done as f64, self.groups as f64);
        let wanted = self.plan.effort.patience.wanted as f64;
        let mut told: Option<Instant> = None;
        let taken = self.turns.take(&mut entries, &mut |series| {
            if told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
                return;
            }
            let least = series.iter().map(Series::counted).min().unwrap_or(0) as f64 / wanted;
            let share = (done + least.min(1.0)) / groups;
            tell(Event::Progress { what: what.to_string(), share });
            told = Some(Instant::now());
            std::thread::sleep(HEARD_AFTER);
        })?;
        self.done += 1;
        for ((key, _), series) in entries.into_iter().zip(&taken.series) {
            tell(Event::Figure { group: what.into(), key, series: series.clone() });
        }
        Ok(taken)
    }
}

fn ours(case: Case) -> Key {
    Key::of_two(case, "", size_of::<u64>() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::limit::SharedFile;
    use super::super::plan::Effort;
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    /// The figures that two ranks, here threads, tell of these cases.
    fn figures(cases: &[Case], sizes: &[u64]) -> Vec<(Key, Series)> {
        let effort = Effort::TINY;
        let file = SharedFile::create(Copies::bytes(effort.area(sizes))).unwrap();
        let (shared, limit_first) = (file.path(), true);
        let plan = Plan { cases: cases.to_vec(), sizes: sizes.to_vec(), shared, limit_first, effort };
        let told = Mutex::new(Vec::new());
        tasuki::local(2, |job| {
            let is_lead = job.rank().0 == 0;
            app(job, &plan, &|event| match event {
                Event::Figure { key, series, .. } if is_lead => told.lock().unwrap().push((key, series)),
                _ => {}
            })
        })
        .unwrap();
        told.into_inner().unwrap()
    }

    #[test]
    fn every_case_for_two_tells_its_figures_and_their_limits() {
        let cases: Vec<Case> = Case::all().iter().copied().filter(|case| case.is_for_two()).collect();
        let told = figures(&cases, &[8, 4096]);
        let keys: BTreeSet<&Key> = told.iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), told.len(), "each figure is told once");
        for case in cases {
            assert!(keys.iter().any(|key| key.case == case), "{case}");
        }
        for key in &keys {
            assert!(key.bounded_by().is_none_or(|limit| keys.contains(&limit)), "{key:?}");
        }
        for (key, series) in &told {
            assert!(series.all().iter().all(|repetition| repetition.figure > 0.0), "{key:?}");
            assert!(!series.all().is_empty(), "{key:?}");
        }
    }

    #[test]
    fn a_case_brings_its_own_limit_only() {
        let names = |cases: &[Case]| -> Vec<String> {
            figures(cases, &[4096])
                .into_iter()
                .map(|(key, _)| format!("{} {}", key.case, key.variant))
                .collect()
        };
        assert_eq!(names(&[Case::Get]), ["get ", "limit remote_load", "limit hand_over"]);
        assert!(!names(&[Case::BandwidthPut]).contains(&"limit pair_hot".to_string()));
    }
}
