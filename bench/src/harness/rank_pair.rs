//! The program of two ranks that play cases against limits and other libraries: which figures, in which groups.

use crate::case::{Case, Kind};
use crate::cases::bandwidth::{Areas, Arena, Bandwidth, MessageStream, Shape, WINDOW};
use crate::cases::buffer_state::State;
use crate::cases::handler_call::Ask;
use crate::cases::message_latency::{self, Message, Posted};
use crate::cases::message_rate::{self, PostGap, Rate};
use crate::cases::put_latency::{Put, PutNear};
use crate::cases::queue_commands::{Chain, Post};
use crate::cases::remote_access::Remote;
use crate::harness::control_channel::Link;
use crate::harness::interleave::{Entry, Player};
use crate::harness::measure::{Measure, side};
use crate::harness::measurement_plan::Plan;
use crate::harness::repetition::Series;
use crate::harness::session::Session;
use crate::limit::{Access, Copies, CopyLimit, RemoteLimit};
use crate::result::figure::{Key, Point};
use crate::sizes;
use tasuki::{Error, Job};

/// The group of everything that moves a word, the hand-over with it.
const WORDS: &str = "words";
/// The group of the hand-over where no words are moved.
const HAND_OVER: &str = "hand-over";
/// Cases of words that take turns with each other: those that are divided by each other, or by one limit.
const WORDS_IN_TURN: [(&str, &[Case]); 5] = [
    (WORDS, &[Case::Limit, Case::PutNear, Case::Put, Case::Get, Case::Atomic]),
    ("messages", &[Case::Message, Case::Posted, Case::Oversubscribed]),
    ("message rate", &[Case::Rate]),
    ("commands", &[Case::Post, Case::Chain]),
    ("handlers", &[Case::Handler]),
];

/// Both ranks run this.
pub(crate) fn app(job: &Job, plan: &Plan, link: Link<'_>) -> tasuki::Result<()> {
    let wants = |cases: &[Case]| plan.cases.iter().any(|case| cases.contains(case));
    let words: Vec<_> = WORDS_IN_TURN.into_iter().filter(|(_, cases)| wants(cases)).collect();
    let sizes = sizes::of_all(&plan.cases, &plan.sizes);
    let groups = words.len() + sizes.len() * State::all().len();
    let mut pair = Pair { session: Session::new(job, plan, link, groups)?, hand_overs: Series::default() };
    for &(what, cases) in &words {
        pair.words(what, cases)?;
    }
    if !sizes.is_empty() {
        pair.blocks(&sizes, words.is_empty())?;
    }
    let group = if words.is_empty() { HAND_OVER } else { WORDS };
    pair.session.tell(group, Key::limit("hand_over"), pair.hand_overs);
    Ok(())
}

struct Pair<'j> {
    session: Session<'j>,
    hand_overs: Series,
}

impl<'j> Pair<'j> {
    fn wants(&self, case: Case) -> bool {
        self.session.plan.cases.contains(&case)
    }

    /// Some cases that move a word. All of them are one group of figures: they are compared with the same limits, and
    /// some with each other.
    fn words(&mut self, what: &str, cases: &[Case]) -> tasuki::Result<()> {
        let shared = self.session.shared.clone();
        let mut entries = Vec::new();
        for &case in cases {
            let is_reference =
                case == Case::Message && (self.wants(Case::Posted) || self.wants(Case::Oversubscribed));
            if self.wants(case) || is_reference {
                entries.extend(self.word_entries(case)?);
            }
        }
        let remote = [(Case::Get, Access::Load, "remote_load"), (Case::Atomic, Access::Add, "remote_add")];
        for (case, access, limit) in remote {
            if cases.contains(&case) && (self.wants(case) || self.wants(Case::Limit)) {
                let effort = self.session.plan.effort;
                let side = side(self.session.job);
                let measure = RemoteLimit::new(&shared, side, effort.words, effort.passes, access);
                entries.push((Key::limit(limit), ours(measure)));
            }
        }
        let points = cases.iter().filter(|&&case| self.wants(case)).flat_map(|&case| self.points(case));
        entries.extend(self.session.others(&points.collect::<Vec<_>>())?);
        let hand_overs = self.session.take(WORDS, what, entries)?;
        self.hand_overs.append(hand_overs);
        Ok(())
    }

    fn word_entries<'m>(&self, case: Case) -> tasuki::Result<Vec<Entry<'m>>>
    where
        'j: 'm,
    {
        let (job, effort) = (self.session.job, self.session.plan.effort);
        let key = |variant| Key::ours(case, variant, size_of::<u64>() as u64);
        let message = |mode| Message::new(job, mode, effort.rounds);
        let posted = |mode| Posted::new(job, Message::new(job, mode, effort.posted_rounds));
        let remote = |access| Remote::new(job, effort.words, effort.passes, access);
        let (begun, call) = (message_latency::SendMode::Begun, message_latency::SendMode::Call);
        Ok(match case {
            Case::PutNear => vec![(key(""), ours(PutNear::new(job, effort.rounds)?))],
            Case::Put => vec![(key(""), ours(Put::new(job, effort.rounds)?))],
            Case::Get => vec![(key(""), ours(remote(Access::Load)?))],
            Case::Atomic => vec![(key(""), ours(remote(Access::Add)?))],
            Case::Message => {
                vec![(key("").by("begun"), ours(message(begun))), (key("").by("call"), ours(message(call)))]
            }
            Case::Posted => vec![
                (key("").by("begun"), ours(posted(begun))),
                (key("").by("call"), ours(posted(call))),
                (key("post_gap"), ours(Posted::new(job, PostGap::new(job, effort.gap_windows)))),
            ],
            Case::Rate => {
                [("begun", message_rate::WindowMode::Begun), ("call", message_rate::WindowMode::Call)]
                    .map(|(name, mode)| (key("").by(name), ours(Rate::new(job, mode, effort.rate_windows))))
                    .into()
            }
            Case::Post => vec![
                (key("one_by_one"), ours(Post::new(job, 1, effort.command_rounds)?)),
                (key("by_50"), ours(Post::new(job, 50, effort.command_rounds)?)),
            ],
            Case::Chain => vec![
                (key("by_source"), ours(Chain::new(job, true, effort.command_rounds)?)),
                (key("free"), ours(Chain::new(job, false, effort.command_rounds)?)),
            ],
            Case::Handler => vec![(key(""), ours(Ask::new(job, effort.posted_rounds)?))],
            _ => Vec::new(),
        })
    }

    /// What others can play of a case of words.
    fn points(&self, case: Case) -> Vec<Point> {
        match case {
            // Other ranks of our own.
            Case::Oversubscribed => vec![Point::of_word(case, "")],
            _ if !self.session.plan.has_peers || !case.has_peers() => Vec::new(),
            Case::Posted => vec![Point::of_word(case, ""), Point::of_word(case, "post_gap")],
            _ => vec![Point::of_word(case, "")],
        }
    }

    /// Blocks of each size in each state: a group of its own each, with the copy limits of the same state.
    fn blocks(&mut self, sizes: &[u64], keeps_hand_overs: bool) -> tasuki::Result<()> {
        let (job, plan, shared) = (self.session.job, self.session.plan, self.session.shared.clone());
        let area = plan.effort.area(sizes);
        let new_arena = || Areas::of(&plan.cases).map(|areas| Arena::new(job, areas, area)).transpose();
        let new_copies = || {
            let copies = Copies::new(&shared, side(job), area)
                .map_err(|error| Error::from_io("memory for the copy limit", &error))?;
            job.barrier().map(|()| copies)
        };
        let (arena, copies);
        if plan.limit_first {
            (copies, arena) = (new_copies()?, new_arena()?);
        } else {
            (arena, copies) = (new_arena()?, new_copies()?);
        }
        for &bytes in sizes {
            for state in State::all() {
                let mut entries = self.block_entries(arena.as_ref(), &copies, bytes, state);
                entries.extend(self.session.others(&self.block_points(bytes, state))?);
                let group = format!("{} {state}", sizes::show(bytes));
                let hand_overs = self.session.take(&group, &group, entries)?;
                if keeps_hand_overs {
                    self.hand_overs.append(hand_overs);
                }
            }
        }
        Ok(())
    }

    /// Cases that have blocks of this size.
    fn block_cases(&self, bytes: u64) -> impl Iterator<Item = Case> {
        let plan = self.session.plan;
        let cases = plan.cases.iter().copied().filter(|case| case.kind() == Kind::Blocks);
        cases.filter(move |&case| sizes::of(case, &plan.sizes).contains(&bytes))
    }

    fn block_points(&self, bytes: u64, state: State) -> Vec<Point> {
        let has_peers = |case: &Case| self.session.plan.has_peers && case.has_peers();
        let cases = self.block_cases(bytes).filter(has_peers);
        cases.map(|case| Point::of_blocks(case, bytes, state)).collect()
    }

    fn block_entries<'m>(
        &self,
        arena: Option<&'m Arena<'j>>,
        copies: &'m Copies<'m>,
        bytes: u64,
        state: State,
    ) -> Vec<Entry<'m>> {
        let effort = self.session.plan.effort;
        let (slots, blocks) = (effort.slots(bytes, state.cold), effort.blocks(bytes));
        let copy = |pair| ours(CopyLimit::new(copies, (bytes as usize, slots), state.fresh, pair, blocks));
        let shape = Shape::new(bytes, slots, state);
        let mut entries: Vec<Entry<'m>> = Vec::new();
        for (case, arena) in self.block_cases(bytes).flat_map(|case| Some((case, arena?))) {
            let measure = match case {
                Case::BandwidthStream => {
                    ours(MessageStream::new(arena, shape, effort.windows(bytes, WINDOW)))
                }
                _ => ours(Bandwidth::new(arena, case, shape, blocks)),
            };
            entries.push((Point::of_blocks(case, bytes, state).ours(), measure));
        }
        entries.push((Key::copy_limit("memcpy", state, bytes), copy(false)));
        if self.wants(Case::Limit) || self.block_cases(bytes).any(|case| case == Case::SharedCopy) {
            entries.push((Key::copy_limit("pair", state, bytes), copy(true)));
        }
        entries
    }
}

fn ours<'m>(measure: impl Measure + 'm) -> Player<'m> {
    Player::Ours(Box::new(measure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::measurement_plan::Effort;
    use crate::limit::SharedFile;
    use crate::result::figure::{Answer, Event, Question};
    use crate::result::library::Library;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    /// The figures that two ranks, here threads, tell of these cases.
    fn figures(cases: &[Case], sizes: &[u64]) -> Vec<(Key, Series)> {
        let effort = Effort::TINY;
        let file = SharedFile::create(Copies::bytes(effort.area(sizes))).unwrap();
        let (shared, limit_first) = (file.path(), true);
        let (cases, sizes) = (cases.to_vec(), sizes.to_vec());
        let plan = Plan { cases, sizes, shared, limit_first, has_peers: true, effort };
        let told = Mutex::new(Vec::new());
        tasuki::local_with(2, &plan.handlers(), |job| {
            let is_lead = job.rank().0 == 0;
            let tell = |event| match event {
                Event::Figure { key, series, .. } if is_lead => told.lock().unwrap().push((key, series)),
                _ => {}
            };
            app(job, &plan, Link { tell: &tell, ask: &|question| Ok(answer(question)) })
        })
        .unwrap();
        told.into_inner().unwrap()
    }

    /// A bench with one other library that is always the same, and one that fails.
    fn answer(question: Question) -> Answer {
        let of = |library, point: &Point| Key { library, ..point.ours() };
        match question {
            Question::Who(points) => {
                let both = |point| [of(Library::Ucx, point), of(Library::Mpich, point)];
                Answer::Ready(points.iter().flat_map(both).collect())
            }
            Question::Measure(number) => Answer::Figure((number % 2 == 0).then_some(7.0)),
        }
    }

    #[test]
    fn every_case_for_two_tells_its_figures_and_their_limits() {
        let cases: Vec<Case> = Case::all().iter().copied().filter(|case| case.is_for_two()).collect();
        let told = figures(&cases, &[8, 4096]);
        let keys: BTreeSet<&Key> = told.iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), told.len(), "each figure is told once");
        for case in cases {
            let by = |library| keys.iter().any(|key| (key.case, key.library) == (case, library));
            assert!(by(Library::Tasuki) || case == Case::Limit || case == Case::Oversubscribed, "{case}");
            assert_eq!(by(Library::Ucx), case.has_peers() || case == Case::Oversubscribed, "{case}");
        }
        for key in &keys {
            assert!(key.bounded_by().is_none_or(|limit| keys.contains(&limit)), "{key:?}");
        }
        for (key, series) in &told {
            assert!(series.all().iter().all(|repetition| repetition.figure > 0.0), "{key:?}");
            assert_eq!(series.all().is_empty(), key.library == Library::Mpich, "{key:?}");
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
        assert!(names(&[Case::SharedCopy]).contains(&"limit pair_hot".to_string()));
    }
}
