//! The results: a table, and lines of JSON.

use super::question::{IncastOutcome, IncastProtocol, IncastQuestion, TicketWaiting};
use crate::sim::units;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// A result with what was simulated.
pub(super) struct IncastRow {
    pub(super) topology: String,
    pub(super) protocol: IncastProtocol,
    pub(super) senders: u32,
    messages: u64,
    bytes: u64,
    slots: u32,
    pub(super) outcome: IncastOutcome,
}

/// A line of JSON. Times are in seconds, sizes in bytes.
#[derive(Serialize)]
struct IncastLine<'l> {
    topology: &'l str,
    protocol: String,
    waiting: Option<&'l str>,
    senders: u32,
    messages: u64,
    bytes: u64,
    slots: u32,
    is_drained: bool,
    seconds: f64,
    messages_per_second: f64,
    receiver_bytes_max: u64,
    network_bytes_max: u64,
    atomics_of_busiest: u64,
    polls: u64,
    drops: u64,
}

impl IncastRow {
    pub(super) fn new(topology: &str, question: &IncastQuestion<'_>, outcome: IncastOutcome) -> IncastRow {
        IncastRow {
            topology: topology.to_string(),
            protocol: question.protocol,
            senders: question.senders,
            messages: question.all_messages(),
            bytes: question.bytes,
            slots: question.slots,
            outcome,
        }
    }

    fn waiting(&self) -> Option<&'static str> {
        match self.protocol {
            IncastProtocol::Tickets(_, TicketWaiting::Growing) => Some("growing"),
            IncastProtocol::Tickets(_, TicketWaiting::Paced) => Some("paced"),
            _ => None,
        }
    }

    fn messages_per_second(&self) -> f64 {
        self.outcome.taken as f64 / self.outcome.last_taken.as_seconds()
    }

    /// Returns true if the receiver got all messages.
    pub(super) fn is_drained(&self) -> bool {
        self.outcome.taken == self.messages
    }
}

/// The lines of JSON.
pub(super) fn lines(rows: &[IncastRow]) -> anyhow::Result<String> {
    let mut text = String::new();
    for row in rows {
        let line = IncastLine {
            topology: &row.topology,
            protocol: row.protocol.to_string(),
            waiting: row.waiting(),
            senders: row.senders,
            messages: row.messages,
            bytes: row.bytes,
            slots: row.slots,
            is_drained: row.is_drained(),
            seconds: row.outcome.last_taken.as_seconds(),
            messages_per_second: row.messages_per_second(),
            receiver_bytes_max: row.outcome.receiver_bytes,
            network_bytes_max: row.outcome.network_bytes,
            atomics_of_busiest: row.outcome.atomics,
            polls: row.outcome.polls,
            drops: row.outcome.drops,
        };
        text += &(serde_json::to_string(&line)? + "\n");
    }
    Ok(text)
}

/// The table, one for each topology and number of senders.
pub(super) fn table(rows: &[IncastRow]) -> String {
    let mut text = String::new();
    let is_together = |a: &IncastRow, b: &IncastRow| (&a.topology, a.senders) == (&b.topology, b.senders);
    for rows in rows.chunk_by(is_together) {
        let first = &rows[0];
        text += &format!("{}, {} senders, {} messages\n", first.topology, first.senders, first.messages);
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(
            ["protocol", "waiting", "drained", "M/s", "receiver", "network", "atomics", "polls", "drops"]
                .map(|title| title.to_string()),
        );
        for row in rows {
            let IncastOutcome { last_taken, receiver_bytes, network_bytes, atomics, polls, drops, .. } =
                row.outcome;
            table.add_row([
                row.protocol.to_string(),
                row.waiting().unwrap_or("").to_string(),
                format!("{}{last_taken}", if row.is_drained() { "" } else { "> " }),
                format!("{:.2}", row.messages_per_second() / 1e6),
                units::show(receiver_bytes),
                units::show(network_bytes),
                atomics.to_string(),
                polls.to_string(),
                drops.to_string(),
            ]);
        }
        table.column_iter_mut().enumerate().for_each(|(index, column)| {
            column.set_padding((0, 1));
            column.set_cell_alignment(if index < 2 { CellAlignment::Left } else { CellAlignment::Right });
        });
        table.lines().for_each(|line| text.extend([line.trim_end(), "\n"]));
        text += "\n";
    }
    text.pop();
    text
}
