//! The cases, as they are typed and listed.

use crate::cases::overlap::collective_overlap;
use crate::cases::overlap::copy_overlap;
use crate::cases::queue_contention;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What can be measured. The text of each is what `--list` shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, ValueEnum, Serialize, Deserialize)]
#[value(rename_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub(crate) enum Case {
    /// What bare loops reach: hand-over, remote load and add, memcpy by one and by two
    Limit,
    /// 8 bytes and their signal in one cache line, one way
    PutNear,
    /// 8 bytes, the signal on another page, one way
    Put,
    /// A message of 8 bytes whose receive is posted, one way
    Message,
    /// The same with 600 more receives outstanding; and the time from posting to posting
    Posted,
    /// The same as message while 6 more ranks wait on the same two processors
    Oversubscribed,
    /// Messages of 8 bytes a second: 64 receives posted, 64 sends, one answer
    Rate,
    /// Get 8 bytes that their owner wrote last
    Get,
    /// Fetch-add on a word that its owner wrote last
    Atomic,
    /// Commands posted to a queue that another rank drains, one by one and 50 in a call
    Post,
    /// 64 copies of 8 bytes to and fro between two ranks, each letting the next one go
    Chain,
    /// A handler of the other rank is given 8 bytes, and answers 8
    Handler,
    /// Put with signal of large blocks, one in flight
    BandwidthPut,
    /// Messages of large blocks from job memory to job memory, one in flight
    BandwidthJob,
    /// Messages of large blocks in memory that the program merely owns, one in flight
    BandwidthOwn,
    /// The same in windows of 64 with an answer each
    BandwidthStream,
    /// Commands that copy large blocks of job memory while both ranks wait, one in flight
    SharedCopy,
    /// Barriers back to back (--ranks)
    Barrier,
    /// Broadcasts back to back, the root another rank in each (--ranks, --sizes)
    Bcast,
    /// Sums at a root, likewise (--ranks, --sizes)
    Reduce,
    /// Sums everywhere (--ranks, --sizes)
    Allreduce,
    /// A block of each rank at a root, another one in each (--ranks, --sizes)
    Gather,
    /// A block of each rank everywhere (--ranks, --sizes)
    Allgather,
    /// A block of each rank for each other (--ranks, --sizes)
    Alltoall,
    /// A block for each rank from a root, another one in each (--ranks, --sizes)
    Scatter,
    /// A block of the sum at each rank (--ranks, --sizes)
    ReduceScatter,
    /// Plans of collectives, started and waited for, beside calls (--ranks, --sizes)
    Persistent,
    /// Plans by a list of one rank, beside lists of all ranks (--ranks, --sizes)
    SingleDriver,
    /// Start a fuzzy barrier that all others have started, and find it over (--ranks)
    Fuzzy,
    /// A fuzzy barrier beside 20 us of work, without that work (--ranks)
    FuzzyHidden,
    /// Commands a second that 16 ranks post to one queue of 1,024 places
    QueueContention,
    /// Copies of 1 MiB from a rank that works and makes no call, by the other one
    OverlapCopy,
    /// The same from that rank to one that sleeps, by a third one
    Thirdparty,
    /// Processor time of plans of two ranks that work on one processor, with a helper
    OverlapColl,
    /// Start 64 ranks that meet and leave, exec to exit (--ranks)
    Startup,
    /// Processor time of a job of 4 that waits for 10 s, launcher included (--ranks)
    Idle,
    /// From SIGKILL of a rank, or the launcher, until the last process is gone (--ranks)
    Death,
    /// Bytes that a rank takes, against the documented formula (--ranks)
    Memory,
}

/// Who plays a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Bare loops only.
    Limit,
    /// Two ranks that move words.
    Words,
    /// Two ranks that move blocks of several sizes.
    Blocks,
    /// Ranks that call all together, again and again.
    Collective,
    /// Ranks of which each has a part of its own, in a job of their own.
    Roles,
    /// Jobs that are started, watched and ended.
    Whole,
}

impl Case {
    /// All, in the order in which they are measured and shown.
    pub(crate) fn all() -> &'static [Case] {
        Case::value_variants()
    }

    /// Who plays it.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Case::Limit => Kind::Limit,
            Case::PutNear | Case::Put | Case::Get | Case::Atomic => Kind::Words,
            Case::Message | Case::Posted | Case::Oversubscribed | Case::Rate => Kind::Words,
            Case::Post | Case::Chain | Case::Handler => Kind::Words,
            Case::BandwidthPut | Case::BandwidthJob | Case::BandwidthOwn | Case::BandwidthStream => {
                Kind::Blocks
            }
            Case::SharedCopy => Kind::Blocks,
            Case::Barrier | Case::Bcast | Case::Reduce => Kind::Collective,
            Case::Allreduce | Case::Gather | Case::Allgather | Case::Alltoall => Kind::Collective,
            Case::Scatter | Case::ReduceScatter | Case::Persistent => Kind::Collective,
            Case::SingleDriver => Kind::Collective,
            Case::Fuzzy | Case::FuzzyHidden => Kind::Collective,
            Case::QueueContention | Case::OverlapCopy | Case::Thirdparty => Kind::Roles,
            Case::Startup | Case::Idle | Case::Death | Case::Memory => Kind::Whole,
            Case::OverlapColl => Kind::Whole,
        }
    }

    /// How many ranks it has, if the user says nothing.
    pub(crate) fn ranks(self) -> &'static [usize] {
        match self.kind() {
            _ if self == Case::Startup => &[64],
            _ if self == Case::QueueContention => &[queue_contention::RANKS],
            _ if self == Case::Thirdparty => &[copy_overlap::THIRDPARTY_RANKS],
            _ if self == Case::OverlapColl => &[collective_overlap::RANKS],
            _ if self == Case::Memory => &[4, 64, 1024], // the last are simulated
            Kind::Whole => &[4],
            _ if self == Case::SingleDriver => &[2, 4, 8, 16],
            Kind::Collective => &[2, 4, 8],
            _ => &[2],
        }
    }

    /// Whether two ranks, each on a processor of its own, play it against each other and the limits.
    pub(crate) fn is_for_two(self) -> bool {
        matches!(self.kind(), Kind::Limit | Kind::Words | Kind::Blocks)
    }

    /// Whether `--ranks` has a meaning for it.
    pub(crate) fn has_ranks(self) -> bool {
        matches!(self.kind(), Kind::Collective | Kind::Whole) && self != Case::OverlapColl
    }

    /// Whether `--sizes` has a meaning for it.
    pub(crate) fn has_sizes(self) -> bool {
        let has_no_block = matches!(self, Case::Barrier | Case::Fuzzy | Case::FuzzyHidden);
        matches!(self.kind(), Kind::Limit | Kind::Blocks | Kind::Collective) && !has_no_block
    }

    /// Whether other libraries can play it, too.
    pub(crate) fn has_peers(self) -> bool {
        let is_of_words = matches!(self, Case::Message | Case::Posted | Case::Rate | Case::Handler);
        let is_put = self == Case::BandwidthPut;
        let is_call = self.kind() == Kind::Collective && self != Case::SingleDriver;
        is_of_words || (self.kind() == Kind::Blocks && !is_put) || is_call
    }

    /// Whether it is shown beside other libraries: also where they have nothing like it.
    pub(crate) fn is_shown_beside(self) -> bool {
        self.has_peers() || matches!(self, Case::Post | Case::Chain)
    }

    /// What `--list` says.
    pub(crate) fn text(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        f.pad(value.as_ref().map_or("", |value| value.get_name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_json_rows() {
        for case in Case::all() {
            assert_eq!(serde_json::to_value(case).unwrap(), case.to_string());
            // With a name of 16 letters and a space before it, a line of the list has 100.
            assert!((10..=82).contains(&case.text().len()), "{case}");
        }
        assert_eq!(Case::BandwidthPut.to_string(), "bandwidth_put");
    }
}
