//! The balanced sides of a grid.

use crate::own_rank::on_own_rank;
use crate::{Error, Result};

/// Fills the zeros of `dims` so that a grid with these sides has one place for each of `members` members, as evenly as
/// possible (MPI_Dims_create). Other entries stay. The sides that are filled in are in descending order, and the
/// largest is as small as it can be, then the second largest, and so on.
///
/// ```
/// use tasuki::dims_create;
/// assert_eq!(dims_create(12, [0, 0])?, [4, 3]);
/// assert_eq!(dims_create(12, [0, 2, 0])?, [3, 2, 2]);
/// assert!(dims_create(12, [5, 0]).is_err());
/// # Ok::<(), tasuki::Error>(())
/// ```
///
/// Not collective. Errors: `members` is not a multiple of the product of the entries that stay, or not that product if
/// all stay; there are no members. Cost: time that grows with the square root of `members`.
pub fn dims_create<const N: usize>(members: usize, dims: [usize; N]) -> Result<[usize; N]> {
    let fixed = dims.iter().filter(|&&side| side > 0).try_fold(1_usize, |all, &side| all.checked_mul(side));
    let left =
        fixed.filter(|fixed| members > 0 && members.is_multiple_of(*fixed)).map(|fixed| members / fixed);
    let is_free = |side: &&usize| **side == 0;
    let sides = left.and_then(|left| {
        let mut divisors: Vec<usize> = (1..=left.isqrt()).filter(|side| left.is_multiple_of(*side)).collect();
        divisors.extend(divisors.clone().into_iter().rev().map(|side| left / side));
        descending(left, dims.iter().filter(is_free).count(), left, &divisors)
    });
    let Some(sides) = sides else {
        let text = format!("no grid with these sides has {members} places, one for each member");
        let call = || format!("dims_create({members}, {dims:?})");
        return Err(on_own_rank(Error::argument(text).in_call(call)));
    };
    let mut sides = sides.into_iter();
    Ok(dims.map(|side| if side > 0 { side } else { sides.next().unwrap_or(1) }))
}

/// Returns `count` sides in descending order, the first at most `most`, whose product is `places`, and of these the
/// ones with the least first side, then the least second one, and so on. `divisors` are in ascending order.
fn descending(places: usize, count: usize, most: usize, divisors: &[usize]) -> Option<Vec<usize>> {
    if count == 0 {
        return (places == 1).then(Vec::new);
    }
    let fits = |&&side: &&usize| side <= most && places.is_multiple_of(side);
    divisors.iter().filter(fits).find_map(|&side| {
        let rest = places / side;
        // The others are no larger than this one.
        let reaches = |all: usize, _| all.saturating_mul(side);
        if (1..count).fold(1, reaches) < rest {
            return None;
        }
        let mut sides = descending(rest, count - 1, side, divisors)?;
        sides.insert(0, side);
        Some(sides)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides<const N: usize>(members: usize, dims: [usize; N]) -> [usize; N] {
        dims_create(members, dims).expect("there is such a grid")
    }

    #[test]
    fn sides_are_as_even_as_possible() {
        assert_eq!(sides(1, [0, 0, 0]), [1, 1, 1]);
        assert_eq!(sides(7, [0, 0]), [7, 1]);
        assert_eq!(sides(16, [0, 0, 0]), [4, 2, 2]);
        assert_eq!(sides(36, [0, 0]), [6, 6]);
        assert_eq!(sides(60, [0, 0, 0]), [5, 4, 3]);
        assert_eq!(sides(100_000, [0, 0, 0]), [50, 50, 40]);
        assert_eq!(sides(999_983, [0, 0]), [999_983, 1], "a prime number");
    }

    /// Compares with the sides that a look at all of them finds.
    #[test]
    fn no_other_sides_are_more_even() {
        for members in 1..=200_usize {
            let all = (1..=members).flat_map(|a| (1..=a).flat_map(move |b| (1..=b).map(move |c| [a, b, c])));
            let best = all.filter(|sides| sides.iter().product::<usize>() == members).min();
            assert_eq!(dims_create(members, [0, 0, 0]).ok(), best, "{members}");
        }
    }

    #[test]
    fn entries_that_are_given_stay() {
        assert_eq!(sides(24, [0, 3, 0]), [4, 3, 2]);
        assert_eq!(sides(6, [0, 1]), [6, 1]);
        assert_eq!(sides(6, [2, 3]), [2, 3]);
        assert_eq!(sides(1, []), [0; 0]);
    }

    #[test]
    fn impossible_grids_are_refused() {
        let text =
            |members, dims: [usize; 2]| dims_create(members, dims).expect_err("no such grid").to_string();
        assert!(text(6, [4, 0]).contains("dims_create(6, [4, 0])"));
        assert!(text(6, [2, 2]).contains("6 places"));
        assert!(text(0, [0, 0]).contains("0 places"));
        assert!(text(6, [usize::MAX, 2]).contains("6 places"));
        assert!(dims_create(2, []).is_err());
    }
}
