//! Objects as arguments and results of handlers.

use super::argument::{Argument, Outcome, sealed};
use crate::message::object::{Object, decode, encode};
use crate::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tasuki_core::base::Cause;
use tasuki_core::engine::ValueShape;

impl<T> sealed::Sealed for Object<T> {}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + 'static> Argument for Object<T> {
    type Item = u8;
    const IS_SLICE: bool = true;

    fn shape() -> ValueShape {
        shape()
    }

    fn with_bytes<V>(&self, run: impl FnOnce(&[u8]) -> V) -> Result<V, Cause> {
        encode(&self.0).map(|bytes| run(&bytes))
    }

    fn with<V>(bytes: &[u8], run: impl FnOnce(&Self) -> V) -> Result<V, Cause> {
        decode(bytes).map(|value| run(&Object(value)))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + DeserializeOwned + 'static> Outcome for Object<T> {
    type Owned = T;
    type Item = u8;
    const IS_SLICE: bool = true;

    fn shape() -> ValueShape {
        shape()
    }

    fn with_bytes<V>(owned: &T, run: impl FnOnce(&[u8]) -> V) -> Result<V, Cause> {
        encode(owned).map(|bytes| run(&bytes))
    }

    fn read(
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Error>,
    ) -> Result<Result<T, Cause>, Error> {
        let mut bytes = vec![0; len];
        fill(&mut bytes)?;
        Ok(decode(&bytes))
    }
}

fn shape() -> ValueShape {
    ValueShape { bytes: 1, is_slice: true, name: "byte of an object".into() }
}
