//! What is chosen, beside what was measured.

use super::*;
use crate::collective::Operation;
use crate::collective::algorithm::ALGORITHMS;

#[test]
fn dump() {
    for (_, op) in crate::collective::names::OPERATIONS {
        if op == Operation::Neighbours {
            continue;
        }
        for p in [2usize, 3, 4, 8, 16] {
            let s = Selection { per_processor: p.div_ceil(2), ..Selection::default() };
            for b in [8, 256, 2048, 8192, 32768, 262144, 1 << 20, 8 << 20] {
                let shape = Shape::new(op, p, 0, b);
                let ch = s.choose(&shape);
                let es: Vec<String> = op
                    .algorithms()
                    .filter(|a| (a.fits)(&shape))
                    .filter_map(|a| s.estimate(a, &shape).map(|e| format!("{} {:.2}", a.name, e / 1000.0)))
                    .collect();
                println!("{} {p}:{b} => {}   [{}]", op.name(), ch.name, es.join(", "));
            }
        }
    }
}
