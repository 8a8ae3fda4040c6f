//! The colours of the picture.

use crate::farm::View;

/// The colours of the values, three bytes each. Pixels of the set are black.
pub fn colors(view: &View, values: &[u32]) -> Vec<u8> {
    let top = f64::from(view.steps).ln_1p();
    let color = |value: u32| match value == view.steps {
        true => [0; 3],
        false => colorous::INFERNO.eval_continuous(f64::from(value).ln_1p() / top).into_array(),
    };
    values.iter().flat_map(|value| color(*value)).collect()
}
