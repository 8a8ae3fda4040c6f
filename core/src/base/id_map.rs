//! An append-only map from numbers to `Arc`s, with a lock-free cache of recent lookups.
#![allow(unsafe_code)]
//! Unsafe: pointers to shared items, which the map keeps until it is dropped.

use crate::base::sync::{AtomicPtr, Ordering};
use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Entries of the cache of recent lookups.
const RECENT: usize = 16;

/// An item that knows its number in the map.
pub trait Numbered {
    /// Returns the item's number.
    fn number(&self) -> u64;
}

/// A map that only grows. A lookup of a recently used item costs two loads and takes no lock.
pub struct IdMap<T> {
    recent: [AtomicPtr<T>; RECENT],
    all: Mutex<HashMap<u64, Arc<T>>>,
}

impl<T> Default for IdMap<T> {
    fn default() -> IdMap<T> {
        IdMap { recent: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())), all: Mutex::default() }
    }
}

impl<T: Numbered + Send + Sync> IdMap<T> {
    /// Returns the item `number` if it is in the cache of recent lookups.
    #[inline(always)]
    pub fn recent(&self, number: u64) -> Option<&T> {
        // SAFETY: the map keeps each of its items until it is dropped, and it is borrowed here.
        let item = unsafe { self.recent[cache_index(number)].load(Ordering::Acquire).as_ref() }?;
        if item.number() == number { Some(item) } else { None }
    }

    /// Like [`IdMap::recent`], but returns a shared pointer.
    #[inline]
    pub fn recent_shared(&self, number: u64) -> Option<Arc<T>> {
        let item: *const T = self.recent(number)?;
        // SAFETY: the map holds an Arc of the item until it is dropped, and it is borrowed here.
        unsafe {
            Arc::increment_strong_count(item);
            Some(Arc::from_raw(item))
        }
    }

    /// Returns the item `number`; `make` makes it if there is none yet. No lock is held while
    /// `make` runs. If two threads make the item at once, both get the one that was inserted first.
    #[cold]
    #[inline(never)]
    pub fn get_or_insert_with<E>(
        &self,
        number: u64,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let existing = self.all().get(&number).cloned();
        let made = match existing {
            Some(item) => item,
            None => Arc::new(make()?),
        };
        let mut all = self.all();
        let item = all.entry(number).or_insert(made);
        self.recent[cache_index(number)].store(Arc::as_ptr(item).cast_mut(), Ordering::Release);
        Ok(item.clone())
    }

    /// Returns a reference to an item of this map that is valid as long as the map. Panics if it is no item of the map.
    pub fn borrow(&self, item: &Arc<T>) -> &T {
        let ours = self.find(item.number()).filter(|ours| Arc::ptr_eq(ours, item));
        let ours = ours.expect("the item is in this map");
        // SAFETY: the map holds an Arc of the item until it is dropped, and it is borrowed here.
        unsafe { &*Arc::as_ptr(&ours) }
    }

    /// Returns the item `number`, if there is one.
    pub fn find(&self, number: u64) -> Option<Arc<T>> {
        self.all().get(&number).cloned()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all items.
    pub fn items(&self) -> Vec<Arc<T>> {
        self.all().values().cloned().collect()
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Returns true if the map has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Returns the cache entry of a number. Consecutive numbers get different entries, in both halves of the word.
#[inline(always)]
fn cache_index(number: u64) -> usize {
    (number ^ number >> 32) as usize % RECENT
}

impl<T> fmt::Debug for IdMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdMap").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(PartialEq, Debug)]
    struct Item(u64);

    impl Numbered for Item {
        fn number(&self) -> u64 {
            self.0
        }
    }

    #[test]
    fn items_are_made_once_and_never_removed() {
        let map = IdMap::default();
        let made = |number: u64| -> Result<Item, ()> { Ok(Item(number)) };
        let first = map.get_or_insert_with(1, || made(1)).unwrap();
        for number in 2..200 {
            assert_eq!(map.recent(number), None);
            let item = map.get_or_insert_with(number, || made(number)).unwrap();
            assert!(ptr::eq(map.recent(number).unwrap(), &*item));
            assert!(Arc::ptr_eq(&map.recent_shared(number).unwrap(), &item));
            assert_eq!(Arc::strong_count(&item), 2);
        }
        assert!(Arc::ptr_eq(&first, &map.get_or_insert_with(1, || Err(())).unwrap()));
        assert!(
            (1..200).all(|number| map.get_or_insert_with(number, || Err(())).is_ok()) && map.len() == 199
        );
        assert_eq!(map.get_or_insert_with(500, || Err("no")), Err("no"));
        assert_eq!((map.recent(500), map.find(500)), (None, None));
        assert_eq!(map.find(7).as_deref(), Some(&Item(7)));
        assert!(ptr::eq(map.borrow(&first), &*first));
    }
}
