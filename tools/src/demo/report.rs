//! The end of the demonstration: the outcome, and a table of what each rank moved.

use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tasuki_core::os::affinity;
use tasuki_examples::heat::{RankReport, TransferCount};

/// The width of the table in columns.
const WIDTH: u16 = 100;

/// What rank 0 reports at the end.
#[derive(Serialize, Deserialize)]
pub(super) struct DemoReport {
    pub(super) iterations: usize,
    /// The largest difference between a cell and the mean of its neighbours.
    pub(super) residual: f64,
    /// The largest difference from the serial run, if there is any.
    pub(super) difference: Option<f64>,
    /// Width and height of the picture.
    pub(super) pixels: (usize, usize),
    /// What rank 0 got from the other ranks at the end.
    pub(super) gathered: Transfers,
    /// One row for each rank.
    pub(super) rows: Vec<RankRow>,
}

/// Transfers of one kind.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct Transfers {
    count: u64,
    bytes: u64,
    gigabytes_per_second: f64,
}

/// A rank's row of the table.
#[derive(Serialize, Deserialize)]
pub(super) struct RankRow {
    rows: u64,
    put: Transfers,
    seconds: f64,
    /// The share of the time that the rank spent in puts.
    share_put: f64,
    /// The share of the time that the rank spent waiting for neighbours and copying what they had
    /// put.
    share_taken: f64,
}

impl From<TransferCount> for Transfers {
    fn from(moved: TransferCount) -> Transfers {
        let TransferCount { count, bytes, .. } = moved;
        Transfers { count, bytes, gigabytes_per_second: moved.gigabytes_per_second() }
    }
}

impl From<&RankReport> for RankRow {
    fn from(part: &RankReport) -> RankRow {
        let share = |moved: &TransferCount| moved.nanoseconds as f64 / part.nanoseconds.max(1) as f64;
        RankRow {
            rows: part.rows,
            put: part.put.into(),
            seconds: part.nanoseconds as f64 / 1e9,
            share_put: share(&part.put),
            share_taken: share(&part.taken),
        }
    }
}

impl DemoReport {
    /// The whole report as text.
    pub(super) fn text(&self, picture: &Path) -> String {
        let DemoReport { iterations, residual, pixels: (width, height), .. } = self;
        let seconds = self.rows.iter().map(|row| row.seconds).fold(0.0, f64::max);
        let difference = match self.difference {
            None => "none, every bit is the same".to_string(),
            Some(most) => format!("{most:.1e}"),
        };
        let picture = picture.display();
        format!(
            "{iterations} iterations in {seconds:.2} s, residual {residual:.1e}\n\
             difference to a serial run: {difference}\n\
             picture: {picture}, {width} x {height}\n\n{}\n\n{}",
            self.table(),
            self.remarks()
        )
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_style(TableComponent::HeaderLines, '-');
        table.set_width(WIDTH).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["rank", "rows", "puts", "MB put", "GB/s in puts", "% in puts", "% waiting"]);
        for (rank, row) in self.rows.iter().enumerate() {
            table.add_row([
                rank.to_string(),
                row.rows.to_string(),
                row.put.count.to_string(),
                format!("{:.1}", row.put.bytes as f64 / 1e6),
                row.put.speed(),
                format!("{:.1}", 100.0 * row.share_put),
                format!("{:.1}", 100.0 * row.share_taken),
            ]);
        }
        table.column_iter_mut().for_each(|column| column.set_cell_alignment(CellAlignment::Right));
        table
    }

    fn remarks(&self) -> String {
        if self.rows.len() == 1 {
            return "One rank has no neighbours: nothing was moved.\n".into();
        }
        let gathered = &self.gathered;
        let mut text = format!(
            "Each put carries a row and a signal to a neighbour, who waits for nothing else. Rank 0 then got\n\
             the other strips: {:.1} MB in {} gets, {} GB/s.\n",
            gathered.bytes as f64 / 1e6,
            gathered.count,
            gathered.speed()
        );
        let (ranks, processors) = (self.rows.len(), affinity::usable());
        if ranks > processors {
            text += &format!("{ranks} ranks share {processors} processors: they wait for those, too.\n");
        }
        text
    }
}

impl Transfers {
    /// The speed in GB/s, or a dash where nothing was moved.
    fn speed(&self) -> String {
        if self.count == 0 { "-".into() } else { format!("{:.2}", self.gigabytes_per_second) }
    }
}
