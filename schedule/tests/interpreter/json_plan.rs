//! A plan as data, which can be read from JSON, changed and written again. Written from
//! docs/guide/plan-files.md.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) name: String,
    pub(crate) ranks: usize,
    pub(crate) parts: Vec<Part>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) rank: usize,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) signals: Vec<Signal>,
    pub(crate) steps: Vec<Step>,
    pub(crate) finish: Vec<When>,
    pub(crate) contract: Contract,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) turns: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) swapped: Option<u32>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Signal {
    pub(crate) name: String,
    pub(crate) per_start: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) queue: u16,
    pub(crate) when: When,
    #[serde(rename = "do")]
    pub(crate) act: Act,
    pub(crate) then: Vec<Effect>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct When {
    pub(crate) signal: usize,
    pub(crate) count: u64,
    #[serde(default)]
    pub(crate) lag: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Act {
    Nothing,
    Copy { from: Place, to: Place, bytes: u64 },
    Reduce { from: Place, to: Place, bytes: u64, in_front: bool },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) rank: usize,
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Effect {
    pub(crate) rank: usize,
    pub(crate) signal: usize,
    pub(crate) amount: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contract {
    pub(crate) gives: Vec<Span>,
    pub(crate) gets: Vec<Gets>,
    pub(crate) in_order: bool,
    pub(crate) meets: bool,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Span {
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Gets {
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) from: From,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct From {
    pub(crate) ranks: Vec<usize>,
    pub(crate) buffer: usize,
    pub(crate) offset: u64,
}

impl Plan {
    pub(crate) fn read(text: &str) -> Plan {
        serde_json::from_str(text).expect("it is a plan")
    }

    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("it can be written")
    }

    /// Sets the total of each signal to the sum of what all steps add to it.
    pub(crate) fn recount(&mut self) {
        let effects: Vec<Effect> =
            self.parts.iter().flat_map(|part| part.steps.iter().flat_map(|step| step.then.clone())).collect();
        for part in &mut self.parts {
            part.signals.iter_mut().skip(1).for_each(|signal| signal.per_start = 0);
        }
        for effect in effects {
            if effect.signal > 0 {
                self.parts[effect.rank].signals[effect.signal].per_start += effect.amount;
            }
        }
    }
}

impl Act {
    /// The source, the destination and the number of bytes, if the action moves bytes.
    pub(crate) fn moves(&self) -> Option<(Place, Place, u64)> {
        match *self {
            Act::Nothing => None,
            Act::Copy { from, to, bytes } | Act::Reduce { from, to, bytes, .. } => Some((from, to, bytes)),
        }
    }

    pub(crate) fn places_mut(&mut self) -> Option<(&mut Place, &mut Place, &mut u64)> {
        match self {
            Act::Nothing => None,
            Act::Copy { from, to, bytes } | Act::Reduce { from, to, bytes, .. } => Some((from, to, bytes)),
        }
    }

    pub(crate) fn is_reduction(&self) -> bool {
        matches!(self, Act::Reduce { .. })
    }
}
