//! Tables of what a program names by small numbers: communicators, grids.
//!
//! A call finds its object in a copy that its thread keeps: one load tells whether the table has changed since, so no
//! lock is taken on the way of a message.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::LocalKey;

/// Objects by their numbers.
pub struct Handles<T> {
    table: Mutex<Vec<Option<Arc<T>>>>,
    /// Counts the changes of the table.
    changes: AtomicU64,
}

/// The object that a thread has used last: the changes of the table before that, its number, and the object.
pub type Last<T> = RefCell<Option<(u64, c_int, Arc<T>)>>;

impl<T> Handles<T> {
    /// No objects.
    pub const fn new() -> Handles<T> {
        Handles { table: Mutex::new(Vec::new()), changes: AtomicU64::new(1) }
    }

    fn table(&self) -> MutexGuard<'_, Vec<Option<Arc<T>>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `call` with an object; with `None` if there is none with that number. `call` may use the table, but not
    /// call this function in the same thread.
    #[inline(always)]
    pub fn with<R>(
        &self,
        last: &'static LocalKey<Last<T>>,
        number: c_int,
        call: impl FnOnce(Option<&Arc<T>>) -> R,
    ) -> R {
        last.with_borrow_mut(|last| match last {
            Some((changes, of, object))
                if *of == number && *changes == self.changes.load(Ordering::Acquire) =>
            {
                call(Some(object))
            }
            _ => call(self.look_up(number, last)),
        })
    }

    #[cold]
    fn look_up<'l>(&self, number: c_int, last: &'l mut Option<(u64, c_int, Arc<T>)>) -> Option<&'l Arc<T>> {
        let table = self.table();
        let object = usize::try_from(number).ok().and_then(|number| table.get(number)?.clone());
        *last = object.map(|object| (self.changes.load(Ordering::Acquire), number, object));
        last.as_ref().map(|(_, _, object)| object)
    }

    /// Returns an object.
    pub fn get(&self, number: c_int) -> Option<Arc<T>> {
        usize::try_from(number).ok().and_then(|number| self.table().get(number)?.clone())
    }

    /// Returns true if there is no object.
    pub fn are_none(&self) -> bool {
        self.table().iter().all(Option::is_none)
    }

    /// Adds an object. Returns its number, the lowest that is free.
    pub fn add(&self, object: Arc<T>) -> c_int {
        let mut table = self.table();
        let number = table.iter().position(Option::is_none).unwrap_or(table.len());
        if number == table.len() {
            table.push(None);
        }
        table[number] = Some(object);
        self.changes.fetch_add(1, Ordering::Release);
        number as c_int
    }

    /// Removes an object.
    pub fn remove(&self, last: &'static LocalKey<Last<T>>, number: c_int) -> Option<Arc<T>> {
        let removed = usize::try_from(number).ok().and_then(|number| self.table().get_mut(number)?.take());
        self.changes.fetch_add(1, Ordering::Release);
        last.with_borrow_mut(|last| *last = None);
        removed
    }

    /// Removes all objects.
    pub fn remove_all(&self, last: &'static LocalKey<Last<T>>) -> Vec<Arc<T>> {
        let removed = std::mem::take(&mut *self.table());
        self.changes.fetch_add(1, Ordering::Release);
        last.with_borrow_mut(|last| *last = None);
        removed.into_iter().flatten().collect()
    }
}

impl<T> Default for Handles<T> {
    fn default() -> Handles<T> {
        Handles::new()
    }
}
