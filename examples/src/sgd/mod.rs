//! A small classifier, trained on all ranks by stochastic gradient descent: each rank sees its share of a batch, and
//! the ranks add up their gradients.
//!
//! The classifier is a perceptron of two layers ([`Network`]). Its gradient is found from the back: that of the last
//! layer is known while the first layer's is still to be computed. So its sum over all ranks, a plan that is prepared
//! once ([`tasuki::Plan`]), is started then and goes on meanwhile; that of the first layer goes on while the samples of
//! the next step are drawn. With blocking calls ([`Way::Blocking`]) nothing is computed meanwhile.
//!
//! **The outcome does not depend on the ranks.** Sums of floating point numbers depend on their order, so the loss
//! would drift from that of one processor, the more the longer it runs. Here a batch is cut into blocks of [`BLOCK`]
//! samples, whoever has them. Within a block values are added up in the order of samples; what a block comes to is
//! rounded to a multiple of 2^-32, and such numbers are added up exactly, in any order ([`Sum`]). The loss of every
//! step and the weights at the end are those of [`serial()`] to the bit: the tolerance is zero.
//!
//! | file | holds |
//! |---|---|
//! | task | what is learned: samples as a pure function of seed and number |
//! | layer | a layer: forward, backward, gradient, descent |
//! | network | two layers, and the gradient of a batch in two parts |
//! | sum | exact sums of blocks |
//! | reduction | sums over all ranks, by either way |
//! | train | the steps of a rank |
//! | serial | the same by one processor, written without the rest so that it can judge it |
//! | picture | the loss by steps, as SVG |

mod layer;
mod network;
mod picture;
mod reduction;
mod serial;
mod sum;
mod task;
mod train;

pub use layer::Layer;
pub use network::{Network, Pass};
pub use picture::curve;
pub use reduction::Way;
pub use serial::serial;
pub use sum::{BLOCK, Sum};
pub use task::{Sample, Task};
pub use train::{Training, train};

/// How to train.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recipe {
    /// What is learned.
    pub task: Task,
    /// Units of the hidden layer.
    pub hidden: usize,
    /// Samples of a step, on all ranks together.
    pub batch: usize,
    /// How many steps.
    pub steps: usize,
    /// How far a step goes down the mean gradient.
    pub rate: f64,
}
