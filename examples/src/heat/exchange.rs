//! The exchange of rows between neighbours, as the iteration uses it.

use super::strip::Strip;
use super::transfer_count::TransferCount;

/// The exchange of one rank with the ranks above and below. Row `k` is an outermost row of a strip after `k`
/// iterations. Row 0 is never sent, because every rank computes the initial values itself.
pub trait Exchange {
    /// Waits for the neighbours' rows `iteration` and copies them into the ghost rows of the strip.
    fn take(&mut self, iteration: usize, strip: &mut Strip) -> tasuki::Result<()>;

    /// Sends the outermost new rows of the strip, which are rows `iteration`, to the neighbours. Their values may be
    /// reused when it returns.
    fn put(&mut self, iteration: usize, strip: &Strip) -> tasuki::Result<()>;

    /// The rows sent, and the rows waited for and copied out.
    fn transfer_counts(&self) -> [TransferCount; 2];
}
