//! A small classifier, trained on all ranks by stochastic gradient descent. Each rank processes its share of a batch,
//! and the ranks sum their gradients.
//!
//! The classifier is a perceptron of two layers ([`Network`]). Its gradient is computed from the last layer to the
//! first, so the last layer's gradient is known while the first layer's is still being computed. Its sum over all
//! ranks, a plan that is prepared once ([`tasuki::Plan`]), is started then and goes on meanwhile. The sum of the
//! first layer goes on while the samples of the next step are drawn. With blocking calls
//! ([`ReductionMethod::Blocking`]) nothing is computed meanwhile.
//!
//! **The result does not depend on the number of ranks.** Sums of floating point numbers depend on their order, so
//! the loss would drift away from that of a serial run. Here a batch is divided into blocks of [`BLOCK`] samples,
//! independently of the ranks. Within a block values are summed in the order of the samples. The sum of a block is
//! rounded to a multiple of 2^-32, and such numbers are summed exactly, in any order ([`Sum`]). The loss of every
//! step and the final weights equal those of [`serial()`] in every bit: the tolerance is zero.
//!
//! | file | content |
//! |---|---|
//! | task | the problem: samples as a pure function of seed and number |
//! | layer | a layer: forward, backward, gradient, descent |
//! | network | two layers, and the gradient of a batch in two parts |
//! | sum | exact sums of blocks |
//! | reduction | sums over all ranks, by either method |
//! | train | the steps of a rank |
//! | serial | the same training without ranks, written independently so that it can check the parallel code |
//! | picture | the loss of each step as SVG |

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
pub use reduction::ReductionMethod;
pub use serial::serial;
pub use sum::{BLOCK, Sum};
pub use task::{Sample, Task};
pub use train::{Training, train};

/// The parameters of a training.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recipe {
    /// The problem to learn.
    pub task: Task,
    /// Units of the hidden layer.
    pub hidden: usize,
    /// Samples of a step on all ranks together.
    pub batch: usize,
    /// Number of steps.
    pub steps: usize,
    /// The learning rate: the factor of the mean gradient in a step.
    pub rate: f64,
}
