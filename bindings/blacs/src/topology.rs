//! Topologies: who sends to whom in a broadcast.
//!
//! The letters of BLACS say how a program would like its data to go. Rings (i, d, s) let one broadcast begin before the
//! one before it has reached the last process, as LU and QR do; they are kept. All others become a tree, in which the
//! process that is 2^k places behind the root gets the data at step k.

/// How a broadcast goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Topology {
    /// From each process to the next, upwards.
    Increasing,
    /// From each process to the one before.
    Decreasing,
    /// Two rings, which begin at the root and meet.
    Split,
    /// From the root to each.
    Star,
    /// A binomial tree.
    Tree,
}

impl Topology {
    /// Returns the topology of a letter, in any case; `None` if BLACS has none of that name.
    pub fn of(letter: u8) -> Option<Topology> {
        match letter.to_ascii_lowercase() {
            b'i' => Some(Topology::Increasing),
            b'd' => Some(Topology::Decreasing),
            b's' => Some(Topology::Split),
            b'f' => Some(Topology::Star),
            b' ' | b'h' | b'm' | b't' | b'1'..=b'9' => Some(Topology::Tree),
            _ => None,
        }
    }

    /// Returns the process before `place` and those behind it, in the order in which they are sent to. Places count
    /// upwards from the root, which is 0, in a scope of `size` processes.
    pub fn neighbours(self, place: usize, size: usize) -> (usize, Vec<usize>) {
        let last = size - 1;
        match self {
            Topology::Increasing => {
                (place.saturating_sub(1), if place < last { vec![place + 1] } else { vec![] })
            }
            Topology::Decreasing => match place {
                0 => (0, if size > 1 { vec![last] } else { vec![] }),
                _ => ((place + 1) % size, if place > 1 { vec![place - 1] } else { vec![] }),
            },
            Topology::Split => {
                let half = size / 2; // places 1 to half upwards, the others downwards
                match place {
                    0 => (
                        0,
                        [(half >= 1).then_some(1), (last > half).then_some(last)]
                            .into_iter()
                            .flatten()
                            .collect(),
                    ),
                    _ if place <= half => (place - 1, if place < half { vec![place + 1] } else { vec![] }),
                    _ => ((place + 1) % size, if place > half + 1 { vec![place - 1] } else { vec![] }),
                }
            }
            Topology::Star => (0, if place == 0 { (1..size).collect() } else { vec![] }),
            Topology::Tree => {
                // The lowest bit of a place says at which step it gets the data.
                let step = if place == 0 { size.next_power_of_two() } else { place & place.wrapping_neg() };
                let steps =
                    std::iter::successors(Some(step / 2), |step| Some(step / 2)).take_while(|&step| step > 0);
                (
                    place - if place == 0 { 0 } else { step },
                    steps.map(|step| place + step).filter(|&to| to < size).collect(),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_gets_the_data_once_from_the_one_before() {
        for letter in *b" idsfhtm1 9I" {
            let topology = Topology::of(letter).expect("it is known");
            for size in 1..40 {
                let mut got = vec![0; size];
                for place in 0..size {
                    for to in topology.neighbours(place, size).1 {
                        got[to] += 1;
                        assert_eq!(
                            topology.neighbours(to, size).0,
                            place,
                            "{topology:?} of {size}: {place} to {to}"
                        );
                    }
                }
                assert_eq!(got.iter().sum::<usize>(), size - 1, "{topology:?} of {size}");
                assert!(got[0] == 0 && got.iter().all(|&count| count <= 1));
            }
        }
        assert!([b'0', b'B', b'x', 0].into_iter().all(|letter| Topology::of(letter).is_none()));
    }
}
