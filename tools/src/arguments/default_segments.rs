//! The number of segments of an algorithm where the user gives none.

use tasuki_schedule::shape::{Counts, Shape};

/// Segments that show how an algorithm cuts a message, and are few enough to read.
const TO_SEE: u64 = 4;

/// Segments of a plan that is shown, proven or drawn: at most one for each value.
pub(crate) fn segments_to_see(shape: &Shape) -> u64 {
    match shape.counts {
        Counts::Equal(bytes) => (bytes / shape.value_bytes).clamp(1, TO_SEE),
        _ => TO_SEE,
    }
}

/// Segments of a simulated collective: those of the study, by the largest block.
pub(crate) fn segments_to_simulate(shape: &Shape) -> u64 {
    let largest = match &shape.counts {
        Counts::Equal(bytes) => *bytes,
        Counts::Each(counts) | Counts::Matrix(counts) => counts.iter().copied().max().unwrap_or(0),
        Counts::Graph(_) => 0, // blocks for neighbours are sent whole
    };
    segments_of_study(largest)
}

/// Segments of a message in the study of offloaded broadcasts.
pub(crate) fn segments_of_study(bytes: u64) -> u64 {
    match bytes.next_power_of_two().trailing_zeros() {
        0..=15 => 1,
        16..=17 => 4,
        18..=19 => 8,
        20..=23 => 16,
        24..=26 => 32,
        exponent @ 27..=30 => 64 << (exponent - 27),
        _ => 512,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tasuki_schedule::shape::CollectiveKind;

    #[test]
    fn segments_are_those_of_the_study() {
        let of = |bytes| segments_of_study(bytes);
        assert_eq!([of(1 << 10), of(32 << 10), of(64 << 10), of(512 << 10)], [1, 1, 4, 8]);
        assert_eq!(
            [of(8 << 20), of(64 << 20), of(128 << 20), of(1 << 30), of(1 << 40)],
            [16, 32, 64, 512, 512]
        );
    }

    #[test]
    fn there_are_no_more_segments_to_see_than_values() {
        let see = |bytes| segments_to_see(&Shape::new(CollectiveKind::Bcast, 4, 0, bytes));
        assert_eq!([see(0), see(3), see(16), see(8192)], [1, 3, 2, 4]);
    }
}
