//! What holds for all algorithms: they are proven, take what textbooks say, and work when one rank runs all steps.

mod alternating_roots;
mod proofs;
mod single_driver;
mod textbook;
