//! Virtual time in whole femtoseconds, so that sums do not depend on their order.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// A point or duration of virtual time. It saturates at [`Time::MAX`].
///
/// ```
/// # mod tasuki { pub mod schedule { pub use tasuki_schedule::{*, algorithm::ALGORITHMS, network::*}; } }
/// use tasuki::schedule::Time;
/// let time = Time::nanoseconds(1_500);
/// assert_eq!((time.as_seconds(), time.as_femtoseconds()), (1.5e-6, 1_500_000_000));
/// assert!(Time::ZERO < time);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(u64);

/// Femtoseconds in a second.
const SECOND: f64 = 1e15;

impl Time {
    /// The beginning of time, or a duration of zero.
    pub const ZERO: Time = Time(0);

    /// The largest time, where sums and products saturate: five hours and seven minutes.
    pub const MAX: Time = Time(u64::MAX);

    /// Creates a time of that many femtoseconds.
    pub const fn femtoseconds(count: u64) -> Time {
        Time(count)
    }

    /// Creates a time of that many nanoseconds.
    pub const fn nanoseconds(count: u64) -> Time {
        Time(count.saturating_mul(1_000_000))
    }

    /// Converts seconds, rounded to the femtosecond; zero for values that are no duration.
    pub fn of_seconds(seconds: f64) -> Time {
        Time((seconds * SECOND).round() as u64)
    }

    /// Returns the time in femtoseconds.
    pub const fn as_femtoseconds(self) -> u64 {
        self.0
    }

    /// Returns the time in seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / SECOND
    }
}

impl Add for Time {
    type Output = Time;

    fn add(self, more: Time) -> Time {
        Time(self.0.saturating_add(more.0))
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, more: Time) {
        *self = *self + more;
    }
}

impl Sub for Time {
    type Output = Time;

    fn sub(self, less: Time) -> Time {
        Time(self.0.saturating_sub(less.0))
    }
}

impl Mul<u64> for Time {
    type Output = Time;

    fn mul(self, times: u64) -> Time {
        Time(self.0.saturating_mul(times))
    }
}

impl fmt::Display for Time {
    /// Shows four digits and a unit that suits the size.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("s", SECOND), ("ms", 1e12), ("us", 1e9), ("ns", 1e6)];
        let count = self.0 as f64;
        let (name, unit) = units.into_iter().find(|(_, unit)| count >= *unit).unwrap_or(units[3]);
        let value = count / unit;
        let digits = 3_usize.saturating_sub(value.max(1.0).log10() as usize);
        f.pad(&format!("{value:.digits$} {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_the_unit_that_fits() {
        let shown = |seconds| Time::of_seconds(seconds).to_string();
        assert_eq!(shown(0.0), "0.000 ns");
        assert_eq!(shown(1e-9), "1.000 ns");
        assert_eq!(shown(123.456e-6), "123.5 us");
        assert_eq!(shown(0.25), "250.0 ms");
        assert_eq!(shown(12.0), "12.00 s");
    }

    #[test]
    fn times_saturate_at_both_ends() {
        let (one, most) = (Time::nanoseconds(1), Time::femtoseconds(u64::MAX));
        assert_eq!((most + one, most * 2, Time::ZERO - one), (most, most, Time::ZERO));
        assert_eq!(Time::of_seconds(-1.0), Time::ZERO);
        assert_eq!(Time::of_seconds(1.04762e-10) * 1000, Time::femtoseconds(104_762_000));
    }
}
