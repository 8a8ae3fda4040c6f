//! The farm's picture is the same for any number of ranks, however fast they are.
#![allow(clippy::unwrap_used)]

use tasuki::Sim;
use tasuki_examples::farm::{Harvest, View, alone, farm};

/// A picture whose tiles at the border are smaller than others.
const VIEW: View = View { size: [100, 70], center: [-0.75, 0.1], width: 2.6, steps: 200 };

fn harvest_of(all: impl IntoIterator<Item = Option<Harvest>>) -> Harvest {
    let mut harvests: Vec<_> = all.into_iter().flatten().collect();
    assert_eq!(harvests.len(), 1, "the master alone returns the picture");
    harvests.remove(0)
}

#[test]
fn the_picture_does_not_depend_on_the_number_of_ranks() {
    let expected = alone(&VIEW);
    assert_eq!(expected.values.len(), 7000);
    assert!(expected.values.contains(&VIEW.steps) && expected.values.contains(&1), "inside and outside");
    for ranks in 1..=5 {
        let harvest = harvest_of(tasuki::local(ranks, |job| farm(job, &VIEW, 1, |_| ())).unwrap());
        assert_eq!(harvest.values, expected.values, "{ranks} ranks");
        assert_eq!(harvest.tiles.iter().sum::<usize>(), 12);
        assert!(ranks == 1 || harvest.tiles[0] == 0, "the master computes nothing");
    }
}

#[test]
fn simulated_ranks_make_the_same_picture() {
    for ranks in [2, 3, 20] {
        let all = tasuki::sim(Sim::seeds(0..5).ranks(ranks), |job| farm(job, &VIEW, 1, |_| ())).unwrap();
        assert_eq!(harvest_of(all.values.into_iter().flatten()).values, alone(&VIEW).values, "{ranks} ranks");
    }
}

#[test]
fn progress_counts_all_tiles() {
    let seen = std::sync::Mutex::new(Vec::new());
    tasuki::local(3, |job| farm(job, &VIEW, 1, |tiles| seen.lock().unwrap().push(tiles))).unwrap();
    assert_eq!(seen.into_inner().unwrap(), (1..=12).collect::<Vec<_>>());
}
