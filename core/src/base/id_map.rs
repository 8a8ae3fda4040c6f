//! Things that are added and never taken away, found by a number: quickly where they were found lately.
#![allow(unsafe_code)]
//! Unsafe: pointers to shared items, which the roll keeps for as long as it lives.

use std::collections::HashMap;
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Places for items found lately.
const RECENT: usize = 16;

/// What knows its number in a roll.
pub trait Numbered {
    /// Its number.
    fn number(&self) -> u64;
}

/// A growing table. Looking up what was looked up lately costs two loads and takes no lock.
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
    /// The item of that number, if it was looked up lately.
    #[inline(always)]
    pub fn recent(&self, number: u64) -> Option<&T> {
        // SAFETY: an item of the table, which keeps it while the roll, which is borrowed, lives.
        let item = unsafe { self.recent[place(number)].load(Ordering::Acquire).as_ref() }?;
        if item.number() == number { Some(item) } else { None }
    }

    /// The same, for what outlives a call.
    #[inline]
    pub fn recent_shared(&self, number: u64) -> Option<Arc<T>> {
        let item: *const T = self.recent(number)?;
        // SAFETY: the table has an Arc of it for as long as the roll, which is borrowed, lives.
        unsafe {
            Arc::increment_strong_count(item);
            Some(Arc::from_raw(item))
        }
    }

    /// The item of that number, made by `make` if there is none yet. No lock is held meanwhile: of two that are made at
    /// once, both get the first.
    #[cold]
    #[inline(never)]
    pub fn get_or_insert_with<E>(
        &self,
        number: u64,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        let known = self.all().get(&number).cloned();
        let made = match known {
            Some(item) => item,
            None => Arc::new(make()?),
        };
        let mut all = self.all();
        let item = all.entry(number).or_insert(made);
        self.recent[place(number)].store(Arc::as_ptr(item).cast_mut(), Ordering::Release);
        Ok(item.clone())
    }

    /// The same item, for as long as the roll lives: it is one of this roll.
    pub fn kept(&self, item: &Arc<T>) -> &T {
        let ours = self.find(item.number()).filter(|ours| Arc::ptr_eq(ours, item));
        let ours = ours.expect("an item of this roll");
        // SAFETY: the table has an Arc of it for as long as the roll, which is borrowed, lives.
        unsafe { &*Arc::as_ptr(&ours) }
    }

    /// The item of that number, if there is one.
    pub fn find(&self, number: u64) -> Option<Arc<T>> {
        self.all().get(&number).cloned()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<u64, Arc<T>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Neighbouring numbers have different places, in both halves of a number.
#[inline(always)]
fn place(number: u64) -> usize {
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
    fn items_are_made_once_and_stay() {
        let roll = IdMap::default();
        let made = |number: u64| -> Result<Item, ()> { Ok(Item(number)) };
        let first = roll.get_or_insert_with(1, || made(1)).unwrap();
        for number in 2..200 {
            assert_eq!(roll.recent(number), None);
            let item = roll.get_or_insert_with(number, || made(number)).unwrap();
            assert!(ptr::eq(roll.recent(number).unwrap(), &*item));
            assert!(Arc::ptr_eq(&roll.recent_shared(number).unwrap(), &item));
            assert_eq!(Arc::strong_count(&item), 2);
        }
        assert!(Arc::ptr_eq(&first, &roll.get_or_insert_with(1, || Err(())).unwrap()));
        assert!(
            (1..200).all(|number| roll.get_or_insert_with(number, || Err(())).is_ok()) && roll.len() == 199
        );
        assert_eq!(roll.get_or_insert_with(500, || Err("no")), Err("no"));
        assert_eq!((roll.recent(500), roll.find(500)), (None, None));
        assert_eq!(roll.find(7).as_deref(), Some(&Item(7)));
        assert!(ptr::eq(roll.kept(&first), &*first));
    }
}
